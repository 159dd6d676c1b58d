package controlplane

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"proffer.dev/proffer/test"
)

func TestAnotherAPIServerServesTheSameObjectsWhileTheFirstIsFrozen(t *testing.T) {
	c := StartTest(t, Options{})
	config, err := c.AddAPIServer(t.Context())
	test.Must(t, err)
	if config.Host == c.Config.Host {
		t.Fatalf("both servers are at %s", config.Host)
	}
	first, another := kubernetes.NewForConfigOrDie(c.Config), kubernetes.NewForConfigOrDie(config)
	if _, err := first.CoreV1().Namespaces().Create(t.Context(),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "same"}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	test.Must(t, c.FreezeAPIServer())
	if _, err := another.CoreV1().Namespaces().Get(t.Context(), "same", metav1.GetOptions{}); err != nil {
		t.Errorf("reading from the other server what was created through the first: %v", err)
	}
}
