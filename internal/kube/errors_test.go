package kube

import (
	"errors"
	"fmt"
	"net/http"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestNotWrittenIsTrueOnlyForErrorsThatProveIt(t *testing.T) {
	resource := schema.GroupResource{Resource: "resourceslices"}
	for _, tc := range []struct {
		err  error
		want bool
	}{
		{apierrors.NewConflict(resource, "s", errors.New("newer")), true},
		{apierrors.NewNotFound(resource, "s"), true},
		{apierrors.NewForbidden(resource, "s", errors.New("no")), true},
		{fmt.Errorf("wrapped: %w", apierrors.NewInvalid(schema.GroupKind{}, "s", nil)), true},
		{apierrors.NewTooManyRequests("later", 1), true},
		{apierrors.NewTimeoutError("slow", 1), false},
		{apierrors.NewServerTimeout(resource, "update", 1), false},
		{apierrors.NewInternalError(errors.New("etcd")), false},
		{&apierrors.StatusError{ErrStatus: metav1.Status{
			Code: http.StatusRequestTimeout, Reason: metav1.StatusReasonTimeout,
		}}, false},
		{errors.New("connection reset by peer"), false},
	} {
		if got := NotWritten(tc.err); got != tc.want {
			t.Errorf("NotWritten(%v) is %v, want %v", tc.err, got, tc.want)
		}
	}
}

func TestTooLargeRecognizesErrorsAboutSize(t *testing.T) {
	for name, tc := range map[string]struct {
		err  error
		want bool
	}{
		"none":          {nil, false},
		"a conflict":    {apierrors.NewConflict(schema.GroupResource{Resource: "resourceslices"}, "s", nil), false},
		"another error": {fmt.Errorf("too large"), false},
		"the body":      {apierrors.NewRequestEntityTooLargeError("limit is 3145728"), true},
		"etcd": {&apierrors.StatusError{ErrStatus: metav1.Status{
			Code: 500, Message: "etcdserver: request is too large",
		}}, true},
		"wrapped":       {fmt.Errorf("writing: %w", apierrors.NewRequestEntityTooLargeError("limit is 3145728")), true},
		"a long text":   {invalidBecause("FieldValueTooLong"), true},
		"a long list":   {invalidBecause("FieldValueTooMany"), true},
		"a wrong value": {invalidBecause("FieldValueInvalid"), false},
	} {
		if got := TooLarge(tc.err); got != tc.want {
			t.Errorf("%s: TooLarge is %t, want %t", name, got, tc.want)
		}
	}
}

func invalidBecause(cause metav1.CauseType) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Code: 422, Reason: metav1.StatusReasonInvalid,
		Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{{Type: cause}}},
	}}
}
