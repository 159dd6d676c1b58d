package migrate

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"

	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/internal/policy"
)

// Options choose what Convert does. The zero value is for a Deployment with one plugin.
type Options struct {
	// Name is the name of the policy, by default the plugin's.
	Name string
	// Container is the name of the plugin's container, needed only if several run a plugin.
	Container string
}

// Converted is a ResourcePolicy that offers what a plugin offers.
type Converted struct {
	// Manifest is the policy as YAML, with comments on each argument of the plugin.
	Manifest []byte
	// Policy is the policy that Manifest holds.
	Policy *v1alpha1.ResourcePolicy
	// Warnings concern arguments that have no equivalent in a policy, and policies that consumers cannot
	// use. They are part of the manifest too.
	Warnings []string

	plugin plugin
	pairs  *pairs
}

// Convert returns the ResourcePolicy that offers what the Deployment of a plugin offers. The
// operator's own parser accepts the policy. An error says why there is none: no plugin is
// recognised, it would not start, it has arguments that are not the plugin's, or it offers amounts
// that a policy cannot have.
func Convert(d *appsv1.Deployment, o Options) (*Converted, error) {
	p, container, err := findPlugin(&d.Spec.Template.Spec, o.Container)
	if err != nil {
		return nil, err
	}
	s, err := parse(p, arguments(container))
	if err != nil {
		return nil, err
	}
	if o.Name == "" {
		o.Name = string(p)
	}
	if problems := validation.IsDNS1123Subdomain(o.Name); len(problems) > 0 {
		return nil, fmt.Errorf(
			"the name %q cannot be that of a policy: write lower-case letters, digits, '-' and '.'", o.Name)
	}
	warnings := warningsOf(d, p, s)
	text, err := render(d, container, p, s, o.Name, warnings)
	if err != nil {
		return nil, err
	}
	converted, err := check(text, s)
	if err != nil {
		return nil, err
	}
	return &Converted{Manifest: text, Policy: converted, Warnings: warnings, plugin: p, pairs: s.pairs}, nil
}

// check reads a manifest as the operator does, and returns its policy.
func check(manifest []byte, s *settings) (*v1alpha1.ResourcePolicy, error) {
	p := &v1alpha1.ResourcePolicy{}
	if err := yaml.UnmarshalStrict(manifest, p); err != nil {
		return nil, fmt.Errorf("reading the policy back: %w", err)
	}
	_, _, problems := policy.Parse(p)
	if len(problems) == 0 {
		return p, nil
	}
	errs := []error{fmt.Errorf("a ResourcePolicy cannot offer what --%s sets; "+
		"correct it in a copy of the Deployment, and pass the copy with -f", s.pairs.flag)}
	for _, problem := range problems {
		errs = append(errs, problem)
	}
	return nil, errors.Join(errs...)
}

// necessary are the resources without which a virtual node takes no pods.
var necessary = []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourcePods}

func warningsOf(d *appsv1.Deployment, p plugin, s *settings) []string {
	var all []string
	if s.portSet {
		all = append(all, fmt.Sprintf("--port=%d has no equivalent in a policy: "+
			"the operator listens on --grpc-bind-address, by default :6001.", s.port))
	}
	for _, written := range s.logs {
		all = append(all, written+" has no equivalent in a policy: "+
			"it only affects the log. The operator has --zap-log-level.")
	}
	for _, name := range slices.Compact(slices.Sorted(slices.Values(s.pairs.repeated))) {
		all = append(all, fmt.Sprintf("--%s sets %s more than once: the last value counts, as for the plugin.",
			s.pairs.flag, name))
	}
	if p == fixedResources {
		var missing []string
		for _, name := range necessary {
			if s.pairs.values[string(name)] == "" {
				missing = append(missing, string(name))
			}
		}
		if len(missing) > 0 {
			all = append(all, fmt.Sprintf("The plugin does not offer %s: "+
				"virtual nodes of consumers take no pods without it.", strings.Join(missing, " and ")))
		}
	}
	if d.Spec.Replicas != nil && *d.Spec.Replicas == 0 {
		all = append(all, "The Deployment has 0 replicas: the plugin offers nothing at present.")
	}
	return all
}
