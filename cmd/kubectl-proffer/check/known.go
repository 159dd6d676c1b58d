package check

import (
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
)

// known is something that was read from the cluster, or why it was not.
type known[T any] struct {
	value T
	// err is nil for a value that was read. For errNone there is none.
	err error
}

// errNone is the error of what the cluster does not have: the object, or its kind.
var errNone = errors.New("not found")

func knownOf[T any](value T, err error) known[T] {
	if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
		err = errNone
	}
	return known[T]{value, err}
}

// missing reports whether the cluster does not have it.
func (k known[T]) missing() bool { return errors.Is(k.err, errNone) }

// skip returns the finding of a check whose input could not be read. The right is the one a role must
// allow, such as "list pods".
func (k known[T]) skip(check Check, right string) Finding {
	if apierrors.IsForbidden(k.err) {
		return check.skipped("You may not %s.", right).
			do("Ask for this right, or let a cluster admin run the check.")
	}
	return check.skipped("Cannot %s: %v", right, k.err)
}
