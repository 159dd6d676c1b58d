package check

import (
	"context"
	"errors"
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"proffer.dev/proffer/cmd/kubectl-proffer/internal/manifests"
	"proffer.dev/proffer/internal/kube/liqo"
)

// tryGuards sends each of the guards that is installed what it has to refuse, and what depends on its list.
// The flags are the operator's, and the class is one that a policy offers.
func (c *cluster) tryGuards(
	ctx context.Context, f flags, own []guard, installed known[[]admissionregistrationv1.ValidatingAdmissionPolicy],
	class string,
) (trials []trial) {
	own = slices.DeleteFunc(slices.Clone(own), func(g guard) bool { return !g.installed(installed.value) })
	if len(own) == 0 {
		return nil
	}
	s := c.stage(ctx, class)
	all := attempts(s)
	for _, g := range own {
		t := c.try(ctx, g, all[g.name])
		trials = append(trials, t)
		if v := t.verdict(); v == holds || v == hidden {
			trials = append(trials, c.tryList(ctx, f, g, s)...)
		}
	}
	return trials
}

// try makes an attempt on a guard.
func (c *cluster) try(ctx context.Context, g guard, a attempt) trial {
	t := trial{guard: g, harm: a.harm, expected: a.expected, obstacle: a.at.obstacle}
	if t.err != nil {
		return t
	}
	by, right := sender{api: c.dynamic}, a.right()
	if a.by.user != "" {
		if _, asked := c.senders[a.by]; !asked {
			c.senders[a.by] = c.impersonate(ctx, a.by)
		}
		if by = c.senders[a.by]; by.err != nil {
			t.obstacle = by.obstacle
			return t
		}
		right += " as " + a.by.user
	}
	t.obstacle = obstacle{right, a.send(ctx, by.api)}
	return t
}

// stage looks for what the guards can be tried with. The consumer is one with a ResourceSlice, if there
// is one.
func (c *cluster) stage(ctx context.Context, class string) stage {
	s := stage{class: class, runtimeClass: c.first(ctx, runtimeClasses, "", hasOverhead)}
	slice := c.first(ctx, resourceSlices, liqo.ReplicatedLabel+"=true", nil)
	namespaces := &corev1.NamespaceList{}
	if err := c.api.List(ctx, namespaces, client.HasLabels{liqo.RemoteClusterIDLabel}); err != nil {
		s.tenant.obstacle = obstacle{"list namespaces", err}
	} else {
		s.namespaces = namespaces.Items
		s.consumer, s.tenant, s.sent = placesOf(s.namespaces, slice.namespace)
	}
	if s.tenant.err != nil {
		s.sent, s.slice, s.shadowPod, s.namespaceMap = s.tenant, s.tenant, s.tenant, s.tenant
		return s
	}
	s.slice = slice
	s.shadowPod = c.first(ctx, shadowPods, liqo.OriginLabel+"="+s.consumer, nil)
	s.namespaceMap = c.first(ctx, namespaceMaps, "", nil)
	return s
}

// placesOf returns a consumer with its tenant namespace, preferably this one, and a namespace for its
// pods: one that it sent, or its tenant namespace.
func placesOf(namespaces []corev1.Namespace, preferred string) (consumer string, tenant, sent found) {
	tenant.err = absentError("consumer")
	namespaces = slices.DeleteFunc(slices.Clone(namespaces), func(n corev1.Namespace) bool {
		return n.DeletionTimestamp != nil || n.Labels[liqo.RemoteClusterIDLabel] == ""
	})
	for i := range namespaces {
		n := &namespaces[i]
		if n.Labels[liqo.TenantNamespaceLabel] == "true" && (consumer == "" || n.Name == preferred) {
			consumer, tenant = n.Labels[liqo.RemoteClusterIDLabel], found{namespace: n.Name}
		}
	}
	sent = tenant
	for i := range namespaces {
		n := &namespaces[i]
		if n.Annotations[liqo.ManagedByMapAnnotation] != "" && n.Labels[liqo.RemoteClusterIDLabel] == consumer {
			sent.namespace = n.Name
		}
	}
	return consumer, tenant, sent
}

// first returns the first object of all namespaces that has the labels and is suitable. Every one is if
// suitable is nil.
func (c *cluster) first(
	ctx context.Context, of triedKind, labels string, suitable func(*unstructured.Unstructured) bool,
) found {
	options := metav1.ListOptions{LabelSelector: labels}
	if suitable == nil {
		options.Limit = 1
	}
	list, err := c.dynamic.Resource(of.GroupVersionResource).List(ctx, options)
	switch {
	case apierrors.IsNotFound(err): // The kind is not served.
		return found{obstacle: obstacle{err: absentError(of.kind)}}
	case err != nil:
		right := manifests.Right{Verb: "list", Group: of.Group, Resource: of.Resource}
		return found{obstacle: obstacle{right.String(), err}}
	}
	for i := range list.Items {
		if o := &list.Items[i]; suitable == nil || suitable(o) {
			return found{namespace: o.GetNamespace(), name: o.GetName()}
		}
	}
	return found{obstacle: obstacle{err: absentError(of.kind)}}
}

func hasOverhead(runtimeClass *unstructured.Unstructured) bool {
	overhead, _, err := unstructured.NestedMap(runtimeClass.Object, "overhead", "podFixed")
	return err == nil && len(overhead) > 0
}

// sender is a client whose requests come from a consumer, or what it lacks.
type sender struct {
	api dynamic.Interface
	obstacle
}

// impersonate returns a client whose requests come from this user, as the guards see it. Its groups are the groups
// of the consumer's certificates, for which Liqo has roles, and the caller's.
func (c *cluster) impersonate(ctx context.Context, by identity) sender {
	self := &authenticationv1.SelfSubjectReview{}
	if err := c.api.Create(ctx, self); err != nil {
		return sender{nil, obstacle{"create selfsubjectreviews.authentication.k8s.io", err}}
	}
	as := rest.ImpersonationConfig{UserName: by.user, Groups: []string{consumersGroup, by.consumer}}
	for _, group := range self.Status.UserInfo.Groups {
		if group != "system:authenticated" { // The API server adds it.
			as.Groups = append(as.Groups, group)
		}
	}
	needed := []manifests.Right{{Verb: "impersonate", Resource: "users", Name: by.user}}
	for _, group := range as.Groups {
		needed = append(needed, manifests.Right{Verb: "impersonate", Resource: "groups", Name: group})
	}
	lacking, err := manifests.Denied(ctx, needed, func(ctx context.Context, r manifests.Right) (bool, error) {
		review := r.SelfReview() // The caller may impersonate somebody already, who is then asked about.
		err := c.api.Create(ctx, review)
		return review.Status.Allowed, err
	})
	if err != nil {
		return sender{nil, obstacle{"create selfsubjectaccessreviews.authorization.k8s.io", err}}
	}
	if len(lacking) > 0 {
		refusal := apierrors.NewForbidden(schema.GroupResource{}, "", errors.New("impersonation"))
		return sender{nil, obstacle{manifests.List(lacking), refusal}}
	}
	config := rest.CopyConfig(c.config)
	config.Impersonate = as
	api, err := dynamic.NewForConfig(config)
	return sender{api, obstacle{"connect as " + by.user, err}}
}
