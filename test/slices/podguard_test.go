package slices

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"

	corev1beta1 "github.com/liqotech/liqo/apis/core/v1beta1"
	offloadingv1beta1 "github.com/liqotech/liqo/apis/offloading/v1beta1"
	"github.com/liqotech/liqo/pkg/consts"
	kubelet "github.com/liqotech/liqo/pkg/virtualKubelet/forge"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"proffer.dev/proffer/test/slices/lab"
)

// withPodGuard installs the component slice-pod-guard, with an operator that writes its list.
func withPodGuard(t *testing.T) {
	t.Helper()
	lab.Cleanup(t, func(ctx context.Context) error {
		err := provider.RestartOperator(ctx)
		for _, args := range [][]string{
			{"-n", "proffer-system", "delete", "rolebinding,role,admissionparams", "proffer-placements"},
			{"delete", "clusterrolebinding,clusterrole", "proffer-slice-pod-guard"},
			{"delete", "validatingadmissionpolicybinding,validatingadmissionpolicy", "proffer-slice-pod-deletion-guard", "proffer-slice-pod-overhead-guard"},
		} {
			err = errors.Join(err, provider.Do(ctx, args...))
		}
		return err
	})
	withComponent(t, "slice-pod-guard")
	lab.Must(t, provider.RestartOperator(t.Context()))
}

// offload has Liqo offload a new namespace of the consumer, and returns its name on the provider.
func offload(t *testing.T, consumer *lab.Cluster, name string) string {
	t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	offloading := &offloadingv1beta1.NamespaceOffloading{
		ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: consts.DefaultNamespaceOffloadingName},
		Spec: offloadingv1beta1.NamespaceOffloadingSpec{
			NamespaceMappingStrategy: offloadingv1beta1.DefaultNameMappingStrategyType,
			PodOffloadingStrategy:    offloadingv1beta1.LocalAndRemotePodOffloadingStrategyType,
			ClusterSelector:          corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{}}, // all clusters
		},
	}
	var remote string
	lab.Cleanup(t, func(ctx context.Context) error {
		err := client.IgnoreNotFound(consumer.Client.Delete(ctx, offloading))
		if remote != "" {
			err = errors.Join(err, lab.Await(ctx, "the namespace is gone from the provider", func(ctx context.Context) error {
				return isGone(ctx, provider, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: remote}})
			}))
		}
		return errors.Join(err, consumer.Client.Delete(ctx, namespace))
	})
	lab.Must(t, errors.Join(consumer.Client.Create(t.Context(), namespace), consumer.Client.Create(t.Context(), offloading)))
	lab.Eventually(t, "Liqo creates the namespace on the provider", func(ctx context.Context) error {
		var all corev1.NamespaceList
		if err := provider.Client.List(ctx, &all, client.MatchingLabels{consts.RemoteClusterID: consumer.ID}); err != nil {
			return err
		}
		for i := range all.Items {
			if all.Items[i].Annotations[consts.RemoteNamespaceOriginalNameAnnotationKey] == name {
				remote = all.Items[i].Name
				return nil
			}
		}
		return errors.New("not yet")
	})
	return remote
}

// localPod is a pod on the consumer's virtual node as Liqo's kubelet finds it: the webhook there has
// added the toleration, the scheduler the name of the node, and the kubelet itself the label.
func localPod(node string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: "web", Namespace: "local", Labels: map[string]string{"app": "web", consts.LocalPodLabelKey: consts.LocalPodLabelValue},
		},
		Spec: corev1.PodSpec{
			NodeName: node, SchedulerName: corev1.DefaultSchedulerName, RestartPolicy: corev1.RestartPolicyAlways,
			Containers: []corev1.Container{{
				Name: "web", Image: "registry.example.com/web",
				Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse("100m")}},
			}},
			Tolerations: []corev1.Toleration{
				{Key: consts.VirtualNodeTolerationKey, Operator: corev1.TolerationOpExists},
				{Key: corev1.TaintNodeNotReady, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute},
			},
		},
	}
}

// forgeShadowPod forges a ShadowPod with the code of Liqo's kubelet, for the virtual node of the
// slice. The remote one is nil for a new one.
func (s slice) forgeShadowPod(ctx context.Context, local *corev1.Pod, remote *offloadingv1beta1.ShadowPod, namespace string) (*offloadingv1beta1.ShadowPod, error) {
	node := s.emptyVirtualNode()
	if err := s.consumer.Client.Get(ctx, client.ObjectKeyFromObject(node), node); err != nil {
		return nil, err
	}
	kubelet.Init(corev1beta1.ClusterID(s.consumer.ID), corev1beta1.ClusterID(provider.ID), node.Name, "")
	options := kubelet.NewForgingOpts(node.Spec.OffloadingPatch)
	noSecret := func(string) string { return "" }
	noAddress := func() string { return "" }
	return kubelet.RemoteShadowPod(local, remote, namespace, &options,
		kubelet.APIServerSupportMutator(kubelet.APIServerSupportDisabled, nil, "default", noSecret, noAddress, "", ""),
		kubelet.ServiceAccountMutator(kubelet.APIServerSupportDisabled, nil), kubelet.NodeSelectorMutator(options.NodeSelector),
		kubelet.TolerationsMutator(options.Tolerations), kubelet.AffinityMutator(options.Affinity)), nil
}

// Everything is Liqo's own: the identity of the slice, the namespace, the forging of the ShadowPod,
// the webhooks, and the controller that makes a Pod of it.
func TestPodsOfASliceKeepTheirPlace(t *testing.T) {
	withPodGuard(t)
	const placedPolicy = `{class: gold, offer: {fixed: {cpu: "8", memory: 8Gi, pods: "20"}},
		slices: {enforcePlacement: true, nodeSelector: {pool: gold}}}`
	newPolicy(t, "placed", placedPolicy)
	newPolicy(t, "free", `{class: silver, offer: {fixed: {cpu: "8", memory: 8Gi, pods: "20"}}}`)
	small := amounts{"cpu": "2", "memory": "1Gi", "pods": "5"}
	s, other := newSlice(t, rome, "placed", "gold", small), newSlice(t, rome, "unplaced", "silver", small)
	s.awaitGrant(t, granted("placed", small))
	other.awaitGrant(t, granted("free", small))
	requireTypes(t, "proffer-slice-pod-guard", "proffer-slice-pod-deletion-guard", "proffer-slice-pod-overhead-guard")

	t.Run("the list has the user of Liqo's Quota", func(t *testing.T) {
		list := &unstructured.Unstructured{}
		list.SetGroupVersionKind(schema.GroupVersionKind{Group: "proffer.dev", Version: "v1alpha1", Kind: "AdmissionParams"})
		lab.Must(t, provider.Client.Get(t.Context(), client.ObjectKey{Namespace: "proffer-system", Name: "proffer-placements"}, list))
		listed, _, err := unstructured.NestedStringMap(list.Object, "data")
		lab.Must(t, err)
		// Another test may have left a Grant that no policy decides on.
		maps.DeleteFunc(listed, func(_, requirements string) bool { return requirements == "?" })
		quota := s.emptyQuota()
		lab.Must(t, provider.Client.Get(t.Context(), client.ObjectKeyFromObject(quota), quota))
		mark := fmt.Sprintf("%s/%d", list.GetUID(), list.GetGeneration())
		lab.Check(t, differ("the list", map[string]string{quota.Spec.User: "pool=gold", ".complete": mark}, listed))
	})

	namespace := offload(t, rome, "guarded")
	var sender, otherSender client.Client
	lab.Eventually(t, "rome has the kubeconfigs of its slices", func(ctx context.Context) (err error) {
		if sender, err = rome.SliceAt(ctx, provider, s.name); err != nil {
			return err
		}
		otherSender, err = rome.SliceAt(ctx, provider, other.name)
		return err
	})
	var sent *offloadingv1beta1.ShadowPod
	// The namespace may not have its level yet: then Liqo's kubelet tries again, too.
	lab.Eventually(t, "what Liqo's kubelet sends is accepted", func(ctx context.Context) (err error) {
		if sent, err = s.forgeShadowPod(ctx, localPod(s.name), nil, namespace); err != nil {
			return err
		}
		return sender.Create(ctx, sent)
	})
	lab.Eventually(t, "Liqo makes a Pod of it", func(ctx context.Context) error {
		var pod corev1.Pod
		if err := provider.Client.Get(ctx, client.ObjectKeyFromObject(sent), &pod); err != nil {
			return err
		}
		return differ("the Pod's node selector", map[string]string{"pool": "gold"}, pod.Spec.NodeSelector)
	})
	lab.Eventually(t, "Liqo's kubelet can change the labels", func(ctx context.Context) error {
		local := localPod(s.name)
		local.Labels["version"] = "2"
		if err := provider.Client.Get(ctx, client.ObjectKeyFromObject(sent), sent); err != nil {
			return err
		}
		changed, err := s.forgeShadowPod(ctx, local, sent, namespace)
		if err != nil {
			return err
		}
		if err := sender.Update(ctx, changed); err != nil {
			return err
		}
		var pod corev1.Pod
		if err := provider.Client.Get(ctx, client.ObjectKeyFromObject(sent), &pod); err != nil {
			return err
		}
		return differ("the Pod's label", "2", pod.Labels["version"])
	})

	t.Run("what Liqo's kubelet never sends is refused", func(t *testing.T) { testForbiddenPods(t, s, sender, namespace) })
	t.Run("a slice of another policy is not restricted in its placement", func(t *testing.T) {
		shadow, err := other.forgeShadowPod(t.Context(), localPod(other.name), nil, namespace)
		lab.Must(t, err)
		shadow.Name = "unplaced"
		shadow.Spec.Pod.Tolerations = append(shadow.Spec.Pod.Tolerations, corev1.Toleration{Operator: corev1.TolerationOpExists})
		lab.Check(t, otherSender.Create(t.Context(), shadow, client.DryRunAll))
		shadow.Spec.Pod.NodeName = "node-1"
		lab.Check(t, refused(otherSender.Create(t.Context(), shadow, client.DryRunAll), metav1.StatusReasonInvalid, "spec.pod.nodeName is not for consumers"))
		// It cannot change what the placed slice has sent, either: Liqo's webhook holds the creator.
		lab.Must(t, provider.Client.Get(t.Context(), client.ObjectKeyFromObject(sent), sent))
		sent.Labels["version"] = "3"
		if err := otherSender.Update(t.Context(), sent, client.DryRunAll); err == nil || !strings.Contains(err.Error(), "creator name cannot be modified") {
			t.Errorf("another slice changes a pod: %v", err)
		}
	})
	t.Run("a pod that violates the level becomes no Pod", func(t *testing.T) { testPrivilegedPod(t, s, sender, namespace) })
	t.Run("a policy that is deleted leaves its slices on the list", func(t *testing.T) {
		lab.Must(t, provider.Client.Delete(t.Context(), emptyPolicy("placed")))
		lab.Eventually(t, "the grant is withdrawn", func(ctx context.Context) error {
			rs, err := s.replica(ctx)
			if err != nil {
				return err
			}
			return differ("the reason", "ProfferWithdrawn", answerOf(rs).Reason)
		})
		shadow, err := s.forgeShadowPod(t.Context(), localPod(s.name), nil, namespace)
		lab.Must(t, err)
		shadow.Name, shadow.Spec.Pod.NodeSelector = "late", nil
		lab.Check(t, refused(sender.Create(t.Context(), shadow, client.DryRunAll), metav1.StatusReasonInvalid, "spec.pod.nodeSelector lacks pool=gold"))
		newPolicy(t, "placed", placedPolicy)
	})
	lab.Check(t, sender.Delete(t.Context(), sent))
}

// testForbiddenPods sends pods as the slice that differ from those of Liqo's kubelet in one point.
func testForbiddenPods(t *testing.T, s slice, sender client.Client, namespace string) {
	t.Helper()
	for message, change := range map[string]func(*offloadingv1beta1.ShadowPod){
		"spec.pod.nodeSelector lacks pool=gold: write all of pool=gold there, as status.nodeSelector of the ResourceSlice has them": func(p *offloadingv1beta1.ShadowPod) {
			p.Spec.Pod.NodeSelector = nil
		},
		"spec.pod.nodeSelector lacks pool=gold": func(p *offloadingv1beta1.ShadowPod) {
			p.Spec.Pod.NodeSelector = map[string]string{"pool": "silver"}
		},
		"spec.pod.priorityClassName is not for consumers: leave it out": func(p *offloadingv1beta1.ShadowPod) {
			p.Spec.Pod.PriorityClassName = "system-cluster-critical"
		},
		"spec.pod.nodeName is not for consumers: leave it out, and this cluster's scheduler chooses the node": func(p *offloadingv1beta1.ShadowPod) {
			p.Spec.Pod.NodeName = "node-1"
		},
		"a toleration without a key tolerates every taint: write the keys of the taints to tolerate": func(p *offloadingv1beta1.ShadowPod) {
			p.Spec.Pod.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
		},
		"the toleration of virtual-node.liqo.io/not-allowed is not for consumers: leave it out": func(p *offloadingv1beta1.ShadowPod) {
			p.Spec.Pod.Tolerations = localPod(s.name).Spec.Tolerations
		},
		"spec.pod.resources is not counted in Liqo's Quota: leave it out, and write the resources of each container": func(p *offloadingv1beta1.ShadowPod) {
			p.Spec.Pod.Resources = &corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse("64")}}
		},
		"the label liqo.io/shadowPod marks pods that this cluster itself has sent to another: leave it out": func(p *offloadingv1beta1.ShadowPod) {
			p.Labels[consts.LocalPodLabelKey] = consts.LocalPodLabelValue
		},
	} {
		shadow, err := s.forgeShadowPod(t.Context(), localPod(s.name), nil, namespace)
		lab.Must(t, err)
		shadow.Name = "forbidden"
		if err := sender.Create(t.Context(), shadow.DeepCopy(), client.DryRunAll); err != nil {
			t.Fatalf("without the change: %v", err)
		}
		change(shadow)
		lab.Check(t, refused(sender.Create(t.Context(), shadow, client.DryRunAll), metav1.StatusReasonInvalid, message))
	}
}

// uncounted are ShadowPods of which Liqo's Quota counts less than their Pod requests, by what the
// guard says of them.
var uncounted = map[string]func(*corev1.PodSpec){
	"write a request for each limit of web": func(p *corev1.PodSpec) {
		p.Containers[0].Resources = corev1.ResourceRequirements{Limits: corev1.ResourceList{"cpu": resource.MustParse("100")}}
	},
	"make init-0, init-1, init-2 containers, or request 0": func(p *corev1.PodSpec) {
		initialize(p, "2", "2", "2")
		for i := range p.InitContainers {
			p.InitContainers[i].RestartPolicy = new(corev1.ContainerRestartPolicyAlways)
		}
	},
	"spec.pod.resources is not counted in Liqo's Quota": func(p *corev1.PodSpec) {
		p.Resources = &corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse("50")}}
	},
	"which init container requests the most cpu": func(p *corev1.PodSpec) { initialize(p, "1001m", "2") },
	"a request is negative": func(p *corev1.PodSpec) {
		p.Containers[0].Resources.Requests = corev1.ResourceList{"cpu": resource.MustParse("-98")}
	},
	"cpu is counted in millicores": func(p *corev1.PodSpec) {
		p.Containers[0].Resources.Requests = corev1.ResourceList{"cpu": resource.MustParse("1u")}
	},
	"write at most 3600": func(p *corev1.PodSpec) { p.TerminationGracePeriodSeconds = new(int64(1 << 30)) },
}

// initialize adds init containers with these requests of cpu.
func initialize(p *corev1.PodSpec, cpus ...string) {
	for i, cpu := range cpus {
		p.InitContainers = append(p.InitContainers, corev1.Container{
			Name: fmt.Sprintf("init-%d", i), Image: "registry.example.com/init",
			Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse(cpu)}},
		})
	}
}

// Without the guard, Liqo's webhook accepts more than the grant; with it, the API server does not.
func TestPodsThatLiqosQuotaDoesNotSee(t *testing.T) {
	newPolicy(t, "free", `{class: silver, offer: {fixed: {cpu: "8", memory: 8Gi, pods: "20"}}}`)
	small := amounts{"cpu": "2", "memory": "1Gi", "pods": "5"}
	s := newSlice(t, rome, "unseen", "silver", small)
	s.awaitGrant(t, granted("free", small))
	namespace := offload(t, rome, "unseen")
	var sender client.Client
	lab.Eventually(t, "rome has the kubeconfig of its slice", func(ctx context.Context) (err error) {
		sender, err = rome.SliceAt(ctx, provider, s.name)
		return err
	})
	forge := func(name, cpu string) *offloadingv1beta1.ShadowPod {
		shadow, err := s.forgeShadowPod(t.Context(), localPod(s.name), nil, namespace)
		lab.Must(t, err)
		shadow.Name = name
		shadow.Spec.Pod.Containers[0].Resources.Requests["cpu"] = resource.MustParse(cpu)
		return shadow
	}
	try := func(cpu string) error { return sender.Create(t.Context(), forge("tried", cpu), client.DryRunAll) }
	requireFull := func(cpu string) {
		t.Helper()
		if err := try(cpu); err == nil || !strings.Contains(err.Error(), "quota usage exceeded") {
			t.Errorf("a pod of %s cpu: %v, want Liqo's refusal", cpu, err)
		}
	}
	lab.Eventually(t, "a pod within the grant is accepted", func(context.Context) error { return try("2") })
	requireFull("2001m")
	for name, change := range uncounted {
		shadow := forge("uncounted", "0")
		change(&shadow.Spec.Pod)
		if err := sender.Create(t.Context(), shadow, client.DryRunAll); err != nil {
			t.Errorf("Liqo itself refuses %q: %v", name, err)
		}
	}
	negative := forge("negative", "-98")
	lab.Must(t, sender.Create(t.Context(), negative))
	if err := try("100"); err != nil {
		t.Errorf("a negative request makes no room: %v", err)
	}
	lab.Must(t, sender.Delete(t.Context(), negative))
	requireFull("2001m")

	kept := forge("kept", "2")
	lab.Must(t, sender.Create(t.Context(), kept))
	requireFull("1m")
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: kept.Name}}
	lab.Eventually(t, "Liqo makes a Pod of it", func(ctx context.Context) error {
		return provider.Client.Get(ctx, client.ObjectKeyFromObject(pod), pod)
	})
	orphan := client.PropagationPolicy(metav1.DeletePropagationOrphan)
	for range 2 { // No garbage collector runs here, so the ShadowPod keeps its finalizer.
		lab.Must(t, sender.Delete(t.Context(), kept, orphan))
	}
	if err := errors.Join(try("4"), provider.Client.Get(t.Context(), client.ObjectKeyFromObject(pod), pod)); err != nil {
		t.Errorf("two deletions of a pod of 2 cpu leave no room for 4: %v", err)
	}
	lab.Must(t, provider.Client.Get(t.Context(), client.ObjectKeyFromObject(kept), kept))
	kept.Finalizers = nil
	lab.Must(t, errors.Join(sender.Update(t.Context(), kept), provider.Client.Delete(t.Context(), pod)))

	withPodGuard(t)
	requireTypes(t, "proffer-slice-pod-guard", "proffer-slice-pod-deletion-guard", "proffer-slice-pod-overhead-guard")
	for message, change := range uncounted {
		shadow := forge("uncounted", "0")
		change(&shadow.Spec.Pod)
		lab.Eventually(t, "the guard refuses it: "+message, func(ctx context.Context) error {
			return refused(sender.Create(ctx, shadow.DeepCopy(), client.DryRunAll), metav1.StatusReasonInvalid, message)
		})
	}
	counted := forge("counted", "2")
	lab.Eventually(t, "what Liqo's kubelet sends is accepted", func(ctx context.Context) error { return sender.Create(ctx, counted) })
	lab.Eventually(t, "the guard refuses to leave its Pod behind", func(ctx context.Context) error {
		return refused(sender.Delete(ctx, counted, client.DryRunAll, orphan), metav1.StatusReasonInvalid, "a ShadowPod is deleted together with its Pod")
	})
	lab.Check(t, sender.Delete(t.Context(), counted))
	t.Run("a slice whose deleted pods run on gets no new ones", func(t *testing.T) {
		send := func(name string) *corev1.Pod { return runOn(t, sender, forge(name, "2")) }
		first, second := send("first"), send("second")
		next := forge("next", "1")
		lab.Eventually(t, "the guard refuses a third one", func(ctx context.Context) error {
			return refused(sender.Create(ctx, next.DeepCopy(), client.DryRunAll), metav1.StatusReasonInvalid, "the pods of your ResourceSlice request more than it was granted")
		})
		endPods(t, first, second)
		lab.Eventually(t, "it is accepted when they have ended", func(ctx context.Context) error { return sender.Create(ctx, next.DeepCopy(), client.DryRunAll) })
	})
}

// runOn sends a ShadowPod whose Pod is bound, and deletes it. No garbage collector runs here, so the Pod stays.
func runOn(t *testing.T, sender client.Client, shadow *offloadingv1beta1.ShadowPod) *corev1.Pod {
	t.Helper()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "runs-" + shadow.Name}}
	lab.Must(t, provider.Client.Create(t.Context(), node))
	lab.Cleanup(t, func(ctx context.Context) error {
		return provider.Client.Delete(ctx, node)
	})
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: shadow.Namespace, Name: shadow.Name}}
	lab.Eventually(t, "the Quota has room", func(ctx context.Context) error { return sender.Create(ctx, shadow) })
	lab.Eventually(t, "Liqo makes a Pod of it", func(ctx context.Context) error {
		return provider.Client.Get(ctx, client.ObjectKeyFromObject(pod), pod)
	})
	binding := &corev1.Binding{Target: corev1.ObjectReference{Kind: "Node", Name: node.Name}}
	lab.Must(t, errors.Join(provider.Client.SubResource("binding").Create(t.Context(), pod, binding), sender.Delete(t.Context(), shadow)))
	return pod
}

// endPods ends pods as their kubelets do.
func endPods(t *testing.T, pods ...*corev1.Pod) {
	t.Helper()
	for _, pod := range pods {
		lab.Must(t, provider.Client.Delete(t.Context(), pod, client.GracePeriodSeconds(0)))
	}
}

func testPrivilegedPod(t *testing.T, s slice, sender client.Client, namespace string) {
	t.Helper()
	shadow, err := s.forgeShadowPod(t.Context(), localPod(s.name), nil, namespace)
	lab.Must(t, err)
	shadow.Name = "privileged"
	shadow.Spec.Pod.HostNetwork = true
	lab.Must(t, sender.Create(t.Context(), shadow))
	lab.Eventually(t, "Liqo's attempt to make the Pod is refused", func(ctx context.Context) error {
		var events corev1.EventList
		if err := provider.Client.List(ctx, &events, client.InNamespace(namespace)); err != nil {
			return err
		}
		for i := range events.Items {
			e := &events.Items[i]
			if e.InvolvedObject.Name == shadow.Name && strings.Contains(e.Message, `violates PodSecurity "baseline:`) {
				return nil
			}
		}
		return fmt.Errorf("%d Events, none of them says so", len(events.Items))
	})
	lab.Check(t, isGone(t.Context(), provider, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: shadow.Name}}))
	lab.Check(t, sender.Delete(t.Context(), shadow))
}
