package kube

import (
	"errors"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// TooLarge reports whether a write was refused because of the size of the object, or of a list or
// a string in it. The same write with less in it may succeed.
func TooLarge(err error) bool {
	if err == nil {
		return false
	}
	if apierrors.IsRequestEntityTooLargeError(err) {
		return true
	}
	if apierrors.IsInvalid(err) {
		for _, kind := range []field.ErrorType{field.ErrorTypeTooLong, field.ErrorTypeTooMany} {
			if apierrors.HasStatusCause(err, metav1.CauseType(kind)) {
				return true
			}
		}
		return false
	}
	// The API server passes on these errors of etcd and its client without a type of their own.
	text := err.Error()
	return strings.Contains(text, "etcdserver: request is too large") ||
		strings.Contains(text, "trying to send message larger than max")
}

// RefusedContent reports whether a write was refused because of its content or its size: the same
// write will be refused again.
func RefusedContent(err error) bool { return apierrors.IsInvalid(err) || TooLarge(err) }

// Stale reports whether a write failed because the object that exists is not the one that was known.
func Stale(err error) bool {
	return apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) || apierrors.IsNotFound(err)
}

// NotWritten reports whether the API server has answered that a write was not made. Any other error
// leaves that open.
func NotWritten(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return false
	}
	code := status.Status().Code
	return code >= 400 && code < 500 && !apierrors.IsTimeout(err)
}
