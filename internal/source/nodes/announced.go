package nodes

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	kjson "sigs.k8s.io/json"

	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/kube"
	"proffer.dev/proffer/internal/kube/liqo"
	"proffer.dev/proffer/internal/quantity"
	"proffer.dev/proffer/internal/source/masked"
)

// +kubebuilder:rbac:roleName=proffer-manager,groups=offloading.liqo.io,resources=shadowpods,verbs=list;watch

// shadowPodKind is the kind of the objects from which Liqo v1 makes the pods of consumers. It has accepted a
// ShadowPod under the consumer's Quota, and creates its Pod when it can: a ResourceQuota, an admission
// policy, or an eviction can delay that for any time.
var shadowPodKind = liqo.ShadowPods.GroupVersion().WithKind("ShadowPod")

// ShadowPods returns an informer that has the pods announced that consumers' ShadowPods are to become, for
// as long as Liqo's definition exists.
func (w *Watch) ShadowPods(client dynamic.Interface) *kube.CRDInformer {
	return kube.NewCRDInformer(client, w.shadowPods, w.announced.wake, w.log, w.announced)
}

// maxUID bounds the UID of an owner, which the API server does not check, in bytes.
const maxUID = 36

// announced brings ShadowPods to the ledger, and forgets them when their kind is gone.
type announced struct {
	ledger *capacity.Ledger
	wake   func()
}

// kind returns the kind of ShadowPods, followed like nodes and pods: a ShadowPod is as large as its Pod, and
// nothing is kept of it but what counts.
func (a announced) kind(config *rest.Config, d *decoder, log logr.Logger) (kube.Kind, error) {
	config = rest.CopyConfig(config)
	config.ContentType = runtime.ContentTypeJSON
	api, err := masked.NewClient(config, "/apis", shadowPodKind.GroupVersion(), d.kinds())
	if err != nil {
		return kube.Kind{}, fmt.Errorf("making a client for ShadowPods: %w", err)
	}
	return kube.Kind{GroupVersionResource: liqo.ShadowPods, Reflect: func() kube.Reflection {
		s := a.store()
		return kube.Reflection{Run: masked.Follow(api, nil, s, d.newShadowPod, "", log).RunWithContext, Synced: s.Done()}
	}}, nil
}

func (a announced) store() *masked.Store[*shadowPod] {
	l := a.ledger
	return newPodStore[*shadowPod](liqo.ShadowPods.Resource, l.SetAnnounced, l.DeleteAnnounced, l.ReplaceAnnounced, a.wake)
}

// Set implements kube.Handler. It does nothing: the store has the objects.
func (announced) Set(*unstructured.Unstructured) bool { return false }

// Remove implements kube.Handler. It does nothing: the store has the objects.
func (announced) Remove(*unstructured.Unstructured) bool { return false }

// RemoveAll implements kube.Handler.
func (a announced) RemoveAll() { a.ledger.ReplaceAnnounced(func(func(capacity.Pod) bool) {}) }

// shadowPod is decoded from the ShadowPod that the API server sends, as the pod that Liqo makes of it, see
// github.com/liqotech/liqo/pkg/liqo-controller-manager/offloading/shadowpod-controller. Requests that
// admission adds count from the moment that the Pod exists: defaults of a LimitRange, the overhead of a
// RuntimeClass.
type shadowPod struct{ pod }

// announcedKey returns the key of the pod that a ShadowPod is to become. Its Pod has the same namespace and name,
// so no other can stand for it, whatever owner it claims to have.
func announcedKey(shadowPod types.UID, namespace, name string) string {
	return string(shadowPod) + "/" + namespace + "/" + name
}

// madeFrom returns the key of the announced pod that Liqo made a pod from, empty for none. A ShadowPod that is
// created again while the Pod of the former one still ends is another.
func madeFrom(p *corev1.Pod) string {
	for i := range p.OwnerReferences {
		if o := &p.OwnerReferences[i]; o.Kind == shadowPodKind.Kind && len(o.UID) <= maxUID {
			return announcedKey(o.UID, p.Namespace, p.Name)
		}
	}
	return ""
}

// setDefaultRequests sets what the API server adds to a Pod: a limit stands for a missing request, see
// SetDefaults_Pod of k8s.io/kubernetes/pkg/apis/core/v1. A limit of the whole pod counts besides what containers
// request, unless they request the same resource.
func setDefaultRequests(spec *corev1.PodSpec) {
	requested := map[corev1.ResourceName]bool{}
	for _, containers := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range containers {
			r := &containers[i].Resources
			requestLimits(r, nil)
			for name := range r.Requests {
				requested[name] = true
			}
		}
	}
	if spec.Resources != nil {
		requestLimits(spec.Resources, requested)
	}
}

// requestLimits makes limits without a request requests, but for those in except.
func requestLimits(r *corev1.ResourceRequirements, except map[corev1.ResourceName]bool) {
	for name, limit := range r.Limits {
		if _, found := r.Requests[name]; !found && !except[name] {
			if r.Requests == nil {
				r.Requests = corev1.ResourceList{}
			}
			r.Requests[name] = limit
		}
	}
}

// Unmarshal implements masked.Object. The API server sends no custom resource as protobuf.
func (*shadowPod) Unmarshal([]byte) error {
	return fmt.Errorf("%s has no protobuf", shadowPodKind.Kind)
}

// UnmarshalJSON reads the fields that count, by the rules by which Liqo reads a ShadowPod. What has another shape
// Liqo cannot read: it becomes no Pod, and fails no list, because its consumer wrote it.
func (p *shadowPod) UnmarshalJSON(data []byte) error {
	var from struct {
		Metadata metav1.ObjectMeta `json:"metadata"`
		Spec     struct {
			Pod struct {
				Containers     []strangersContainer `json:"containers"`
				InitContainers []strangersContainer `json:"initContainers"`
				Overhead       strangersList        `json:"overhead"`
				Resources      *strangersResources  `json:"resources"`
			} `json:"pod"`
		} `json:"spec"`
		Status struct {
			Phase corev1.PodPhase `json:"phase"`
		} `json:"status"`
	}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(data, &from); err != nil {
		from.Status.Phase = corev1.PodFailed
	}
	full := &corev1.Pod{ObjectMeta: from.Metadata, Status: corev1.PodStatus{Phase: from.Status.Phase}}
	full.Spec.Overhead = corev1.ResourceList(from.Spec.Pod.Overhead)
	full.Spec.Containers = containersOf(from.Spec.Pod.Containers)
	full.Spec.InitContainers = containersOf(from.Spec.Pod.InitContainers)
	if r := from.Spec.Pod.Resources; r != nil {
		full.Spec.Resources = new(r.requirements())
	}
	setDefaultRequests(&full.Spec)
	err := p.take(full)
	p.Key = announcedKey(full.UID, full.Namespace, full.Name)
	return err
}

// strangersContainer has the fields of a container that requests depend on.
type strangersContainer struct {
	Name          string                         `json:"name"`
	RestartPolicy *corev1.ContainerRestartPolicy `json:"restartPolicy"`
	Resources     strangersResources             `json:"resources"`
}

func containersOf(all []strangersContainer) []corev1.Container {
	out := make([]corev1.Container, len(all))
	for i, c := range all {
		out[i] = corev1.Container{Name: c.Name, RestartPolicy: c.RestartPolicy, Resources: c.Resources.requirements()}
	}
	return out
}

type strangersResources struct {
	Requests strangersList `json:"requests"`
	Limits   strangersList `json:"limits"`
}

func (r strangersResources) requirements() corev1.ResourceRequirements {
	return corev1.ResourceRequirements{Requests: corev1.ResourceList(r.Requests), Limits: corev1.ResourceList(r.Limits)}
}

// strangersList is a list of amounts that a consumer wrote.
type strangersList corev1.ResourceList

// UnmarshalJSON reads no amount that takes long to compare with others: one that is not of a bearable size counts
// as the largest. It leaves out what is not the name of a resource: a Pod with it is refused.
func (l *strangersList) UnmarshalJSON(data []byte) error {
	var texts map[string]json.RawMessage
	if err := json.Unmarshal(data, &texts); err != nil {
		return err
	}
	*l = make(strangersList, len(texts))
	for name, text := range texts {
		q, ok := quantity.Parse(string(bytes.Trim(text, `"`)))
		if !ok {
			q = *resource.NewQuantity(math.MaxInt64, resource.DecimalSI)
		}
		if len(validation.IsQualifiedName(name)) == 0 {
			(*l)[corev1.ResourceName(name)] = q
		}
	}
	return nil
}

// DeepCopyObject implements runtime.Object. It is no copy: nothing in it ever changes.
func (p *shadowPod) DeepCopyObject() runtime.Object { return p }
