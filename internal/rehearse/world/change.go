package world

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"proffer.dev/proffer/api/rest"
	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/internal/kube/jsonstream"
	"proffer.dev/proffer/internal/policy"
	"proffer.dev/proffer/internal/rehearse"
	"proffer.dev/proffer/internal/source/nodes"
	"proffer.dev/proffer/internal/table"
)

// newUID is the UID of a policy that does not exist yet.
const newUID = "new"

// DecodeChange reads a Change and nothing else. It refuses fields that it does not know, and lists that
// are too long before it has read all of them: an empty policy takes much more memory than its text.
func DecodeChange(r io.Reader) (*rest.Change, error) {
	c := &rest.Change{}
	d := jsonstream.NewUnbounded(r)
	d.Strict = true
	err := object(d, func(name string) error {
		switch name {
		case "apply":
			return jsonstream.List(d, func(p *appliedPolicy) error {
				c.Apply = append(c.Apply, v1alpha1.ResourcePolicy{TypeMeta: p.TypeMeta, ObjectMeta: p.ObjectMeta, Spec: p.Spec})
				return atMost(len(c.Apply), rest.MaxApplied, "policies")
			})
		case "delete":
			return d.Decode(&c.Delete)
		case "drain":
			return d.Decode(&c.Drain)
		case "addNodes":
			return jsonstream.List(d, func(n *rest.AddedNodes) error {
				c.AddNodes = append(c.AddNodes, *n)
				return atMost(len(c.AddNodes), rest.MaxAddedKinds, "kinds of nodes")
			})
		}
		return errors.New("unknown field: write apply, delete, drain or addNodes")
	})
	if err != nil {
		return nil, fmt.Errorf("reading the change: %w", err)
	}
	if _, err := d.Kind(); !errors.Is(err, io.EOF) {
		return nil, errors.New("reading the change: write one JSON object and nothing after it")
	}
	return c, nil
}

// appliedPolicy is a ResourcePolicy of which the status is not decoded: its quantities may be such that
// parsing them takes hours.
type appliedPolicy struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              v1alpha1.ResourcePolicySpec `json:"spec"`
	Status            json.RawMessage             `json:"status"`
}

// maxProblems bounds the problems of one policy that a Simulation lists.
const maxProblems = 100

// ChangeOf parses a Change of a world. Problems are why policies are invalid, by name: such a policy
// takes no part. The filters, nil for none, are added to policies that it applies. The error says what
// is wrong with the change itself.
func ChangeOf(
	c *rest.Change, w *rehearse.World, filters policy.Filters,
) (change *rehearse.Change, problems map[string][]string, err error) {
	if err := checkBounds(c); err != nil {
		return nil, nil, err
	}
	change = &rehearse.Change{Delete: c.Delete, Drain: c.Drain}
	existing := map[string]*table.Policy{}
	for i := range w.Policies {
		existing[w.Policies[i].Name] = &w.Policies[i]
	}
	applied := map[string]struct{}{}
	for i := range c.Apply {
		object := &c.Apply[i]
		if err := checkObject(object); err != nil {
			return nil, nil, fmt.Errorf("apply[%d]: %w", i, err)
		}
		if _, twice := applied[object.Name]; twice || slices.Contains(c.Delete, object.Name) {
			return nil, nil, fmt.Errorf("apply[%d]: name ResourcePolicy %s once in apply and delete", i, object.Name)
		}
		applied[object.Name] = struct{}{}
		p, err := edited(existing[object.Name], object, w.Now, filters)
		if err != nil {
			return nil, nil, fmt.Errorf("apply[%d]: %w", i, err)
		}
		if len(p.Problems) > 0 {
			if problems == nil {
				problems = map[string][]string{}
			}
			problems[p.Name] = p.Problems[:min(len(p.Problems), maxProblems)]
		}
		change.Apply = append(change.Apply, p)
	}
	for i, name := range c.Delete {
		if existing[name] == nil {
			return nil, nil, fmt.Errorf("delete[%d]: there is no ResourcePolicy %q", i, name)
		}
	}
	known := map[string]struct{}{}
	for i := range w.Content.Nodes {
		known[w.Content.Nodes[i].Name] = struct{}{}
	}
	for i, name := range c.Drain {
		if _, there := known[name]; !there {
			return nil, nil, fmt.Errorf("drain[%d]: there is no Node %q", i, name)
		}
	}
	for i := range c.AddNodes {
		if err := addNodes(change, i, &c.AddNodes[i]); err != nil {
			return nil, nil, fmt.Errorf("addNodes[%d]: %w", i, err)
		}
	}
	return change, problems, nil
}

// checkObject refuses what is not a ResourcePolicy with a name.
func checkObject(object *v1alpha1.ResourcePolicy) error {
	if object.Kind != "" && object.Kind != "ResourcePolicy" ||
		object.APIVersion != "" && object.APIVersion != v1alpha1.GroupVersion.String() {
		return fmt.Errorf("it is a %s of %s: write ResourcePolicies of %s",
			object.Kind, object.APIVersion, v1alpha1.GroupVersion)
	}
	if object.Name == "" {
		return errors.New("metadata.name is missing")
	}
	if problems := validation.IsDNS1123Subdomain(object.Name); len(problems) > 0 {
		return fmt.Errorf("metadata.name: %s", problems[0])
	}
	return nil
}

// edited returns the policy that applying an object makes of an existing one, nil for none. Of the
// object's metadata it reads the name alone: the rest is as the API server would write it.
func edited(
	existing *table.Policy, object *v1alpha1.ResourcePolicy, now time.Time, filters policy.Filters,
) (table.Policy, error) {
	next := &v1alpha1.ResourcePolicy{Spec: object.Spec, ObjectMeta: metav1.ObjectMeta{
		Name: object.Name, UID: newUID, Generation: 1, CreationTimestamp: metav1.NewTime(now.Truncate(time.Second)),
	}}
	var offered []string
	if existing != nil {
		if same, err := sameSpec(&existing.Object.Spec, &object.Spec); err != nil || same {
			return *existing, err
		}
		next.ObjectMeta, offered = existing.Object.ObjectMeta, existing.Offered
		next.Generation++
	}
	// The API server has not checked the policy.
	sizes, err := policy.SizesOf(&object.Spec)
	if err := cmp.Or(err, sizes.List); err != nil {
		return table.Policy{}, err
	}
	p := policy.Of(next, filters)
	p.Offered = offered
	if existing != nil && existing.Parsed != nil && p.Standing != table.Rehearsed && existing.Standing != table.Unsettled {
		p.Standing = table.Edited
	}
	if len(p.Problems) > 0 {
		return p, nil // They say what to write.
	}
	return p, sizes.Text
}

// sameSpec reports whether two specs are written alike.
func sameSpec(a, b *v1alpha1.ResourcePolicySpec) (bool, error) {
	one, err := json.Marshal(a)
	other, otherErr := json.Marshal(b)
	return bytes.Equal(one, other), cmp.Or(err, otherErr)
}

// addNodes adds nodes of one kind to a change. No node of a cluster has a name with a slash.
func addNodes(c *rehearse.Change, kind int, added *rest.AddedNodes) error {
	n := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Labels: added.Labels},
		Status: corev1.NodeStatus{
			Allocatable: corev1.ResourceList{},
			Conditions:  []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
		},
	}
	for name, q := range added.Allocatable {
		if len(validation.IsQualifiedName(string(name))) > 0 {
			return fmt.Errorf("allocatable: %.100q is not the name of a resource: write one such as cpu or nvidia.com/gpu", name)
		}
		if problem := q.Problem(name); problem != "" {
			return fmt.Errorf("allocatable[%s]: %s", name, problem)
		}
		n.Status.Allocatable[name] = q.Quantity
	}
	for i := range added.Count {
		n.Name = fmt.Sprintf("added/%d/%d", kind, i)
		c.AddNodes = append(c.AddNodes, nodes.ParseNode(n))
	}
	return nil
}
