package deploy

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	offloadingv1beta1 "github.com/liqotech/liqo/apis/offloading/v1beta1"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/test"
)

// offloadedNamespace is one that Liqo created for rome.
const offloadedNamespace = "deploy-test-offloaded"

// The users of rome's slices: of one whose policy enforces placement, of one whose does not, and of
// one that the list has no room for.
const (
	placedUser = "mine-a8a4c692b93b"
	freeUser   = "other-a8a4c692b93b"
)

// offloading is the part of a peering in which pods are sent.
type offloading struct {
	// placed and free are slices of rome.
	placed, free client.Client
	admin        client.Client
}

// newOffloading installs Liqo's CRD and roles, and the component with a list that requires pool=gold
// and zone=a of the pods of one slice.
func newOffloading(t *testing.T) *offloading {
	t.Helper()
	test.Must(t, offloadingv1beta1.AddToScheme(scheme.Scheme))
	liqoCRD(t, "offloading.liqo.io_shadowpods.yaml")
	test.Must(t, client.IgnoreAlreadyExists(cluster.client.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: offloadedNamespace, Labels: map[string]string{"liqo.io/remote-cluster-id": "rome"},
		Annotations: map[string]string{"liqo.io/managed-by-namespace-map": tenantNamespace + "/provider"},
	}})))
	setPodSecurity(t, "baseline")
	// Liqo binds this role to the group of a consumer's slices.
	meta := metav1.ObjectMeta{Namespace: offloadedNamespace, Name: "deploy-test-rome"}
	create(t, &rbacv1.Role{ObjectMeta: meta, Rules: rulesOf(t, "liqo-virtual-kubelet-remote")})
	create(t, &rbacv1.RoleBinding{
		ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: meta.Name},
		Subjects: []rbacv1.Subject{
			{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: "rome"},
			{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "rome"},
		},
	})
	o := &offloading{placed: as(t, placedUser, "rome"), free: as(t, freeUser, "rome"), admin: cluster.client}
	applyComponent(t, "slice-pod-guard")
	removeParams(t, "proffer-placements")
	o.list(t, map[string]string{placedUser: "pool=gold,zone=a"})
	test.Eventually(t, func() error {
		return refusal{metav1.StatusReasonInvalid, "spec.pod.nodeSelector lacks pool=gold, zone=a"}.of(o.send(t, o.placed, setPlace(nil)))
	})
	return o
}

// list writes the list as the operator does.
func (o *offloading) list(t *testing.T, entries map[string]string) {
	t.Helper()
	o.replaceList(t, nil)
	list := o.present(t)
	list.Data = map[string]string{".complete": fmt.Sprintf("%s/%d", list.UID, list.Generation+1)}
	maps.Copy(list.Data, entries)
	test.Must(t, cluster.client.Update(t.Context(), list))
}

// present returns the list as it is.
func (o *offloading) present(t *testing.T) *v1alpha1.AdmissionParams {
	t.Helper()
	list := &v1alpha1.AdmissionParams{}
	test.Must(t, o.admin.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "proffer-placements"}, list))
	return list
}

// replaceList has the list exactly these entries.
func (o *offloading) replaceList(t *testing.T, entries map[string]string) {
	t.Helper()
	writeParams(t, "proffer-placements", entries)
}

// writeParams has a list exactly these entries.
func writeParams(t *testing.T, name string, entries map[string]string) {
	t.Helper()
	list := v1alpha1.AdmissionParams{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	if err := cluster.client.Get(t.Context(), client.ObjectKeyFromObject(&list), &list); err != nil {
		test.Must(t, client.IgnoreNotFound(err))
		list.Data = entries
		test.Must(t, cluster.client.Create(t.Context(), &list))
		return
	}
	list.Data = entries
	test.Must(t, cluster.client.Update(t.Context(), &list))
}

func setPodSecurity(t *testing.T, level string) {
	t.Helper()
	labelPodSecurity(t, fmt.Sprintf("%q", level))
}

// labelPodSecurity sets the label of the namespace to a JSON value. null removes it.
func labelPodSecurity(t *testing.T, value string) {
	t.Helper()
	patch := fmt.Appendf(nil, `{"metadata":{"labels":{"pod-security.kubernetes.io/enforce":%s}}}`, value)
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: offloadedNamespace}}
	test.Must(t, cluster.client.Patch(t.Context(), namespace, client.RawPatch(types.MergePatchType, patch)))
}

// send returns the answer to a dry-run create of a ShadowPod that Liqo's kubelet could have sent,
// but for the changes.
func (o *offloading) send(t *testing.T, by client.Client, changes ...func(*offloadingv1beta1.ShadowPod)) error {
	t.Helper()
	pod := aShadowPod("sent")
	for _, change := range changes {
		change(pod)
	}
	return by.Create(t.Context(), pod, client.DryRunAll)
}

func aShadowPod(name string) *offloadingv1beta1.ShadowPod {
	return &offloadingv1beta1.ShadowPod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: offloadedNamespace, Name: name,
			Labels: map[string]string{"app": "web", "offloading.liqo.io/origin": "rome"},
		},
		Spec: offloadingv1beta1.ShadowPodSpec{Pod: corev1.PodSpec{
			Containers: []corev1.Container{{Name: "c", Image: "registry.example.com/web", Resources: corev1.ResourceRequirements{
				Requests: corev1.ResourceList{"cpu": resource.MustParse("100m")},
			}}},
			NodeSelector: map[string]string{"pool": "gold", "zone": "a"},
			Tolerations: []corev1.Toleration{
				{Key: "node.kubernetes.io/not-ready", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute},
			},
		}},
	}
}

func setPlace(labels map[string]string) func(*offloadingv1beta1.ShadowPod) {
	return func(p *offloadingv1beta1.ShadowPod) { p.Spec.Pod.NodeSelector = labels }
}

func tolerate(t corev1.Toleration) func(*offloadingv1beta1.ShadowPod) {
	return func(p *offloadingv1beta1.ShadowPod) { p.Spec.Pod.Tolerations = append(p.Spec.Pod.Tolerations, t) }
}

func inSpec(change func(*corev1.PodSpec)) func(*offloadingv1beta1.ShadowPod) {
	return func(p *offloadingv1beta1.ShadowPod) { change(&p.Spec.Pod) }
}

// resources are requests and limits as in "cpu=1 memory=1Gi"; "" stands for none.
func resources(requests, limits string) corev1.ResourceRequirements {
	list := func(text string) (out corev1.ResourceList) {
		for pair := range strings.FieldsSeq(text) {
			name, amount, _ := strings.Cut(pair, "=")
			if out == nil {
				out = corev1.ResourceList{}
			}
			out[corev1.ResourceName(name)] = resource.MustParse(amount)
		}
		return out
	}
	return corev1.ResourceRequirements{Requests: list(requests), Limits: list(limits)}
}

// request sets the resources of the only container.
func request(requests, limits string) func(*offloadingv1beta1.ShadowPod) {
	return inSpec(func(s *corev1.PodSpec) { s.Containers[0].Resources = resources(requests, limits) })
}

// initialize sets init containers with these requests.
func initialize(requests ...string) func(*offloadingv1beta1.ShadowPod) {
	return inSpec(func(s *corev1.PodSpec) {
		s.InitContainers = nil
		for i, r := range requests {
			s.InitContainers = append(s.InitContainers, corev1.Container{Name: fmt.Sprintf("i%d", i), Image: "registry.example.com/init", Resources: resources(r, "")})
		}
	})
}

// sidecar sets an init container that keeps running.
func sidecar(requests, limits string) func(*offloadingv1beta1.ShadowPod) {
	return inSpec(func(s *corev1.PodSpec) {
		s.InitContainers = []corev1.Container{{
			Name: "proxy", Image: "registry.example.com/proxy", Resources: resources(requests, limits), RestartPolicy: new(corev1.ContainerRestartPolicyAlways),
		}}
	})
}

func allOf(changes ...func(*offloadingv1beta1.ShadowPod)) func(*offloadingv1beta1.ShadowPod) {
	return func(p *offloadingv1beta1.ShadowPod) {
		for _, change := range changes {
			change(p)
		}
	}
}

// misplacements are what a ShadowPod must not have.
var misplacements = map[string]struct {
	change func(*offloadingv1beta1.ShadowPod)
	// refused is the message.
	refused string
	// placedOnly: only slices whose policy enforces placement are refused this.
	placedOnly bool
}{
	"no node selector":  {setPlace(nil), "spec.pod.nodeSelector lacks pool=gold, zone=a: write all of pool=gold,zone=a there, as status.nodeSelector of the ResourceSlice has them", true},
	"a part of it":      {setPlace(map[string]string{"pool": "gold"}), "lacks zone=a:", true},
	"another value":     {setPlace(map[string]string{"pool": "gold", "zone": "b"}), "lacks zone=a:", true},
	"the value's case":  {setPlace(map[string]string{"pool": "Gold", "zone": "a"}), "lacks pool=gold:", true},
	"the key's case":    {setPlace(map[string]string{"Pool": "gold", "zone": "a"}), "lacks pool=gold:", true},
	"a space":           {setPlace(map[string]string{"pool": "gold ", "zone": "a"}), "lacks pool=gold:", true},
	"a value with more": {setPlace(map[string]string{"pool": "gold,zone=a"}), "lacks pool=gold, zone=a:", true},
	"a key with more":   {setPlace(map[string]string{"pool=gold,zone": "a"}), "lacks pool=gold, zone=a:", true},
	"an affinity in place of it": {inSpec(func(s *corev1.PodSpec) {
		s.NodeSelector = nil
		s.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
			NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{
				{Key: "pool", Operator: corev1.NodeSelectorOpIn, Values: []string{"gold"}},
			}}},
		}}}
	}), "lacks pool=gold, zone=a:", true},
	"a priority":                    {inSpec(func(s *corev1.PodSpec) { s.PriorityClassName = "system-cluster-critical" }), "spec.pod.priorityClassName is not for consumers: leave it out", false},
	"the name of a node":            {inSpec(func(s *corev1.PodSpec) { s.NodeName = "node-1" }), "spec.pod.nodeName is not for consumers: leave it out", false},
	"a toleration of everything":    {tolerate(corev1.Toleration{Operator: corev1.TolerationOpExists}), "a toleration without a key tolerates every taint: write the keys of the taints to tolerate", true},
	"a toleration of every key":     {tolerate(corev1.Toleration{Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule}), "a toleration without a key", true},
	"a toleration of nothing":       {tolerate(corev1.Toleration{}), "a toleration without a key", true},
	"a toleration of virtual nodes": {tolerate(corev1.Toleration{Key: "virtual-node.liqo.io/not-allowed", Operator: corev1.TolerationOpExists}), "the toleration of virtual-node.liqo.io/not-allowed is not for consumers: leave it out", false},
	"the same with a value":         {tolerate(corev1.Toleration{Key: "virtual-node.liqo.io/not-allowed", Operator: corev1.TolerationOpEqual, Value: "true"}), "the toleration of virtual-node.liqo.io/not-allowed", false},
	"the same with an effect":       {tolerate(corev1.Toleration{Key: "virtual-node.liqo.io/not-allowed", Value: "true", Effect: corev1.TaintEffectNoExecute}), "the toleration of virtual-node.liqo.io/not-allowed", false},
	"resources of the pod": {inSpec(func(s *corev1.PodSpec) {
		s.Resources = &corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse("64")}}
	}), "spec.pod.resources is not counted in Liqo's Quota: leave it out, and write the resources of each container", false},
	"empty resources of the pod": {inSpec(func(s *corev1.PodSpec) { s.Resources = &corev1.ResourceRequirements{} }), "spec.pod.resources is not counted", false},
	"an overhead":                {inSpec(func(s *corev1.PodSpec) { s.Overhead = corev1.ResourceList{"cpu": resource.MustParse("64")} }), "spec.pod.overhead is not counted in Liqo's Quota: leave it out", false},
	"a limit without a request":  {request("memory=1Gi", "cpu=100 memory=1Gi"), "a limit without a request is not counted in Liqo's Quota: write a request for each limit of c", false},
	"only limits":                {request("", "nvidia.com/gpu=8"), "write a request for each limit of c", false},
	"a limit of an init container": {inSpec(func(s *corev1.PodSpec) {
		s.InitContainers = []corev1.Container{{Name: "i", Image: "registry.example.com/init", Resources: resources("", "cpu=100")}}
	}), "write a request for each limit of i", false},
	"a sidecar with a request":                {sidecar("cpu=30", ""), "Liqo's Quota does not add the requests of init containers with the restartPolicy Always: make proxy containers, or request 0", false},
	"a sidecar with a small request":          {sidecar("cpu=0 memory=1", ""), "make proxy containers", false},
	"a sidecar with a limit":                  {sidecar("", "cpu=30"), "write a request for each limit of proxy", false},
	"a negative request":                      {request("memory=-64Gi", ""), "a request is negative: write 0 or more", false},
	"a negative request of an init container": {initialize("example.com/device=-1"), "a request is negative", false},
	"a negative request of cpu":               {request("cpu=-96", ""), "a request is negative", false},
	"a fraction of a millicore":               {request("cpu=1u", ""), "cpu is counted in millicores: write requests of cpu like 1500m, 1.5 or 2", false},
	"a fraction of it in an init container":   {initialize("cpu=100500u"), "cpu is counted in millicores", false},
	"an init container behind a smaller one":  {initialize("cpu=101m", "cpu=1"), "Liqo's Quota does not see which init container requests the most cpu: let each of them request as much as the largest one", false},
	"the same in the next core":               {initialize("cpu=1100m", "cpu=1900m"), "Liqo's Quota does not see which init container", false},
	"a year of grace":                         {inSpec(func(s *corev1.PodSpec) { s.TerminationGracePeriodSeconds = new(int64(365 * 24 * 3600)) }), "spec.pod.terminationGracePeriodSeconds after Liqo's Quota has stopped to count it: write at most 3600", false},
	"the label of a pod sent on":              {func(p *offloadingv1beta1.ShadowPod) { p.Labels["liqo.io/shadowPod"] = "true" }, "the label liqo.io/shadowPod marks pods that this cluster itself has sent to another: leave it out", false},
	"the label with any other value":          {func(p *offloadingv1beta1.ShadowPod) { p.Labels["liqo.io/shadowPod"] = "" }, "the label liqo.io/shadowPod", false},
}

func TestAConsumersPodsKeepTheirPlace(t *testing.T) {
	o := newOffloading(t)
	test.Must(t, o.send(t, o.placed))
	test.Must(t, o.send(t, o.free, setPlace(nil)))

	for name, m := range misplacements {
		refused := refusal{metav1.StatusReasonInvalid, m.refused}
		if err := refused.of(o.send(t, o.placed, m.change)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for kind, by := range map[string]client.Client{
			"a slice without placement": o.free, "the control plane": as(t, "rome", "liqo.io"),
			// A certificate can have several groups.
			"a slice in groups of its choice": as(t, freeUser, "rome", "system:serviceaccounts", "system:serviceaccounts:liqo", "system:nodes"),
		} {
			err := o.send(t, by, m.change)
			if m.placedOnly && err != nil {
				t.Errorf("%s, by %s: %v", name, kind, err)
			}
			if !m.placedOnly && refused.of(err) != nil {
				t.Errorf("%s, by %s: %v", name, kind, refused.of(err))
			}
		}
	}
	t.Run("other fields and other places", func(t *testing.T) {
		test.Must(t, o.send(t, o.placed, setPlace(map[string]string{"pool": "gold", "zone": "a", "disk": "ssd"})))
		test.Must(t, o.send(t, o.placed, tolerate(corev1.Toleration{Key: "gpu", Operator: corev1.TolerationOpExists})))
	})
	t.Run("pods that Liqo's Quota counts as Kubernetes does", func(t *testing.T) {
		for name, change := range map[string]func(*offloadingv1beta1.ShadowPod){
			"nothing":                              request("", ""),
			"requests":                             request("cpu=1500m memory=1Gi", ""),
			"requests in cores":                    request("cpu=64", ""),
			"thousands of cores":                   request("cpu=2000", ""),
			"limits above requests":                request("cpu=0 memory=1Gi", "cpu=4 memory=2Gi"),
			"limits like requests":                 request("nvidia.com/gpu=1 cpu=1", "nvidia.com/gpu=1 cpu=1"),
			"a sidecar without resources":          sidecar("", ""),
			"a sidecar with requests of 0":         sidecar("cpu=0 memory=0", "cpu=1 memory=1Gi"),
			"an init container":                    initialize("cpu=4 memory=4Gi"),
			"init containers below the containers": allOf(request("cpu=200m", ""), initialize("cpu=10m", "cpu=200m", "memory=1Gi")),
			"init containers alike":                initialize("cpu=500m", "cpu=500m", "cpu=0", "memory=1Gi"),
			"init containers a core apart":         initialize("cpu=500m", "cpu=1500m"),
			"an hour of grace":                     inSpec(func(s *corev1.PodSpec) { s.TerminationGracePeriodSeconds = new(int64(3600)) }),
		} {
			if err := o.send(t, o.placed, change); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
	t.Run("the API server bounds the time of the guard", func(t *testing.T) {
		for n, accepted := range map[int]bool{100: true, 1000: false} {
			began := time.Now()
			err := o.send(t, o.placed, initialize(slices.Repeat([]string{"cpu=1100m"}, n)...))
			if accepted != (err == nil) {
				t.Errorf("%d containers: %v", n, err)
			}
			t.Logf("%d containers are checked in %s", n, time.Since(began))
		}
	})
	t.Run("a slice in groups of its choice is still the slice", func(t *testing.T) {
		by := as(t, placedUser, "rome", "liqo.io", "system:serviceaccounts:liqo")
		test.Must(t, refusal{metav1.StatusReasonInvalid, "lacks pool=gold"}.of(o.send(t, by, setPlace(nil))))
	})
	t.Run("a label without a value", func(t *testing.T) {
		o.list(t, map[string]string{placedUser: "pool="})
		refused := refusal{metav1.StatusReasonInvalid, "spec.pod.nodeSelector lacks pool=:"}
		test.Eventually(t, func() error { return refused.of(o.send(t, o.placed, setPlace(nil))) })
		test.Must(t, o.send(t, o.placed, setPlace(map[string]string{"pool": ""})))
	})
	t.Run("a full list", func(t *testing.T) {
		full := map[string]string{placedUser: "pool=gold"}
		for i := range 10_000 { // 1000 KiB
			full[fmt.Sprintf("%087d-0123456789ab", i)] = "z="
		}
		o.list(t, full)
		refused := refusal{metav1.StatusReasonInvalid, "spec.pod.nodeSelector lacks pool=gold:"}
		test.Eventually(t, func() error { return refused.of(o.send(t, o.placed, setPlace(map[string]string{"pool": ""}))) })
		began := time.Now()
		test.Must(t, o.send(t, o.placed))
		test.Must(t, o.send(t, o.free, setPlace(nil)))
		t.Logf("two ShadowPods are checked in %s", time.Since(began))
	})
	t.Run("a list that somebody has replaced", func(t *testing.T) {
		refused := refusal{metav1.StatusReasonInvalid, "this cluster is about to list what your pods need: try again"}
		o.list(t, map[string]string{placedUser: "pool=silver"})
		earlier := o.present(t).Data
		o.list(t, map[string]string{placedUser: "pool=gold"})
		changed := o.present(t).Data
		changed["other"] = "pool=silver"
		for name, entries := range map[string]map[string]string{
			"nothing": nil, "a list of no build": {placedUser: "pool=gold"}, "a list of an earlier build": {placedUser: "pool=gold", ".complete": "true"},
			"an earlier list": earlier, "the list with a change": changed,
		} {
			o.replaceList(t, nil)
			test.Eventually(t, func() error { return refused.of(o.send(t, o.free)) })
			o.replaceList(t, entries)
			for _, by := range []client.Client{o.placed, o.free} {
				test.Eventually(t, func() error { return refused.of(o.send(t, by)) })
			}
			if err := o.send(t, as(t, "system:serviceaccount:liqo:liqo-controller-manager", "system:masters")); err != nil {
				t.Errorf("%s: Liqo itself is refused: %v", name, err)
			}
		}
	})
	t.Run("an earlier list in the place of one that is deleted", func(t *testing.T) {
		o.list(t, map[string]string{placedUser: "pool=gold"})
		earlier := o.present(t).Data
		test.Eventually(t, func() error { return o.send(t, o.free) })
		deleteParams(t, "proffer-placements")
		test.Eventually(t, func() error { return withoutList.of(o.send(t, o.free)) })
		o.replaceList(t, earlier)
		refused := refusal{metav1.StatusReasonInvalid, "this cluster is about to list what your pods need: try again"}
		test.Eventually(t, func() error { return refused.of(o.send(t, o.free)) })
	})
	t.Run("a slice whose pods request more than it was granted", func(t *testing.T) {
		refused := refusal{metav1.StatusReasonInvalid, "the pods of your ResourceSlice request more than it was granted, or are more than 1,000 and it was granted no number of pods; pods that you deleted count until they have ended: wait for that, and half a minute more"}
		running := aShadowPod("running")
		o.list(t, map[string]string{placedUser: "pool=gold"})
		test.Eventually(t, func() error { return o.placed.Create(t.Context(), running) })
		remove(t, running)
		for mark, both := range map[string]bool{"!" + placedUser: false, "!_rome": true, "!_oslo": false} {
			o.list(t, map[string]string{placedUser: "pool=gold", mark: ""})
			if mark != "!_oslo" {
				test.Eventually(t, func() error { return refused.of(o.send(t, o.placed)) })
			} else {
				test.Eventually(t, func() error { return o.send(t, o.placed) })
			}
			err := o.send(t, o.free)
			if both {
				err = refused.of(err)
			}
			if err != nil {
				t.Errorf("with the mark %s, another slice: %v", mark, err)
			}
			// Liqo's kubelet goes on with the pods that run.
			test.Must(t, o.admin.Get(t.Context(), client.ObjectKeyFromObject(running), running))
			running.Labels["marked"] = fmt.Sprintf("%x", mark)
			test.Must(t, o.placed.Update(t.Context(), running))
		}
	})
	t.Run("a slice that the list has no room for", func(t *testing.T) {
		o.list(t, map[string]string{placedUser: "pool=gold", "_rome": ""})
		refused := refusal{
			metav1.StatusReasonInvalid, "your cluster has more ResourceSlices than this cluster keeps the placement of: delete some",
		}
		test.Eventually(t, func() error { return refused.of(o.send(t, o.free)) })
		test.Must(t, o.send(t, o.placed))
		o.list(t, map[string]string{placedUser: "pool=gold", "_oslo": ""})
		test.Eventually(t, func() error { return o.send(t, o.free) })
	})
}

func TestEveryWayOfWritingAShadowPodIsGuarded(t *testing.T) {
	o := newOffloading(t)
	refused := refusal{metav1.StatusReasonInvalid, "spec.pod.nodeName is not for consumers"}
	pod := aShadowPod("running")
	test.Must(t, o.placed.Create(t.Context(), pod))
	remove(t, pod)
	const named = `{"spec":{"pod":{"nodeName":"node-1"}}}`
	const whole = `{"apiVersion":"offloading.liqo.io/v1beta1","kind":"ShadowPod","metadata":{"name":"%s"},"spec":{"pod":{"nodeName":"node-1","containers":[{"name":"c"}]}}}`
	for name, write := range map[string]func() error{
		"a generated name": func() error {
			return o.send(t, o.placed, func(p *offloadingv1beta1.ShadowPod) {
				p.Name, p.GenerateName = "", "sent-"
				p.Spec.Pod.NodeName = "node-1"
			})
		},
		"update": func() error {
			changed := pod.DeepCopy()
			changed.Spec.Pod.NodeName = "node-1"
			return o.placed.Update(t.Context(), changed)
		},
		"merge patch": func() error {
			return o.placed.Patch(t.Context(), aShadowPod("running"), client.RawPatch(types.MergePatchType, []byte(named)))
		},
		"JSON patch": func() error {
			return o.placed.Patch(t.Context(), aShadowPod("running"), client.RawPatch(types.JSONPatchType,
				[]byte(`[{"op":"add","path":"/spec/pod/nodeName","value":"node-1"}]`)))
		},
		"apply to one": func() error {
			return o.placed.Patch(t.Context(), aShadowPod("running"),
				client.RawPatch(types.ApplyPatchType, fmt.Appendf(nil, whole, "running")), client.FieldOwner("rome"), client.ForceOwnership)
		},
		"apply of a new one": func() error {
			return o.free.Patch(t.Context(), aShadowPod("applied"),
				client.RawPatch(types.ApplyPatchType, fmt.Appendf(nil, whole, "applied")), client.FieldOwner("rome"))
		},
	} {
		if err := refused.of(write()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	t.Run("the status is not a way", func(t *testing.T) {
		test.Must(t, o.admin.Get(t.Context(), client.ObjectKeyFromObject(pod), pod))
		changed := pod.DeepCopy()
		changed.Spec.Pod.NodeName, changed.Labels = "node-1", map[string]string{"liqo.io/shadowPod": "true"}
		changed.Status.Phase = corev1.PodRunning
		test.Must(t, o.admin.Status().Update(t.Context(), changed))
		test.Must(t, o.admin.Get(t.Context(), client.ObjectKeyFromObject(pod), pod))
		if pod.Spec.Pod.NodeName != "" || pod.Labels["app"] != "web" || pod.Status.Phase != corev1.PodRunning {
			t.Errorf("a write of the status changed %+v %+v", pod.Labels, pod.Spec)
		}
	})
	t.Run("a toleration that is added later", func(t *testing.T) {
		test.Must(t, o.admin.Get(t.Context(), client.ObjectKeyFromObject(pod), pod))
		tolerate(corev1.Toleration{Operator: corev1.TolerationOpExists})(pod)
		test.Must(t, refusal{metav1.StatusReasonInvalid, "a toleration without a key"}.of(o.placed.Update(t.Context(), pod)))
	})
}

// Liqo's kubelet goes on updating labels and annotations, and leaves the spec as it is.
func TestAPodFromBeforeKeepsItsSpec(t *testing.T) {
	o := newOffloading(t)
	old := aShadowPod("old")
	for _, m := range misplacements {
		labels := maps.Clone(old.Labels)
		m.change(old)
		old.Labels = labels // The label is refused in any case.
	}
	test.Must(t, as(t, "system:serviceaccount:liqo:liqo-controller-manager", "system:masters").Create(t.Context(), old))
	remove(t, old)
	setPodSecurity(t, "privileged")
	old.Labels["version"] = "2"
	old.Annotations = map[string]string{"a": "b"}
	test.Must(t, o.placed.Update(t.Context(), old))
	old.Spec.Pod.Containers[0].Image = "registry.example.com/web:2"
	if err := o.placed.Update(t.Context(), old); err == nil {
		t.Error("a change of the spec is accepted")
	}
	old.Spec.Pod.Containers[0].Image = "registry.example.com/web"
	old.Labels["liqo.io/shadowPod"] = "true"
	test.Must(t, refusal{metav1.StatusReasonInvalid, "the label liqo.io/shadowPod"}.of(o.placed.Update(t.Context(), old)))
	test.Must(t, o.placed.Delete(t.Context(), old))
}

func TestPodsWaitForThePodSecurityOfTheirNamespace(t *testing.T) {
	o := newOffloading(t)
	refused := refusal{
		metav1.StatusReasonInvalid, "the namespace has no pod-security level yet: try again, and if this stays, ask the admin " +
			"of this cluster to label it pod-security.kubernetes.io/enforce=baseline",
	}
	for level, enough := range map[string]bool{"privileged": false, "restricted": true, "baseline": true} {
		setPodSecurity(t, level)
		for name, by := range map[string]client.Client{"with placement": o.placed, "without": o.free} {
			test.Eventually(t, func() error {
				err := o.send(t, by)
				if !enough {
					err = refused.of(err)
				}
				if err != nil {
					return fmt.Errorf("%s, %s: %w", level, name, err)
				}
				return nil
			})
		}
	}
	labelPodSecurity(t, "null")
	test.Eventually(t, func() error { return refused.of(o.send(t, o.free)) })
}

// From the deletion of a ShadowPod, Liqo's Quota does not count its Pod.
func TestAShadowPodIsDeletedOnceAndWithItsPod(t *testing.T) {
	o := newOffloading(t)
	liqo := as(t, "system:serviceaccount:liqo:liqo-controller-manager", "system:masters")
	collector := as(t, "system:serviceaccount:kube-system:generic-garbage-collector", "system:masters")
	const finalizer = "example.com/stay"
	stays := func(p *offloadingv1beta1.ShadowPod) { p.Finalizers = append(p.Finalizers, finalizer) }
	kept := refusal{metav1.StatusReasonInvalid, "a ShadowPod with a finalizer outlives its place in Liqo's Quota: leave metadata.finalizers as it is"}
	test.Must(t, kept.of(o.send(t, o.placed, stays)))
	test.Must(t, kept.of(o.send(t, o.free, stays)))

	pod := aShadowPod("deleted")
	test.Must(t, o.placed.Create(t.Context(), pod))
	remove(t, pod)
	changed := pod.DeepCopy()
	stays(changed)
	test.Must(t, kept.of(o.placed.Update(t.Context(), changed)))

	together := refusal{metav1.StatusReasonInvalid, "a ShadowPod is deleted together with its Pod: use the propagation policy Background, which is the default"}
	for name, by := range map[string]client.Client{
		"a slice": o.placed, "another slice": o.free, "the control plane": as(t, "rome", "liqo.io"), "an admin": o.admin,
		"a slice in groups of its choice": as(t, freeUser, "rome", "system:serviceaccounts", "system:masters"),
	} {
		for _, policy := range []metav1.DeletionPropagation{metav1.DeletePropagationOrphan, metav1.DeletePropagationForeground} {
			test.Eventually(t, func() error {
				if err := together.of(by.Delete(t.Context(), pod, client.DryRunAll, client.PropagationPolicy(policy))); err != nil {
					return fmt.Errorf("%s, %s: %w", name, policy, err)
				}
				return nil
			})
		}
		orphan := &client.DeleteOptions{Raw: &metav1.DeleteOptions{OrphanDependents: new(true)}} //nolint:staticcheck // Consumers can use it.
		test.Must(t, together.of(by.Delete(t.Context(), pod, client.DryRunAll, orphan)))
		test.Must(t, by.Delete(t.Context(), pod, client.DryRunAll))
		test.Must(t, by.Delete(t.Context(), pod, client.DryRunAll, client.PropagationPolicy(metav1.DeletePropagationBackground)))
	}
	test.Must(t, collector.Delete(t.Context(), pod, client.DryRunAll, client.PropagationPolicy(metav1.DeletePropagationForeground)))

	// This cluster's own controllers may have reasons to keep one.
	test.Must(t, o.admin.Get(t.Context(), client.ObjectKeyFromObject(pod), pod))
	stays(pod)
	test.Must(t, liqo.Update(t.Context(), pod))
	pod.Labels["version"] = "2"
	test.Must(t, o.placed.Update(t.Context(), pod))
	test.Must(t, o.placed.Delete(t.Context(), pod))
	test.Must(t, refusal{metav1.StatusReasonInvalid, "the ShadowPod is being deleted already"}.of(o.placed.Delete(t.Context(), pod)))
	test.Must(t, liqo.Delete(t.Context(), pod))
	test.Must(t, o.admin.Get(t.Context(), client.ObjectKeyFromObject(pod), pod))
	pod.Finalizers = nil
	test.Must(t, liqo.Update(t.Context(), pod))
}

// The API server adds the overhead of a RuntimeClass to the Pod.
func TestThePodsOfConsumersHaveNoOverhead(t *testing.T) {
	newOffloading(t)
	create(t, &nodev1.RuntimeClass{ObjectMeta: metav1.ObjectMeta{Name: "deploy-test-none"}, Handler: "runc"})
	create(t, &nodev1.RuntimeClass{
		ObjectMeta: metav1.ObjectMeta{Name: "deploy-test-large"}, Handler: "runc",
		Overhead: &nodev1.Overhead{PodFixed: corev1.ResourceList{"cpu": resource.MustParse("30")}},
	})
	liqo := as(t, "system:serviceaccount:liqo:liqo-controller-manager", "system:masters")
	send := func(class string, labels map[string]string) error {
		return liqo.Create(t.Context(), &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: offloadedNamespace, Name: "sent", Labels: labels},
			Spec:       corev1.PodSpec{RuntimeClassName: &class, Containers: aShadowPod("sent").Spec.Pod.Containers},
		}, client.DryRunAll)
	}
	fromLiqo := map[string]string{"liqo.io/managed-by": "shadowpod"}
	refused := refusal{metav1.StatusReasonInvalid, "the overhead of the RuntimeClass is not counted in Liqo's Quota: leave out spec.runtimeClassName, or use one without overhead"}
	test.Eventually(t, func() error { return refused.of(send("deploy-test-large", fromLiqo)) })
	test.Eventually(t, func() error { return send("deploy-test-none", fromLiqo) })
	test.Must(t, send("deploy-test-large", nil))
}

// Liqo's own controllers write the status, and the garbage collector finalizers.
func TestThePodGuardDoesNotRestrictThisCluster(t *testing.T) {
	o := newOffloading(t)
	for name, by := range map[string]client.Client{
		"Liqo":              as(t, "system:serviceaccount:liqo:liqo-controller-manager", "system:masters"),
		"garbage collector": as(t, "system:serviceaccount:kube-system:generic-garbage-collector", "system:masters"),
		"controllers":       as(t, "system:kube-controller-manager", "system:masters"),
	} {
		for what, m := range misplacements {
			if err := o.send(t, by, m.change); err != nil {
				t.Errorf("%s, %s: %v", name, what, err)
			}
		}
	}
	t.Run("without the list nobody can send pods, and Liqo still writes their status", func(t *testing.T) {
		pod := aShadowPod("running")
		test.Must(t, o.placed.Create(t.Context(), pod))
		remove(t, pod)
		deleteParams(t, "proffer-placements")
		for name, by := range map[string]client.Client{"with placement": o.placed, "without": o.free, "an admin": o.admin} {
			test.Eventually(t, func() error {
				if err := withoutList.of(o.send(t, by)); err != nil {
					return fmt.Errorf("%s: %w", name, err)
				}
				return nil
			})
		}
		pod.Status.Phase = corev1.PodRunning
		test.Must(t, as(t, "system:serviceaccount:liqo:liqo-controller-manager", "system:masters").Status().Update(t.Context(), pod))
		test.Must(t, o.placed.Delete(t.Context(), pod))
	})
}

// The API server stops watching ConfigMaps for good when the last policy with such params is deleted.
func TestThePodGuardFollowsItsListAfterItWasRemovedAndInstalledAgain(t *testing.T) {
	o := newOffloading(t)
	// As docs/how-to/keep-pods-in-their-place.md says: the policy first, the list last.
	mustKubectl(t, "delete", "validatingadmissionpolicybinding,validatingadmissionpolicy", "proffer-slice-pod-guard")
	test.Eventually(t, func() error { return o.send(t, o.placed, setPlace(nil)) })
	deleteParams(t, "proffer-placements")

	mustKubectl(t, "apply", "-k", overlay(t, "slice-pod-guard"))
	test.Eventually(t, func() error { return withoutList.of(o.send(t, o.placed)) })
	o.list(t, map[string]string{freeUser: "pool=silver"})
	silver := refusal{metav1.StatusReasonInvalid, "spec.pod.nodeSelector lacks pool=silver"}
	test.Eventually(t, func() error { return silver.of(o.send(t, o.free)) })
	test.Eventually(t, func() error { return o.send(t, o.placed, setPlace(nil)) })
	o.list(t, map[string]string{placedUser: "pool=gold"})
	gold := refusal{metav1.StatusReasonInvalid, "spec.pod.nodeSelector lacks pool=gold"}
	test.Eventually(t, func() error { return gold.of(o.send(t, o.placed, setPlace(nil))) })
	test.Eventually(t, func() error { return o.send(t, o.free, setPlace(nil)) })
}

// A tool that replaces or deletes the list while the operator restarts opens the gate for nobody.
func TestAListThatIsLostWhileTheOperatorRestartsAdmitsNoPodOutOfItsPlace(t *testing.T) {
	p, o := newPeering(t), newOffloading(t)
	deleteGrants(t)
	tenant(t)
	const spec = `{class: gold, reclaim: Retain, offer: {fixed: {cpu: 4, memory: 4Gi, pods: 10}},
		slices: {enforcePlacement: true, nodeSelector: {pool: gold, zone: a}}}`
	policy := func() { applyPolicy(t, "gold", spec) }
	refused := func(message string) func() error {
		return func() error {
			return refusal{metav1.StatusReasonInvalid, message}.of(o.send(t, o.placed, setPlace(nil)))
		}
	}
	listed := refused("spec.pod.nodeSelector lacks pool=gold, zone=a")
	args := container(t, deployment(t, render(t, "slice-pod-guard"))).Args
	running := start(t, args)
	policy()
	running.AwaitReady(t)
	test.Eventually(t, func() error { return o.send(t, o.placed, setPlace(nil)) })
	earlier := o.present(t).Data
	createAuthenticated(t, p, aSlice("mine", "gold"))
	awaitGranted(t, p, "mine", 4)
	test.Eventually(t, listed)

	empty := func() { o.replaceList(t, nil) }
	gone := func() { deleteParams(t, "proffer-placements") }
	restart := func(lose func(), without, with func() error) {
		t.Helper()
		test.Must(t, running.Stop(gracefulStop))
		stop := o.watchTheGate(t)
		defer stop()
		lose()
		test.Eventually(t, without)
		running = start(t, args)
		test.Eventually(t, with)
	}
	notListed := refused("this cluster is about to list what your pods need")
	restart(empty, notListed, listed)
	restart(gone, func() error { return withoutList.of(o.send(t, o.placed)) }, listed)
	copied := func() { o.replaceList(t, earlier) }
	restart(copied, notListed, listed)
	stop := o.watchTheGate(t)
	copied()
	test.Eventually(t, listed)
	stop()

	// Then only the list says what is required.
	test.Must(t, cluster.client.Delete(t.Context(), named("gold")))
	lost := refused("no policy of this cluster decides on your ResourceSlice, and what it required of your pods is lost")
	restart(empty, notListed, lost)
	test.Must(t, o.send(t, o.free, setPlace(nil)))
	test.Check(t, lost())
	policy()
	test.Eventually(t, listed)
	test.Must(t, o.send(t, o.placed))
	running.requireAllowed(t)
}

// watchTheGate sends ShadowPods out of their place without a pause, until stop. None of them may be
// accepted.
func (o *offloading) watchTheGate(t *testing.T) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var tries, accepted atomic.Int64
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			pod := aShadowPod("sent")
			setPlace(nil)(pod)
			if err := o.placed.Create(ctx, pod, client.DryRunAll); err == nil {
				accepted.Add(1)
			}
			tries.Add(1)
		}
	}()
	return func() {
		t.Helper()
		cancel()
		<-done
		if n := accepted.Load(); n > 0 {
			t.Errorf("%d of %d ShadowPods out of their place are accepted", n, tries.Load())
		}
		t.Logf("%d ShadowPods were sent", tries.Load())
	}
}

// The operator of the component writes the list again, and sets the level of new namespaces.
func TestTheOperatorOfThePodGuardHasItsRights(t *testing.T) {
	o := newOffloading(t)
	p := start(t, container(t, deployment(t, render(t, "slice-pod-guard"))).Args)
	p.AwaitReady(t)
	test.Eventually(t, func() error { // No slice has a grant.
		var list v1alpha1.AdmissionParams
		if err := o.admin.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "proffer-placements"}, &list); err != nil {
			return err
		}
		if len(list.Data) != 1 || list.Data[".complete"] == "" {
			return fmt.Errorf("the list has %v", list.Data)
		}
		return nil
	})
	deleteParams(t, "proffer-placements")
	setPodSecurity(t, "privileged")
	test.Eventually(t, func() error { return o.send(t, o.free) })
	setPodSecurity(t, "restricted")
	test.Eventually(t, func() error { return o.send(t, o.free) })
	if level := podSecurityOf(t, offloadedNamespace); level != "restricted" {
		t.Errorf("the level is %s, want restricted, as an admin has set it", level)
	}
	for _, other := range []string{tenantNamespace, "default"} {
		if level := podSecurityOf(t, other); level != "" {
			t.Errorf("namespace %s has %s", other, level)
		}
	}
	p.requireAllowed(t)
}

// podSecurityOf returns the labels of a namespace about the security of pods. The namespace may not exist.
func podSecurityOf(t *testing.T, name string) (level string) {
	t.Helper()
	var ns corev1.Namespace
	test.Must(t, client.IgnoreNotFound(cluster.client.Get(t.Context(), client.ObjectKey{Name: name}, &ns)))
	for label, value := range ns.Labels {
		if strings.Contains(label, "pod-security") {
			level += value
		}
	}
	return level
}
