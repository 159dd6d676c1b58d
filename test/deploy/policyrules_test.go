package deploy

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
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
)

// policyRules is the name of what config/admission brings.
const policyRules = "proffer-resourcepolicy"

// brokenPolicy is a policy that the schema accepts and the rules do not.
func brokenPolicy(name string) *v1alpha1.ResourcePolicy {
	p := &v1alpha1.ResourcePolicy{Spec: v1alpha1.ResourcePolicySpec{Offer: v1alpha1.Offer{
		Nodes: &v1alpha1.Nodes{}, Reserve: v1alpha1.Quantities{"memory": {Quantity: resource.MustParse("100m")}},
	}}}
	p.Name = name
	return p
}

// rulesInForce reports as an error that the API server does not apply the rules of config/admission.
func rulesInForce(ctx context.Context) error {
	err := cluster.client.Create(ctx, brokenPolicy("probe"), client.DryRunAll)
	if err == nil || !strings.Contains(err.Error(), policyRules) {
		return fmt.Errorf("of a policy that breaks a rule the API server says %w", err)
	}
	return nil
}

// withoutPolicyRules calls f while the rules of config/admission are gone.
func withoutPolicyRules(t *testing.T, f func()) {
	t.Helper()
	defer eventually(t, func() error { return rulesInForce(context.WithoutCancel(t.Context())) })
	defer func() {
		if _, err := kubectl(context.WithoutCancel(t.Context()), "apply", "-k", filepath.Join(config, "default")); err != nil {
			t.Error(err)
		}
	}()
	mustKubectl(t, "delete", "validatingadmissionpolicybinding,validatingadmissionpolicy", policyRules)
	eventually(t, func() error { return cluster.client.Create(t.Context(), brokenPolicy("probe"), client.DryRunAll) })
	f()
}

// TestTheRulesOnPoliciesConcernNothingElse, and refuse for good what they refuse.
func TestTheRulesOnPoliciesConcernNothingElse(t *testing.T) {
	eventually(t, func() error { return rulesInForce(t.Context()) })
	policy := find[admissionv1.ValidatingAdmissionPolicy](t, render(t), "ValidatingAdmissionPolicy", policyRules)
	rules := policy.Spec.MatchConstraints.ResourceRules
	if len(rules) != 1 || strings.Join(rules[0].APIGroups, ",") != "proffer.dev" || strings.Join(rules[0].Resources, ",") != "resourcepolicies" {
		t.Errorf("the rules are for %+v, want resourcepolicies alone", rules)
	}
	if *policy.Spec.FailurePolicy != admissionv1.Fail {
		t.Errorf("failurePolicy is %s", *policy.Spec.FailurePolicy)
	}
	binding := find[admissionv1.ValidatingAdmissionPolicyBinding](t, render(t), "ValidatingAdmissionPolicyBinding", policyRules)
	if a := binding.Spec.ValidationActions; len(a) != 1 || a[0] != admissionv1.Deny || binding.Spec.MatchResources != nil || binding.Spec.PolicyName != policyRules {
		t.Errorf("the binding is %+v", binding.Spec)
	}
}

// TestWhatWasStoredUnderOlderRulesCanStillBeHandled: an upgrade of Proffer or of Kubernetes brings rules that stored policies may break.
func TestWhatWasStoredUnderOlderRulesCanStillBeHandled(t *testing.T) {
	stored := brokenPolicy("stored")
	withoutPolicyRules(t, func() { create(t, stored) })

	get(t, "stored", stored)
	stored.Labels = map[string]string{"team": "a"}
	stored.Finalizers = []string{"example.com/kept"}
	must(t, cluster.client.Update(t.Context(), stored))
	stored.Status.Source = v1alpha1.SourceNodes
	must(t, cluster.client.Status().Update(t.Context(), stored))
	edited := stored.DeepCopy()
	edited.Spec.Priority = 5
	if err := cluster.client.Update(t.Context(), edited); err == nil || !strings.Contains(err.Error(), v1alpha1.AmountNotWhole) {
		t.Errorf("an edit of the spec: %v", err)
	}
	stored.Finalizers = nil
	must(t, cluster.client.Update(t.Context(), stored))
	must(t, cluster.client.Delete(t.Context(), stored))
}

// TestAdmissionPoliciesCompileOnTheFirstKubernetesThatHasThem, which is 1.30: later versions know more functions of CEL.
func TestAdmissionPoliciesCompileOnTheFirstKubernetesThatHasThem(t *testing.T) {
	for _, name := range admissionPolicies(t) {
		policy := find[admissionv1.ValidatingAdmissionPolicy](t, render(t), "ValidatingAdmissionPolicy", name)
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
	var declared admissioncel.OptionalVariableDeclarations
	compile := func(accessor admissioncel.ExpressionAccessor) {
		if result := compiler.CompileCELExpression(accessor, declared, environment.NewExpressions); result.Error != nil {
			errs = append(errs, fmt.Errorf("%s: %w", accessor.GetExpression(), result.Error))
		}
	}
	for _, v := range spec.Variables {
		if result := compiler.CompileAndStoreVariable(&validating.Variable{Name: v.Name, Expression: v.Expression}, declared, environment.NewExpressions); result.Error != nil {
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
