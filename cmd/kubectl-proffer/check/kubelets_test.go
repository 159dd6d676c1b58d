package check

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"proffer.dev/proffer/internal/kube/liqo"
	"proffer.dev/proffer/test"
)

func kubeletWith(name string, args ...string) appsv1.Deployment {
	d := appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, Labels: map[string]string{liqo.ComponentLabel: liqo.VirtualKubelet}}}
	d.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}}
	d.Spec.Template.Labels = d.Spec.Selector.MatchLabels
	d.Spec.Template.Spec.Containers = []corev1.Container{{Name: "virtual-kubelet", Image: "virtual-kubelet", Args: args}}
	return d
}

func TestVirtualKubeletsThatLetNoPodOfAConsumerPassAreReported(t *testing.T) {
	broker := flags{orchestrate: true}
	type kubelets = []appsv1.Deployment
	adding := kubeletWith("vk-oslo", "--nodename=oslo", "--enable-apiserver-support=true")
	for name, c := range map[string]struct {
		flags flags
		all   known[kubelets]
		want  []is
	}{
		"no broker": {flags{}, there(kubelets{adding}), nil},
		"none":      {broker, there(kubelets{}), nil},
		"no right":  {broker, failing[kubelets](errForbidden), []is{{Skipped, []string{"list deployments.apps in all namespaces"}}}},
		"good":      {broker, there(kubelets{kubeletWith("a", "--enable-apiserver-support=false"), kubeletWith("b")}), []is{{OK, nil}}},
		"bad":       {broker, there(kubelets{adding, kubeletWith("a")}), []is{{Warning, []string{"second time by default/vk-oslo.", "--enable-apiserver-support=false"}}}},
		"the last counts": {broker, there(kubelets{kubeletWith("vk-oslo", "--enable-apiserver-support=false", "--enable-apiserver-support")}),
			[]is{{Warning, []string{"vk-oslo"}}}},
	} {
		t.Run(name, func(t *testing.T) {
			got := findKubelets(c.flags, c.all)
			if len(got) != len(c.want) {
				t.Fatalf("findings %v, want %d", got, len(c.want))
			}
			for i, want := range c.want {
				if diff := want.diff(got[i]); diff != "" {
					t.Error(diff)
				}
			}
		})
	}
}

func TestVirtualKubeletsAreReadFromTheCluster(t *testing.T) {
	config, err := caller(kubeconfig(t), "").RESTConfig()
	test.Must(t, err)
	api, err := client.New(config, client.Options{})
	test.Must(t, err)
	other := kubeletWith("other")
	other.Labels = nil
	for _, d := range []appsv1.Deployment{kubeletWith("vk-oslo"), other} {
		test.Must(t, api.Create(t.Context(), &d))
	}
	c, err := newCluster(config)
	test.Must(t, err)
	if all := c.virtualKubelets(t.Context()); all.err != nil || len(all.value) != 1 || all.value[0].Name != "vk-oslo" {
		t.Errorf("%+v", all)
	}
}
