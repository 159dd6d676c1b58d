package main

import (
	"os"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"proffer.dev/proffer/test"
)

func TestTheAccountOfAReflectorFollowsItsPods(t *testing.T) {
	pod := func(uid, cpu string) *corev1.Pod {
		requests := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}
		return &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{UID: types.UID(uid)},
			Spec: corev1.PodSpec{Containers: []corev1.Container{{
				Resources: corev1.ResourceRequirements{Requests: requests},
			}}},
		}
	}
	synced := 0
	a := &account{known: func() { synced++ }}
	steps := []struct {
		name string
		do   func() error
		want int64
	}{
		{"two are listed", func() error { return a.Replace([]any{pod("a", "1"), pod("b", "2")}, "7") }, 3000},
		{"one is created", func() error { return a.Add(pod("c", "500m")) }, 3500},
		{"one is resized", func() error { return a.Update(pod("a", "4")) }, 6500},
		{"one is deleted", func() error { return a.Delete(pod("b", "2")) }, 4500},
		{"a new list has only one", func() error { return a.Replace([]any{pod("c", "500m")}, "9") }, 500},
	}
	for _, s := range steps {
		if err := s.do(); err != nil || a.cpu != s.want {
			t.Errorf("%s: %d, %v; want %d", s.name, a.cpu, err, s.want)
		}
	}
	if synced != 2 {
		t.Errorf("known was called %d times, want 2", synced)
	}
	if err := a.Add(&corev1.Service{}); err == nil {
		t.Error("a Service was accepted as a pod or a node")
	}
}

func TestAFollowerRejectsInvalidArguments(t *testing.T) {
	kubeconfig := t.TempDir() + "/kubeconfig"
	content := `{"apiVersion":"v1","kind":"Config","clusters":[{"name":"a","cluster":{"server":"https://127.0.0.1:1"}}],
		"contexts":[{"name":"a","context":{"cluster":"a","user":"a"}}],"current-context":"a","users":[{"name":"a"}]}`
	test.Must(t, os.WriteFile(kubeconfig, []byte(content), 0o600))
	for want, args := range map[string][]string{
		"want a way and the path of a kubeconfig":             {"list"},
		`unknown way "guess"`:                                 {"guess", kubeconfig},
		"stat " + kubeconfig + "s: no such file or directory": {"list", kubeconfig + "s"},
	} {
		if err := follow(args, strings.NewReader(""), t.Output()); err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	// No server listens at the address of the kubeconfig.
	if err := follow([]string{"list", kubeconfig}, strings.NewReader(""), t.Output()); err == nil {
		t.Error("lists were read without an API server")
	}
}
