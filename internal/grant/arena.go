package grant

// arena allocates many short slices out of a few long ones. All live as long as the allocation of
// grants that needs them.
type arena[T any] struct {
	block, rest []T
}

const (
	minBlock = 16
	maxBlock = 2048
)

// take returns n zero values.
func (a *arena[T]) take(n int) []T {
	if n > len(a.rest) {
		a.block = make([]T, max(n, min(max(2*len(a.block), minBlock), maxBlock)))
		a.rest = a.block
	}
	out := a.rest[:n:n]
	a.rest = a.rest[n:]
	return out
}

// giveBack returns the last n values of the latest take, which must still be zero.
func (a *arena[T]) giveBack(n int) { a.rest = a.block[len(a.block)-len(a.rest)-n:] }

// one returns a pointer to one zero value.
func (a *arena[T]) one() *T { return &a.take(1)[0] }
