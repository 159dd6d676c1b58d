package deploy

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/version"
	admissioncel "k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	"k8s.io/apiserver/pkg/cel/environment"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/test"
)

// policyRules is the name of the admission policy in config/admission.
const policyRules = "proffer-resourcepolicy"

// brokenPolicy returns a policy that conforms to the schema and breaks a rule.
func brokenPolicy(name string) *v1alpha1.ResourcePolicy {
	p := &v1alpha1.ResourcePolicy{Spec: v1alpha1.ResourcePolicySpec{Offer: v1alpha1.PolicyOffer{
		Nodes: &v1alpha1.Nodes{}, Reserve: v1alpha1.Quantities{"memory": {Quantity: resource.MustParse("100m")}},
	}}}
	p.Name = name
	return p
}

// rulesInForce returns an error unless the API server enforces the rules of config/admission.
func rulesInForce(ctx context.Context) error {
	err := cluster.client.Create(ctx, brokenPolicy("probe"), client.DryRunAll)
	if err == nil || !strings.Contains(err.Error(), policyRules) {
		return fmt.Errorf("the API server's answer to a policy that breaks a rule: %w", err)
	}
	return nil
}

// withoutPolicyRules deletes the rules of config/admission, calls f, and applies them again.
func withoutPolicyRules(t *testing.T, f func()) {
	t.Helper()
	defer test.Eventually(t, func() error { return rulesInForce(context.WithoutCancel(t.Context())) })
	defer deleteAdmissionPolicies(t, policyRules)()
	test.Eventually(t, func() error { return cluster.client.Create(t.Context(), brokenPolicy("probe"), client.DryRunAll) })
	f()
}

// TestTheRulesOnPoliciesApplyToPoliciesOnly also checks that the binding denies, and that a rule
// that cannot be evaluated denies too.
func TestTheRulesOnPoliciesApplyToPoliciesOnly(t *testing.T) {
	test.Eventually(t, func() error { return rulesInForce(t.Context()) })
	policy := find[admissionv1.ValidatingAdmissionPolicy](t, render(t), "ValidatingAdmissionPolicy", policyRules)
	rules := policy.Spec.MatchConstraints.ResourceRules
	if len(rules) != 1 || strings.Join(rules[0].APIGroups, ",") != "proffer.dev" ||
		strings.Join(rules[0].Resources, ",") != "resourcepolicies" {
		t.Errorf("the rules apply to %+v, want resourcepolicies only", rules)
	}
	if *policy.Spec.FailurePolicy != admissionv1.Fail {
		t.Errorf("failurePolicy is %s, want Fail", *policy.Spec.FailurePolicy)
	}
	binding := find[admissionv1.ValidatingAdmissionPolicyBinding](t, render(t), "ValidatingAdmissionPolicyBinding",
		policyRules)
	if a := binding.Spec.ValidationActions; len(a) != 1 || a[0] != admissionv1.Deny ||
		binding.Spec.MatchResources != nil || binding.Spec.PolicyName != policyRules {
		t.Errorf("the binding is %+v, want one of all objects that denies", binding.Spec)
	}
}

// An upgrade of Proffer or Kubernetes may bring rules that stored policies break.
func TestPoliciesThatBreakNewRulesCanStillBeUpdatedAndDeleted(t *testing.T) {
	stored := brokenPolicy("stored")
	withoutPolicyRules(t, func() { create(t, stored) })

	get(t, "stored", stored)
	stored.Labels = map[string]string{"team": "a"}
	stored.Finalizers = []string{"example.com/kept"}
	test.Must(t, cluster.client.Update(t.Context(), stored))
	stored.Status.Source = v1alpha1.SourceNodes
	test.Must(t, cluster.client.Status().Update(t.Context(), stored))
	edited := stored.DeepCopy()
	edited.Spec.Priority = 5
	if err := cluster.client.Update(t.Context(), edited); err == nil ||
		!strings.Contains(err.Error(), v1alpha1.AmountNotWhole) {
		t.Errorf("an edit of the spec: %v, want it rejected", err)
	}
	stored.Finalizers = nil
	test.Must(t, cluster.client.Update(t.Context(), stored))
	test.Must(t, cluster.client.Delete(t.Context(), stored))
}

// TestAdmissionPoliciesCompileOnTheFirstKubernetesThatHasThem uses 1.30. Later versions have more
// CEL functions. The components have policies too.
func TestAdmissionPoliciesCompileOnTheFirstKubernetesThatHasThem(t *testing.T) {
	objects := render(t, slices.DeleteFunc(components(t), func(c string) bool { return c == withoutAdmissionPolicies })...)
	var names []string
	for _, u := range objects {
		if u.GetKind() == "ValidatingAdmissionPolicy" {
			names = append(names, u.GetName())
		}
	}
	if least := len(admissionPolicies(t)) + 4; len(names) < least {
		t.Errorf("%d policies with the components, want at least %d", len(names), least)
	}
	for _, name := range names {
		policy := find[admissionv1.ValidatingAdmissionPolicy](t, objects, "ValidatingAdmissionPolicy", name)
		if err := compileOn(version.MajorMinor(1, 30), &policy.Spec); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func compileOn(v *version.Version, spec *admissionv1.ValidatingAdmissionPolicySpec) error {
	compiler, err := admissioncel.NewCompositedCompiler(environment.MustBaseEnvSet(v))
	if err != nil {
		return err
	}
	var errs []error
	declared := admissioncel.OptionalVariableDeclarations{HasParams: spec.ParamKind != nil}
	compile := func(accessor admissioncel.ExpressionAccessor) {
		if result := compiler.CompileCELExpression(accessor, declared, environment.NewExpressions); result.Error != nil {
			errs = append(errs, fmt.Errorf("%s: %w", accessor.GetExpression(), result.Error))
		}
	}
	for _, v := range spec.Variables {
		variable := &validating.Variable{Name: v.Name, Expression: v.Expression}
		result := compiler.CompileAndStoreVariable(variable, declared, environment.NewExpressions)
		if result.Error != nil {
			errs = append(errs, fmt.Errorf("variable %s: %w", v.Name, result.Error))
		}
	}
	for _, v := range spec.Validations {
		compile(&validating.ValidationCondition{Expression: v.Expression})
		if v.MessageExpression != "" {
			compile(&validating.MessageExpressionCondition{MessageExpression: v.MessageExpression})
		}
	}
	return errors.Join(errs...)
}
