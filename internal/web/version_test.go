package web

import (
	"testing"

	"proffer.dev/proffer/api/rest"
	"proffer.dev/proffer/api/v1alpha1"
)

func TestAnAnswerHasTheVersionAlsoBeforeTheFirstEvaluation(t *testing.T) {
	s := newSite(t)
	for _, when := range []string{"before", "after"} {
		for path, method := range map[string]string{"/offers": "GET", "/offers/rome": "GET", "/snapshot": "GET", "/simulate": "POST"} {
			response, _ := s.do(method, path, "{}")
			if got := response.Header.Get(rest.VersionHeader); got != "v0.1.0" {
				t.Errorf("%s the first evaluation, %s has version %q", when, path, got)
			}
		}
		s.publish([]*v1alpha1.ResourcePolicy{standard()})
	}
}
