package operatortest

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"proffer.dev/proffer/api/rest"
	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/test"
)

const (
	// Provider is the provider of this cluster that the server also is, and TenantNamespace the
	// namespace there of this cluster.
	Provider        = "milan"
	TenantNamespace = "liqo-tenant-rome"
	// ProviderToken is the token of this cluster at every provider.
	ProviderToken = "token-of-rome"

	// IdentitiesPath is the path of this cluster's identities.
	IdentitiesPath  = "/apis/authentication.liqo.io/v1beta1/identities"
	identityVersion = "authentication.liqo.io/v1beta1"
	providerPath    = "/" + Provider
	// OffersPath is the path of a provider's Offers to this cluster.
	OffersPath = "/apis/proffer.dev/v1alpha1/namespaces/" + TenantNamespace + "/offers"
	// ChoicesPath is the path of this cluster's ProviderChoices at a broker, and ChoicePath that of the one.
	ChoicesPath = "/apis/proffer.dev/v1alpha1/namespaces/" + TenantNamespace + "/providerchoices"
	ChoicePath  = ChoicesPath + "/" + v1alpha1.ChoiceName
)

// SecretPath returns the path of this cluster's kubeconfig for a provider.
func SecretPath(provider string) string {
	return "/api/v1/namespaces/liqo-tenant-" + provider + "/secrets/kubeconfig-controlplane-" + provider
}

// AddProvider gives this cluster an identity at a provider.
func (s *Server) AddProvider(t *testing.T, provider string, kubeconfig clientcmdapi.Config) {
	t.Helper()
	text, err := clientcmd.Write(kubeconfig)
	test.Must(t, err)
	namespace, name := "liqo-tenant-"+provider, "controlplane-"+provider
	s.mu.Lock()
	defer s.mu.Unlock()
	s.identities = append(s.identities, map[string]any{
		"apiVersion": identityVersion, "kind": "Identity", "metadata": map[string]any{"namespace": namespace, "name": name},
		"spec":   map[string]any{"clusterID": provider, "type": "ControlPlane", "namespace": TenantNamespace},
		"status": map[string]any{"kubeconfigSecretRef": map[string]any{"name": "kubeconfig-" + name}},
	})
	s.secrets[SecretPath(provider)] = corev1.Secret{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: "kubeconfig-" + name,
			Annotations: map[string]string{"liqo.io/remote-tenant-namespace": TenantNamespace},
		},
		Data: map[string][]byte{"kubeconfig": text},
	}
}

// ProviderKubeconfig leads to the provider that the server also is.
func (s *Server) ProviderKubeconfig() clientcmdapi.Config {
	return KubeconfigTo(s.url+providerPath, s.certificate)
}

// KubeconfigTo leads to a provider.
func KubeconfigTo(url string, ca []byte) clientcmdapi.Config {
	return clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{"provider": {Server: url, CertificateAuthorityData: ca}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{"rome": {Token: ProviderToken}},
		Contexts:       map[string]*clientcmdapi.Context{"default-context": {Cluster: "provider", AuthInfo: "rome"}},
		CurrentContext: "default-context",
	}
}

// serveSecret knows the Secrets of identities.
func (s *Server) serveSecret(w http.ResponseWriter, r *http.Request) {
	secret, ok := s.secrets[r.URL.Path]
	if !ok {
		answer(w, http.StatusNotFound,
			Status(http.StatusNotFound, metav1.StatusReasonNotFound, "there is no such Secret", nil))
		return
	}
	answer(w, http.StatusOK, secret)
}

// serveProvider answers this cluster as a provider does.
func (s *Server) serveProvider(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.Header.Get("Authorization") != "Bearer "+ProviderToken:
		answer(w, http.StatusUnauthorized,
			Status(http.StatusUnauthorized, metav1.StatusReasonUnauthorized, "Unauthorized", nil))
	case r.URL.Path == providerPath+OffersPath:
		answer(w, http.StatusOK, v1alpha1.OfferList{
			TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "OfferList"},
			Items:    ProviderOffers(time.Now().Truncate(time.Second)),
		})
	case strings.HasPrefix(r.URL.Path, providerPath+ChoicesPath):
		s.serveChoice(w, r)
	default:
		http.NotFound(w, r)
	}
}

// serveChoice answers as a broker does that follows each choice at once.
func (s *Server) serveChoice(w http.ResponseWriter, r *http.Request) {
	if s.choice == nil && r.Method != http.MethodPost {
		answer(w, http.StatusNotFound, Status(http.StatusNotFound, metav1.StatusReasonNotFound,
			"there is no such ProviderChoice", &metav1.StatusDetails{Name: v1alpha1.ChoiceName}))
		return
	}
	switch r.Method {
	case http.MethodDelete:
		s.choice = nil
		answer(w, http.StatusOK, metav1.Status{})
		return
	case http.MethodPost:
		s.choice = &v1alpha1.ProviderChoice{}
	}
	if r.Method != http.MethodGet {
		var patch struct{ Spec v1alpha1.ProviderChoiceSpec }
		if err := json.NewDecoder(r.Body).Decode(&patch); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		*s.choice = Choice(patch.Spec, s.choice.Generation+1, time.Now())
	}
	answer(w, http.StatusOK, s.choice)
}

// Choice returns a ProviderChoice that a broker has answered: paris is left out, and drained.
func Choice(spec v1alpha1.ProviderChoiceSpec, generation int64, now time.Time) v1alpha1.ProviderChoice {
	observed := metav1.NewTime(now.Truncate(time.Second))
	until := metav1.NewTime(observed.Add(30 * time.Minute))
	return v1alpha1.ProviderChoice{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: TenantNamespace, Name: v1alpha1.ChoiceName, Generation: generation,
			ResourceVersion: strconv.FormatInt(generation, 10),
		},
		Spec: spec,
		Status: v1alpha1.ProviderChoiceStatus{
			Currency:           "EUR",
			ObservedGeneration: generation, ObservedTime: &observed,
			ChosenProviders: "oslo", Unknown: []v1alpha1.ClusterID{"lima"},
			Conditions: []metav1.Condition{{
				Type: "Ready", Status: metav1.ConditionTrue, Reason: v1alpha1.ProviderChoiceInForce,
				Message: "The choice follows this ProviderChoice", ObservedGeneration: generation,
			}},
			Providers: []v1alpha1.ChoiceOfProvider{
				{
					ClusterID: "oslo", Chosen: true, Because: "Price cpu 0.03 (666), Uptime 99.982 % (1000)",
					UptimePercent: "99.982", LatencyMs: "10.4", Resources: []v1alpha1.ResourceOfProvider{
						{Name: "cpu", Price: "0.03", Remaining: "12"}, {Name: "memory", Remaining: "48Gi"},
					},
				},
				{
					ClusterID: "paris", RejectedBy: v1alpha1.RejectedByConsumer, Because: "the consumer has chosen others",
					UptimePercent: "100", Resources: []v1alpha1.ResourceOfProvider{
						{Name: "cpu", Price: "0.02", Remaining: "3500m"},
					},
				},
			},
			Draining: []v1alpha1.NamespaceNote{
				{Namespace: "team-rome", Provider: "paris", Until: &until, Because: "2 pods run there"},
			},
		},
	}
}

// federationPage returns a page of what an operator has read: the first has milan, the next one turin, which
// publishes nothing.
func federationPage(after string) rest.Federation {
	if after != "" {
		return rest.Federation{Providers: []rest.FederationProvider{{
			ClusterID: "turin", Offers: []rest.FederationOffer{}, Problems: []string{"it publishes no catalog to this cluster"},
		}}}
	}
	read := time.Now()
	milan := rest.FederationProvider{ClusterID: "milan", Publishes: true, ReadTime: &read}
	for _, o := range ProviderOffers(read) {
		milan.Offers = append(milan.Offers, rest.FederationOffer{OfferStatus: o.Status})
	}
	return rest.Federation{Providers: []rest.FederationProvider{milan}, Continue: "milan"}
}

// ProviderOffers returns Offers of which the amounts were worked out a minute before now: of a pool,
// of fixed amounts, and of a pool that has nothing left.
func ProviderOffers(now time.Time) []v1alpha1.Offer {
	amounts := func(pairs ...string) v1alpha1.Quantities {
		q := v1alpha1.Quantities{}
		for name, amount := range Amounts(pairs...) {
			q[corev1.ResourceName(name)] = v1alpha1.Quantity{Quantity: amount}
		}
		return q
	}
	observed := now.Add(-time.Minute)
	offer := func(class string, s v1alpha1.OfferStatus) v1alpha1.Offer {
		s.ClusterID, s.Class = "rome", class
		s.ObservedTime, s.ValidUntil = metav1.NewTime(observed), metav1.NewTime(observed.Add(15*time.Minute))
		return v1alpha1.Offer{ObjectMeta: metav1.ObjectMeta{Namespace: TenantNamespace, Name: class}, Status: s}
	}
	return []v1alpha1.Offer{
		offer("gold", v1alpha1.OfferStatus{
			CatalogWords: v1alpha1.CatalogWords{
				Title: "A100 nodes", Labels: v1alpha1.Labels{"region": "eu-south", "gpu-model": "a100-80gb"},
				Prices:   v1alpha1.Prices{"cpu": "0.021", "memory": "0.0029", "nvidia.com/gpu": "1.85"},
				Currency: "EUR", Period: v1alpha1.PeriodHour, URL: "https://example.com/gpu",
			},
			Price:      "cpu 0.021, memory 0.0029, nvidia.com/gpu 1.85 EUR/hour",
			Available:  amounts("cpu", "3500m", "memory", "18Gi", "nvidia.com/gpu", "2", "pods", "106"),
			Held:       amounts("cpu", "3", "memory", "8Gi"),
			Ceiling:    amounts("cpu", "7", "memory", "28Gi", "nvidia.com/gpu", "2", "pods", "109"),
			LargestPod: amounts("cpu", "3", "memory", "16Gi", "nvidia.com/gpu", "1", "pods", "60"), OnExcess: "Cap",
			Shapes: []v1alpha1.NodeShape{
				{Nodes: 2, Free: amounts("cpu", "3", "memory", "16Gi", "nvidia.com/gpu", "1")},
				{Nodes: 1, Free: amounts("cpu", "1500m", "memory", "14Gi")},
			},
			Defaults: amounts("pods", "110"), StorageClasses: []string{"fast", "slow"}, Reason: v1alpha1.CatalogAvailable,
			Message: "cpu 3.5: all that is left; memory 18Gi: all that is left; " +
				"nvidia.com/gpu 2: a cluster has at most 2 of this class; pods 106: all that is left",
		}),
		offer("silver", v1alpha1.OfferStatus{
			Available: amounts("cpu", "2", "memory", "4Gi", "pods", "20"),
			Ceiling:   amounts("cpu", "2", "memory", "4Gi", "pods", "20"),
			OnExcess:  "Deny", Reason: v1alpha1.CatalogAvailable,
			Message: "cpu 2: a cluster has at most 2 of this class; memory 4Gi: a cluster has at most 4Gi of this class; " +
				"pods 20: a cluster has at most 20 of this class",
		}),
		offer("spot", v1alpha1.OfferStatus{
			Available: amounts("cpu", "0", "memory", "6Gi", "pods", "40"),
			Held:      amounts("cpu", "4", "memory", "8Gi", "pods", "40"),
			OnExcess:  "Cap", Reason: v1alpha1.CatalogExhausted,
			Message: "cpu 0: nothing is left; memory 6Gi: all that is left; pods 40: all that is left",
		}),
	}
}
