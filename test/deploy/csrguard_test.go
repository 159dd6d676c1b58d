package deploy

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	mathrand "math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	authv1beta1 "github.com/liqotech/liqo/apis/authentication/v1beta1"
	corev1beta1 "github.com/liqotech/liqo/apis/core/v1beta1"
	"github.com/liqotech/liqo/pkg/liqo-controller-manager/authentication"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"proffer.dev/proffer/test"
)

// The messages of the guard.
const (
	notCanonical  = "spec.csr is not one PEM block CERTIFICATE REQUEST in lines of 64 characters and nothing else"
	organizations = "the subject of the request in spec.csr does not begin with its only Organization"
	commonNames   = "the subject of the request in spec.csr does not have exactly one Common Name"
	extensions    = "the request in spec.csr asks for extensions, such as alternative names: leave them out"
	notOwn        = "the subject of the request in spec.csr is neither your control plane's nor that of the slice"
)

// newSigningPeering adds Liqo's other kinds with certificate signing requests to a peering.
func newSigningPeering(t *testing.T) *peering {
	t.Helper()
	p := newPeering(t)
	liqoCRD(t, "authentication.liqo.io_tenants.yaml")
	liqoCRD(t, "authentication.liqo.io_renews.yaml")
	return p
}

// consumerSlice returns the copy of a slice of any consumer.
func consumerSlice(id, name string) *authv1beta1.ResourceSlice {
	s := aSlice(name, "gold")
	s.Labels["liqo.io/originID"], s.Labels["liqo.io/remote-cluster-id"] = id, id
	s.Spec.ConsumerClusterID = new(corev1beta1.ClusterID(id))
	return s
}

func tenantOf(id string, csr []byte) *authv1beta1.Tenant {
	return &authv1beta1.Tenant{
		ObjectMeta: metav1.ObjectMeta{Namespace: tenantNamespace, Name: "requesting"},
		Spec: authv1beta1.TenantSpec{
			ClusterID: corev1beta1.ClusterID(id), TenantCondition: authv1beta1.TenantConditionActive, CSR: csr,
		},
	}
}

// renewOf returns a request of Liqo v1.1 to renew the certificate of a slice or, without its name, of
// a control plane.
func renewOf(id, slice string, csr []byte) *authv1beta1.Renew {
	r := &authv1beta1.Renew{
		ObjectMeta: metav1.ObjectMeta{Namespace: tenantNamespace, Name: "requesting"},
		Spec: authv1beta1.RenewSpec{
			ConsumerClusterID: corev1beta1.ClusterID(id), IdentityType: authv1beta1.ControlPlaneIdentityType, CSR: csr,
		},
	}
	if slice != "" {
		r.Spec.IdentityType = authv1beta1.ResourceSliceIdentityType
		r.Spec.ResourceSliceRef = &corev1.LocalObjectReference{Name: slice}
	}
	return r
}

func setRequest(csr string) func(*authv1beta1.ResourceSlice) {
	return func(s *authv1beta1.ResourceSlice) { s.Spec.CSR = []byte(csr) }
}

// setLongestRequest sets a request of as many characters as the guard permits.
func setLongestRequest(t *testing.T) func(*authv1beta1.ResourceSlice) {
	t.Helper()
	m := newRequestMaker(t, nil)
	block := m.block(t, m.subject([]attribute{organization("rome")}, []attribute{common("s")}))
	text := encodePEM(append(block, make([]byte, 4485-len(block))...))
	if n := base64.StdEncoding.EncodedLen(len(text)); n != 8192 {
		t.Fatalf("%d characters, want 8192", n)
	}
	return setRequest(text)
}

// Liqo's own code makes these requests, with each kind of key that it can use.
func TestTheCSRGuardAcceptsTheRequestsOfLiqo(t *testing.T) {
	newSigningPeering(t)
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	test.Must(t, err)
	others := []crypto.PrivateKey{rsaKey}
	for _, curve := range []elliptic.Curve{elliptic.P256(), elliptic.P384(), elliptic.P521()} {
		key, err := ecdsa.GenerateKey(curve, rand.Reader)
		test.Must(t, err)
		others = append(others, key)
	}
	accepted := 0
	for length := 1; length <= 63; length++ {
		id := strings.Repeat("r", length)
		slice := consumerSlice(id, strings.Repeat("s", 4*length-3))
		config := rest.CopyConfig(cluster.rest)
		// The second group may write everything.
		config.Impersonate = rest.ImpersonationConfig{UserName: id, Groups: []string{"liqo.io", "system:masters"}}
		consumer, err := client.New(config, client.Options{Scheme: scheme.Scheme, Mapper: cluster.client.RESTMapper()})
		test.Must(t, err)
		_, key, err := ed25519.GenerateKey(rand.Reader)
		test.Must(t, err)
		for _, key := range []crypto.PrivateKey{key, others[length%len(others)]} {
			ofControlPlane, err := authentication.GenerateCSRForControlPlane(key, corev1beta1.ClusterID(id))
			test.Must(t, err)
			ofSlice, err := authentication.GenerateCSRForResourceSlice(key, slice)
			test.Must(t, err)
			requesting := slice.DeepCopy()
			requesting.Spec.CSR = ofSlice
			for _, object := range []client.Object{
				requesting, tenantOf(id, ofControlPlane), renewOf(id, "", ofControlPlane), renewOf(id, slice.Name, ofSlice),
			} {
				if err := consumer.Create(t.Context(), object, client.DryRunAll); err != nil {
					t.Errorf("%T of %d characters, %T: %v", object, length, key, err)
				}
				accepted++
			}
		}
	}
	t.Logf("%d requests", accepted)
	// Liqo v1.2 renews without a request.
	test.Must(t, as(t, "rome", "liqo.io", "system:masters").Create(t.Context(), renewOf("rome", "", nil), client.DryRunAll))
}

// TestTheCSRGuardSaysWhatIsWrong tries each kind of request that the guard prevents.
func TestTheCSRGuardSaysWhatIsWrong(t *testing.T) {
	p := newSigningPeering(t)
	m := newRequestMaker(t, nil)
	slice := aSlice("requesting", "gold")
	own, user := organization("rome"), common(authentication.CommonNameResourceSliceCSR(slice))
	admins := organization("oidc:admins")
	good := m.text(t, []attribute{own}, []attribute{user})
	refused := map[string]struct{ csr, message string }{
		"two Organizations":             {m.text(t, []attribute{own}, []attribute{admins}, []attribute{user}), organizations},
		"two Organizations in a set":    {m.text(t, []attribute{own, admins}, []attribute{user}), organizations},
		"an Organization at the end":    {m.text(t, []attribute{own}, []attribute{user}, []attribute{admins}), organizations},
		"no Organization":               {m.text(t, []attribute{user}), organizations},
		"a number as Organization":      {m.text(t, []attribute{{organizationName, 0x02, "\x05"}}, []attribute{user}), organizations},
		"an Organization in a value":    {m.text(t, []attribute{{organizationUnit, utf8String, "\x06\x03U\x04\n\x13"}}, []attribute{user}), organizations},
		"the Common Name first":         {m.text(t, []attribute{user}, []attribute{own}), organizations},
		"two Common Names":              {m.text(t, []attribute{own}, []attribute{common("oslo")}, []attribute{user}), commonNames},
		"no Common Name":                {m.text(t, []attribute{own}), commonNames},
		"another name":                  {encodePEM(m.block(t, m.subject([]attribute{own}, []attribute{user}), "kubernetes.default")), extensions},
		"headers":                       {strings.Replace(good, "\n", "\nProc-Type: 4,ENCRYPTED\n\n", 1), notCanonical},
		"text before":                   {"x\n" + good, notCanonical},
		"text after":                    {good + "x", notCanonical},
		"no line break at the end":      {strings.TrimSpace(good), notCanonical},
		"two line breaks at the end":    {good + "\n", notCanonical},
		"two blocks":                    {good + good, notCanonical},
		"line breaks of Windows":        {strings.ReplaceAll(good, "\n", "\r\n"), notCanonical},
		"a request that is not PEM":     {"x", notCanonical},
		"more than 8192 characters":     {strings.Repeat("x", 6145), longCSR},
		"the longest request and a bit": {strings.Repeat(good, 20), longCSR},
	}
	withoutGuards(t, p, func() { // Only the guard prevents this.
		for name, r := range refused {
			slice := aSlice("requesting", "gold")
			setRequest(r.csr)(slice)
			if err := tryCreate(t, p.rome, slice); err != nil {
				t.Errorf("%s: rejected even without the guard: %v", name, err)
			}
		}
	})
	test.Must(t, createSlice(t, p.rome, aSlice("requesting", "gold")))
	for name, r := range refused {
		want := refusal{metav1.StatusReasonInvalid, r.message}
		if err := want.of(edit(t, p.rome, "requesting", setRequest(r.csr))); err != nil {
			t.Errorf("%s in a slice: %v", name, err)
		}
		for by, c := range map[string]client.Client{"an admin": p.admin, "a peering user": peeringUser(t)} {
			if err := want.of(c.Create(t.Context(), tenantOf("rome", []byte(r.csr)), client.DryRunAll)); err != nil {
				t.Errorf("%s in a Tenant of %s: %v", name, by, err)
			}
		}
	}
	test.Must(t, edit(t, p.rome, "requesting", setRequest(good)))
	test.Must(t, edit(t, p.rome, "requesting", setRequest("")))

	t.Run("renewals of other identities", func(t *testing.T) {
		for name, sets := range map[string][][]attribute{
			"a node":           {{organization("system:nodes")}, {common("system:node:n")}},
			"another consumer": {{organization("liqo.io")}, {common("oslo")}},
			"a longer ID":      {{organization("liqo.io")}, {common("rome2")}},
			"another slice":    {{organization("rome")}, {common("other-a8a4c692b93b")}},
			"another's slice":  {{organization("oslo")}, {common("requesting-a8a4c692b93b")}},
			"a longer name":    {{organization("rome")}, {common("requesting-a8a4c692b93b0")}},
			"one more unit":    {{own}, {common("requesting-a8a4c692b93b")}, {{organizationUnit, printableString, "x"}}},
		} {
			want := refusal{metav1.StatusReasonInvalid, notOwn}
			err := p.rome.Create(t.Context(), renewOf("rome", "requesting", []byte(m.text(t, sets...))), client.DryRunAll)
			if err := want.of(err); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
}

// peeringUser returns a client with the identity and role that liqoctl gives to a user who peers rome
// with this cluster.
func peeringUser(t *testing.T) client.Client {
	t.Helper()
	const user = "liqo-peer-user-rome-0123456789abcdef0123456789abcdef"
	name := "liqo-peering-user-tenant-ns"
	if !apierrors.IsNotFound(cluster.client.Get(t.Context(), client.ObjectKey{Namespace: tenantNamespace, Name: name},
		&unstructured.Unstructured{Object: map[string]any{"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role"}})) {
		return as(t, user, "liqo.io")
	}
	role(t, name, rulesOf(t, name), user)
	return as(t, user, "liqo.io")
}

// A Tenant that is older than the guard stays writable, but for its request.
func TestATenantWithAnOldRequestCanBeChanged(t *testing.T) {
	p := newSigningPeering(t)
	m := newRequestMaker(t, nil)
	own, user, admins := organization("liqo.io"), common("rome"), organization("oidc:admins")
	old := tenantOf("rome", []byte(m.text(t, []attribute{own}, []attribute{admins}, []attribute{user})))
	withoutGuards(t, p, func() { create(t, old) })
	old.Labels = map[string]string{"milan.test/checked": "true"}
	test.Must(t, p.manager.Update(t.Context(), old))
	changed := old.DeepCopy()
	changed.Spec.CSR = []byte(m.text(t, []attribute{own, admins}, []attribute{user}))
	want := refusal{metav1.StatusReasonInvalid, organizations}
	test.Check(t, want.of(p.manager.Update(t.Context(), changed)))
	changed.Spec.CSR = []byte(m.text(t, []attribute{own}, []attribute{user}))
	test.Must(t, p.manager.Update(t.Context(), changed))
}

// liqoChecks calls a check of Liqo, and reports whether it panics.
func liqoChecks(check func() error) (panics bool, err error) {
	defer func() {
		if recover() != nil {
			panics = true
		}
	}()
	return false, check()
}

// signed returns what the cluster would sign, once Liqo has checked it.
func signed(text []byte) *x509.CertificateRequest {
	block, _ := pem.Decode(text)
	if block == nil || block.Type != csrType {
		return nil
	}
	csr, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil || csr.CheckSignature() != nil {
		return nil
	}
	return csr
}

// countAttributes counts the attributes of a subject that have this type.
func countAttributes(csr *x509.CertificateRequest, oid string) (n int) {
	for _, name := range csr.Subject.Names {
		if name.Type.String() == oid {
			n++
		}
	}
	return n
}

var sliceUser = regexp.MustCompile(`^requesting-[0-9a-f]{12}$`)

// isOwn reports whether the subject is that of rome's control plane or of its slice.
func isOwn(csr *x509.CertificateRequest) bool {
	group, user := csr.Subject.Organization, csr.Subject.CommonName
	return slices.Equal(group, []string{"liqo.io"}) && user == "rome" ||
		slices.Equal(group, []string{"rome"}) && sliceUser.MatchString(user)
}

// requestsEnv sets the number of requests of each kind. The long form is make soak-requests.
const requestsEnv = "PROFFER_REQUESTS"

func requestDraws(t *testing.T) int {
	t.Helper()
	text := os.Getenv(requestsEnv)
	if text == "" {
		return 250
	}
	draws, err := strconv.Atoi(text)
	if err != nil || draws < 100 {
		t.Fatalf("%s=%q is not a number from 100 on", requestsEnv, text)
	}
	return draws
}

// TestNoCertificateIsForMoreThanItsConsumer generates requests. Liqo's own code says which of them
// Liqo has signed.
func TestNoCertificateIsForMoreThanItsConsumer(t *testing.T) {
	p := newSigningPeering(t)
	seed := mathrand.Uint64()
	t.Logf("seed %d", seed)
	m := newRequestMaker(t, mathrand.New(mathrand.NewPCG(seed, 0)))
	publicKey, err := x509.MarshalPKIXPublicKey(m.key.Public())
	test.Must(t, err)
	slice := aSlice("requesting", "gold")
	type identity struct{ group, user string }
	ofSlice := identity{"rome", authentication.CommonNameResourceSliceCSR(slice)}
	ofControlPlane := identity{"liqo.io", "rome"}
	kinds := []struct {
		kind       string
		object     client.Object
		by         []client.Client
		identities []identity
		// check is what Liqo checks before it has the request signed.
		check func(csr []byte) error
		// own: the guard checks whose identity it is.
		own bool
	}{
		{
			authv1beta1.ResourceSliceKind, slice, []client.Client{p.rome}, []identity{ofSlice},
			func(csr []byte) error {
				requesting := slice.DeepCopy()
				requesting.Spec.CSR = csr
				return authentication.CheckCSRForResourceSlice(nil, requesting, false)
			},
			false,
		},
		{
			authv1beta1.TenantKind, tenantOf("rome", nil), []client.Client{p.admin, peeringUser(t)}, []identity{ofControlPlane},
			func(csr []byte) error { return authentication.CheckCSRForControlPlane(csr, publicKey, "rome") }, false,
		},
		{
			authv1beta1.RenewKind, renewOf("rome", "requesting", nil), []client.Client{p.rome},
			[]identity{ofSlice, ofControlPlane, {"system:nodes", "system:node:n"}, {"liqo.io", "oslo"}},
			func([]byte) error { return nil }, true,
		},
	}
	var accepted, hostile, panicked int
	draws := requestDraws(t)
	for range draws {
		for _, k := range kinds {
			id := pick(m.random, k.identities)
			encoded := m.hostile(t, id.group, id.user)
			object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(k.object)
			test.Must(t, err)
			u := &unstructured.Unstructured{Object: object}
			u.SetGroupVersionKind(authv1beta1.GroupVersion.WithKind(k.kind))
			test.Must(t, unstructured.SetNestedField(u.Object, encoded, "spec", "csr"))
			refused := pick(m.random, k.by).Create(t.Context(), u, client.DryRunAll)
			if refused != nil && (!apierrors.IsInvalid(refused) || strings.Contains(refused.Error(), "resulted in error")) {
				t.Fatalf("%s: %v\n%s", k.kind, refused, encoded)
			}

			var csr *x509.CertificateRequest
			panics := false
			if text, err := base64.StdEncoding.DecodeString(encoded); err == nil {
				if panics, err = liqoChecks(func() error { return k.check(text) }); err == nil && !panics {
					csr = signed(text)
				}
			}
			wrong := ""
			switch {
			case panics:
				panicked++
				wrong = "panics Liqo"
			case csr == nil:
			case len(csr.Subject.Organization) != 1 || countAttributes(csr, "2.5.4.10") != 1:
				wrong = fmt.Sprintf("has the Organizations %q", csr.Subject.Organization)
			case countAttributes(csr, "2.5.4.3") != 1:
				wrong = "has several Common Names"
			case len(csr.Extensions) > 0:
				wrong = "has other names"
			case k.own && !isOwn(csr):
				wrong = "is for another identity: " + csr.Subject.String()
			}
			switch {
			case wrong != "" && refused == nil:
				t.Errorf("%s: accepted, and %s:\n%s", k.kind, wrong, encoded)
			case wrong != "":
				hostile++
			case csr != nil && refused == nil:
				accepted++
			}
		}
	}
	t.Logf("%d accepted, %d would be signed for more, of which %d panic Liqo", accepted, hostile, panicked)
	if accepted < draws/10 || hostile < draws/2 || panicked < draws/100 {
		t.Error("the generator makes too few requests of a kind")
	}
}
