// Package providertest has servers in the place of the API servers of providers, and what Liqo keeps for a
// provider in the cluster of a consumer.
package providertest

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/test"
)

// CRDs are the files of Liqo with the kinds that describe a provider in the cluster of its consumer.
var CRDs = []string{
	"authentication.liqo.io_identities.yaml", "authentication.liqo.io_resourceslices.yaml",
	"core.liqo.io_foreignclusters.yaml", "offloading.liqo.io_virtualnodes.yaml",
}

// Provider publishes Offers, over HTTPS.
type Provider struct {
	*httptest.Server
	lists atomic.Int64

	mu      sync.Mutex
	offers  []v1alpha1.Offer
	version int
	changed chan struct{}
}

// New returns a provider that publishes these Offers until the test ends. A hostile one answers requests in its
// own way.
func New(t testing.TB, hostile http.HandlerFunc, offers ...v1alpha1.Offer) *Provider {
	t.Helper()
	p := &Provider{offers: offers, changed: make(chan struct{})}
	p.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !Watches(r) {
			p.lists.Add(1)
		}
		if hostile != nil {
			hostile(w, r)
			return
		}
		p.serve(w, r)
	}))
	p.Config.ErrorLog = log.New(io.Discard, "", 0)
	p.StartTLS()
	t.Cleanup(func() {
		p.CloseClientConnections()
		p.Close()
	})
	return p
}

// Watches reports whether a request is a watch.
func Watches(r *http.Request) bool { return r.URL.Query().Get("watch") != "" }

// Lists returns how often the Offers were listed.
func (p *Provider) Lists() int { return int(p.lists.Load()) }

func (p *Provider) serve(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	offers, changed, version := p.offers, p.changed, strconv.Itoa(p.version)
	p.mu.Unlock()
	if !Watches(r) {
		_ = json.NewEncoder(w).Encode(v1alpha1.OfferList{ListMeta: metav1.ListMeta{ResourceVersion: version}, Items: offers})
		return
	}
	_ = http.NewResponseController(w).Flush()
	if r.URL.Query().Get("resourceVersion") == version {
		select {
		case <-changed:
		case <-r.Context().Done():
			return
		}
	}
	_, _ = io.WriteString(w, `{"type":"MODIFIED","object":{}}`)
}

// Publish changes the Offers.
func (p *Provider) Publish(offers ...v1alpha1.Offer) {
	p.mu.Lock()
	defer p.mu.Unlock()
	close(p.changed)
	p.offers, p.version, p.changed = offers, p.version+1, make(chan struct{})
}

// Kubeconfig is one as Liqo writes it, with a token in the place of a certificate.
func (p *Provider) Kubeconfig(t testing.TB) []byte {
	t.Helper()
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: p.Certificate().Raw})
	text, err := clientcmd.Write(clientcmdapi.Config{
		Clusters:  map[string]*clientcmdapi.Cluster{"c": {Server: p.URL, CertificateAuthorityData: ca}},
		AuthInfos: map[string]*clientcmdapi.AuthInfo{"u": {Token: "rome"}},
		Contexts:  map[string]*clientcmdapi.Context{"x": {Cluster: "c", AuthInfo: "u"}}, CurrentContext: "x",
	})
	test.Must(t, err)
	return text
}

// Peer makes what Liqo keeps for a provider with this ID, and returns the Identity. All of it is deleted at the end
// of the test, except the namespace.
func (p *Provider) Peer(t testing.TB, api client.Client, id string) *unstructured.Unstructured {
	t.Helper()
	namespace, name := "liqo-tenant-"+id, "kubeconfig-controlplane-"+id
	err := api.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})
	test.Must(t, client.IgnoreAlreadyExists(err))
	create := func(o client.Object) {
		test.Must(t, api.Create(t.Context(), o))
		t.Cleanup(func() { _ = api.Delete(context.WithoutCancel(t.Context()), o) })
	}
	create(&corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: name,
			Annotations: map[string]string{"liqo.io/remote-tenant-namespace": "liqo-tenant-rome"},
		},
		Data: map[string][]byte{"kubeconfig": p.Kubeconfig(t)},
	})
	identity := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "authentication.liqo.io/v1beta1", "kind": "Identity",
		"metadata": map[string]any{"namespace": namespace, "name": "controlplane-" + id},
		"spec":     map[string]any{"clusterID": id, "type": "ControlPlane"},
	}}
	create(identity)
	identity.Object["status"] = map[string]any{"kubeconfigSecretRef": map[string]any{"name": name}}
	test.Must(t, api.Status().Update(t.Context(), identity))
	return identity
}
