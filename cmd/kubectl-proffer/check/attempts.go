package check

import (
	"context"
	"encoding/json"
	"errors"
	"strings"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/cmd/kubectl-proffer/internal/manifests"
	"proffer.dev/proffer/internal/kube/liqo"
)

const (
	// attemptName is the name of what an attempt would create, and of the class that nobody serves.
	attemptName = "proffer-check"
	// consumersGroup is a group of the certificate that Liqo issues to the control plane of a consumer.
	consumersGroup = "liqo.io"
)

// triedKind is a kind of which objects are tried.
type triedKind struct {
	schema.GroupVersionResource
	kind string
}

var (
	resourcePolicies = triedKind{v1alpha1.GroupVersion.WithResource("resourcepolicies"), "ResourcePolicy"}
	resourceSlices   = triedKind{liqo.ResourceSlices, "ResourceSlice"}
	shadowPods       = triedKind{liqo.ShadowPods, "ShadowPod"}
	virtualNodes     = triedKind{liqo.VirtualNodes, "VirtualNode"}
	namespaceMaps    = triedKind{liqo.NamespaceMaps, "NamespaceMap"}
	pods             = triedKind{corev1.SchemeGroupVersion.WithResource("pods"), "Pod"}
	runtimeClasses   = triedKind{nodev1.SchemeGroupVersion.WithResource("runtimeclasses"), "RuntimeClass with an overhead"}
)

// found names an object or a namespace to try a guard on, or says why there is none.
type found struct {
	namespace, name string
	obstacle
}

// identity is a user in a certificate of a consumer.
type identity struct{ user, consumer string }

// stage holds the objects that the guards are tried with.
type stage struct {
	// namespaces have Liqo's label of a consumer.
	namespaces []corev1.Namespace
	// consumer is the cluster ID of a consumer. class is one that a policy offers, if there is one.
	consumer, class string
	// tenant is the tenant namespace of the consumer, and sent a namespace for its pods.
	tenant, sent found
	// slice and shadowPod are the consumer's. runtimeClass has an overhead.
	slice, shadowPod, namespaceMap, runtimeClass found
}

// expected is the answer of a guard that an attempt expects.
type expected struct {
	// ofList is set if the guard reads it from its list.
	ofList bool
	// says is a part of the refusal that no other validation of the guard has, empty if the guard has to accept
	// the request.
	says string
}

// attempt is a request that a guard has to refuse, or to answer by its list.
type attempt struct {
	// harm describes the effect of requests like this unless they are refused, as the end of a
	// sentence. Of an attempt on a list, it is the request.
	harm string
	expected
	// verb is create, or patch or delete for the object in at.
	verb string
	triedKind
	subresource []string
	at          found
	// body is the object to create, or the merge patch.
	body map[string]any
	// by is the consumer that sends the request, none for a guard that applies to everybody.
	by identity
}

// attempts returns what each guard has to refuse, by the name of its admission policy. Each request is
// one that no other admission policy of Proffer refuses, and that is accepted without the guard.
func attempts(s stage) map[string]attempt {
	all := sliceAttempts(s)
	all["proffer-resourcepolicy"] = attempt{
		harm:     "a ResourcePolicy with an invalid amount is accepted",
		expected: expected{says: "only cpu can be a fraction"}, verb: "create", triedKind: resourcePolicies,
		body: newObject(resourcePolicies, nil, map[string]any{
			"offer": map[string]any{"nodes": map[string]any{}, "reserve": map[string]any{"memory": "100m"}},
		}),
	}
	all["proffer-slice-pod-guard"] = attempt{
		harm:     "a consumer can give its pods a priority",
		expected: expected{says: "spec.pod.priorityClassName is not for consumers"},
		verb:     "create", triedKind: shadowPods, at: s.sent, by: s.controlPlane(),
		body: newShadowPod(s.consumer, map[string]any{"priorityClassName": attemptName}),
	}
	all["proffer-slice-pod-deletion-guard"] = attempt{
		harm:     "a consumer can delete a ShadowPod without its Pod",
		expected: expected{says: "a ShadowPod is deleted together with its Pod"},
		verb:     "delete", triedKind: shadowPods, at: s.shadowPod, by: s.controlPlane(),
	}
	withOverhead := s.sent
	if withOverhead.err == nil {
		withOverhead.obstacle = s.runtimeClass.obstacle
	}
	all["proffer-slice-pod-overhead-guard"] = attempt{
		harm:     "pods of consumers can have an overhead that Liqo's Quota does not count",
		expected: expected{says: "the overhead of the RuntimeClass is not counted"},
		verb:     "create", triedKind: pods, at: withOverhead,
		// Liqo creates such a Pod for a ShadowPod.
		body: newObject(pods, map[string]any{"liqo.io/managed-by": "shadowpod"}, podSpec(map[string]any{
			"runtimeClassName": s.runtimeClass.name,
		})),
	}
	all["proffer-virtual-node-guard"] = attempt{
		harm:     "a provider can set the label liqo.io/type of its virtual node",
		expected: expected{says: "the label liqo.io/type of a virtual node"},
		verb:     "create", triedKind: virtualNodes, at: s.tenant,
		body: newObject(virtualNodes, nil, map[string]any{
			"clusterID": attemptName, "labels": map[string]any{liqo.NodeTypeLabel: attemptName},
			"kubeconfigSecretRef": map[string]any{"name": attemptName},
		}),
	}
	all["proffer-namespace-map-guard"] = attempt{
		harm:     "a provider can list namespaces that it was not sent",
		expected: expected{says: "which spec.desiredMapping does not send to this provider"},
		verb:     "patch", triedKind: namespaceMaps, subresource: []string{"status"}, at: s.namespaceMap,
		body: map[string]any{"status": map[string]any{"currentMapping": map[string]any{
			attemptName: map[string]any{"remoteNamespace": attemptName, "phase": "Accepted"},
		}}},
	}
	return all
}

// sliceAttempts returns those on ResourceSlices.
func sliceAttempts(s stage) map[string]attempt {
	return map[string]attempt{
		"proffer-slice-status-guard": {
			harm:     "a consumer can write the answer to its own ResourceSlice",
			expected: expected{says: "only the provider writes the status of a ResourceSlice"},
			verb:     "patch", triedKind: resourceSlices, subresource: []string{"status"}, at: s.slice, by: s.controlPlane(),
			body: map[string]any{"status": map[string]any{"nodeLabels": map[string]any{attemptName: ""}}},
		},
		"proffer-slice-guard": {
			harm:     "a consumer can change the labels that mark its ResourceSlice as a copy",
			expected: expected{says: "a ResourceSlice of a consumer is a copy"},
			verb:     "patch", triedKind: resourceSlices, at: s.slice, by: s.controlPlane(),
			body: map[string]any{"metadata": map[string]any{"labels": map[string]any{liqo.ReplicatedLabel: "false"}}},
		},
		"proffer-slice-deletion-guard": {
			harm:     "a consumer can delete a ResourceSlice without its Quota",
			expected: expected{says: "a ResourceSlice is deleted together with its Quota"},
			verb:     "delete", triedKind: resourceSlices, at: s.slice, by: s.controlPlane(),
		},
		"proffer-csr-guard": {
			harm:     "a consumer can send any certificate signing request",
			expected: expected{says: "spec.csr is not one PEM block"},
			verb:     "create", triedKind: resourceSlices, at: s.tenant, by: s.controlPlane(),
			body: newSlice(s.consumer, map[string]any{"class": s.class, "csr": "eA=="}), // x
		},
		"proffer-served-classes": {
			harm:     "a consumer can request a class that this cluster does not serve",
			expected: expected{says: notServed},
			verb:     "create", triedKind: resourceSlices, at: s.tenant, by: s.controlPlane(),
			body: newSlice(s.consumer, map[string]any{"class": attemptName}),
		},
	}
}

// controlPlane is the identity of the consumer's control plane.
func (s *stage) controlPlane() identity { return identity{s.consumer, s.consumer} }

// newSlice returns a ResourceSlice as the consumer's crd-replicator sends it.
func newSlice(consumer string, spec map[string]any) map[string]any {
	spec["consumerClusterID"] = consumer
	return newObject(resourceSlices, map[string]any{
		liqo.ReplicatedLabel: "true", liqo.OriginIDLabel: consumer, liqo.RemoteClusterIDLabel: consumer,
	}, spec)
}

func newShadowPod(consumer string, pod map[string]any) map[string]any {
	return newObject(shadowPods, map[string]any{liqo.OriginLabel: consumer}, map[string]any{"pod": podSpec(pod)})
}

func newObject(of triedKind, labels, spec map[string]any) map[string]any {
	return map[string]any{
		"apiVersion": of.GroupVersion().String(), "kind": of.kind,
		"metadata": map[string]any{"name": attemptName, "labels": labels}, "spec": spec,
	}
}

// podSpec adds a container to the spec of a pod, as the pod-security level restricted permits it.
func podSpec(spec map[string]any) map[string]any {
	spec["containers"] = []any{map[string]any{
		"name": attemptName, "image": attemptName,
		"securityContext": map[string]any{
			"allowPrivilegeEscalation": false, "runAsNonRoot": true,
			"capabilities":   map[string]any{"drop": []any{"ALL"}},
			"seccompProfile": map[string]any{"type": "RuntimeDefault"},
		},
	}}
	return spec
}

// right returns the right that the request needs.
func (a *attempt) right() string {
	return manifests.Right{
		Verb: a.verb, Group: a.Group, Resource: a.Resource, Subresource: strings.Join(a.subresource, "/"),
		Namespace: a.at.namespace,
	}.String()
}

// send sends the request as a dry run, and returns its error.
func (a *attempt) send(ctx context.Context, api dynamic.Interface) error {
	dryRun := []string{metav1.DryRunAll}
	objects := api.Resource(a.GroupVersionResource).Namespace(a.at.namespace)
	var err error
	switch a.verb {
	case "create":
		_, err = objects.Create(ctx, &unstructured.Unstructured{Object: a.body}, metav1.CreateOptions{DryRun: dryRun})
	case "patch":
		var patch []byte
		if patch, err = json.Marshal(a.body); err == nil {
			options := metav1.PatchOptions{DryRun: dryRun}
			_, err = objects.Patch(ctx, a.at.name, types.MergePatchType, patch, options, a.subresource...)
		}
	case "delete":
		orphan := metav1.DeletePropagationOrphan
		err = objects.Delete(ctx, a.at.name, metav1.DeleteOptions{DryRun: dryRun, PropagationPolicy: &orphan})
	}
	switch {
	case apierrors.IsNotFound(err):
		return absentError(a.kind) // Or its kind is not served.
	case apierrors.IsForbidden(err) && !strings.Contains(err.Error(), "cannot "+a.verb+" resource"):
		return errors.New(err.Error()) // It is not a lack of rights.
	}
	return err
}
