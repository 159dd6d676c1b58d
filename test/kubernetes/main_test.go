package main

import (
	"fmt"
	"strings"
	"testing"
)

const definition = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  names: {kind: Widget, plural: widgets, singular: widget, listKind: WidgetList}
  scope: Cluster
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          names:
            type: array
            items:
              type: string
              %s
              x-kubernetes-validations: [{rule: "self.matches('^a+$')", message: only a}]
`

func TestEachKindOfProblemIsFound(t *testing.T) {
	for _, tc := range []struct{ name, text, want string }{
		{
			"a field of a later version",
			"apiVersion: policy/v1\nkind: PodDisruptionBudget\nspec: {unhealthyPodEvictionPolicy: AlwaysAllow}",
			`unknown field "spec.unhealthyPodEvictionPolicy"`,
		},
		{
			"a kind of a later version",
			"apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicy",
			`no kind "ValidatingAdmissionPolicy"`,
		},
		{
			"a rule that may cost too much", fmt.Sprintf(definition, ""),
			"widgets.example.com: spec.validation.openAPIV3Schema.properties[names].items." +
				"x-kubernetes-validations[0].rule: Forbidden: estimated rule cost exceeds budget",
		},
		{
			"no problem",
			"apiVersion: policy/v1\nkind: PodDisruptionBudget\nspec: {maxUnavailable: 1}\n---" + strings.Replace(
				fmt.Sprintf(definition, "maxLength: 10"), "type: array", "type: array\n            maxItems: 10", 1),
			"",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			problems, err := check(t.Context(), strings.NewReader(tc.text))
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.Join(problems, "\n"); (got == "") != (tc.want == "") || !strings.Contains(got, tc.want) {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestInputWithoutObjectsIsAnError(t *testing.T) {
	if _, err := check(t.Context(), strings.NewReader("")); err == nil {
		t.Error("empty input was accepted")
	}
}
