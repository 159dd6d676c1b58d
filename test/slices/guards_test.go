package slices

import (
	"context"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	authv1beta1 "github.com/liqotech/liqo/apis/authentication/v1beta1"
	liqov1beta1 "github.com/liqotech/liqo/apis/core/v1beta1"
	"github.com/liqotech/liqo/pkg/liqo-controller-manager/authentication"
	"github.com/liqotech/liqo/pkg/liqo-controller-manager/authentication/forge"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"proffer.dev/proffer/test/slices/lab"
)

// guards are the admission policies for slices in config/default.
var guards = []string{
	"proffer-slice-status-guard", "proffer-slice-guard", "proffer-slice-deletion-guard", "proffer-csr-guard",
}

// withoutGuards deletes the guards on the provider until the end of the test.
func withoutGuards(t *testing.T) {
	t.Helper()
	lab.Cleanup(t, func(ctx context.Context) error {
		return errors.Join(provider.Install(ctx), awaitGuards(ctx, true))
	})
	args := []string{"delete", "--ignore-not-found", "validatingadmissionpolicybinding,validatingadmissionpolicy"}
	args = append(args, guards...)
	lab.Must(t, provider.Do(t.Context(), args...))
	ctx, cancel := context.WithTimeout(t.Context(), stepTimeout)
	defer cancel()
	lab.Must(t, awaitGuards(ctx, false))
}

// withGuards waits until all guards are enforced, as they are by default.
func withGuards(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), stepTimeout)
	defer cancel()
	lab.Must(t, awaitGuards(ctx, true))
}

// awaitGuards waits until every guard is enforced, or none is.
func awaitGuards(ctx context.Context, enforced bool) error {
	consumer, err := rome.At(ctx, provider)
	if err != nil {
		return err
	}
	probe := forge.ResourceSlice("probe", lab.TenantNamespace(rome.ID))
	probe.Spec.Class = "of-nobody"
	renew := &authv1beta1.Renew{
		ObjectMeta: metav1.ObjectMeta{Name: "probe", Namespace: probe.Namespace},
		Spec:       authv1beta1.RenewSpec{CSR: []byte("x")},
	}
	if err := client.IgnoreAlreadyExists(provider.Client.Create(ctx, probe.DeepCopy())); err != nil {
		return err
	}
	err = lab.Await(ctx, "the guards are installed or deleted", func(ctx context.Context) error {
		for guard, err := range map[string]error{
			"proffer-slice-status-guard": consumer.Status().Patch(ctx, probe.DeepCopy(),
				client.RawPatch(types.MergePatchType, []byte(`{"status":{}}`))),
			"proffer-slice-guard": consumer.Create(ctx, forge.ResourceSlice("forged", probe.Namespace),
				client.DryRunAll),
			"proffer-slice-deletion-guard": consumer.Delete(ctx, probe.DeepCopy(), client.DryRunAll,
				client.PropagationPolicy(metav1.DeletePropagationOrphan)),
			"proffer-csr-guard": consumer.Create(ctx, renew.DeepCopy(), client.DryRunAll),
		} {
			if rejected := err != nil && strings.Contains(err.Error(), guard); rejected != enforced {
				return errors.Join(fmt.Errorf("%s is enforced: %t, want %t", guard, rejected, enforced), err)
			}
		}
		return nil
	})
	return errors.Join(err, provider.Client.Delete(context.WithoutCancel(ctx), probe))
}

// Liqo's own webhooks, which the API server asks after the guards, refuse some of what the check sends.
func TestTheCheckTriesTheGuardsBesideLiqosWebhooks(t *testing.T) {
	withGuards(t)
	newPolicy(t, "tried", `{class: gold, offer: {fixed: {cpu: "8", memory: 8Gi, pods: "20"}}}`)
	small := amounts{"cpu": "2", "memory": "1Gi", "pods": "5"}
	s := newSlice(t, rome, "tried", "gold", small)
	s.awaitGrant(t, granted("tried", small))
	withPodGuard(t)
	offload(t, rome, "tried")
	reports := func(what string, want ...string) {
		t.Helper()
		lab.Eventually(t, what, func(ctx context.Context) error {
			report, stderr, _, err := provider.Proffer(ctx, "check", "-o", "json")
			for _, part := range want {
				if err == nil && !strings.Contains(report, part) {
					err = fmt.Errorf("no %q in %s%s", part, report, stderr)
				}
			}
			return err
		})
	}
	reports("the guards hold", "Refusals confirmed by dry runs: 6.")
	tried := append([]string{"proffer-slice-pod-guard"}, guards...)
	lab.Must(t, provider.Do(t.Context(), append([]string{"delete", "validatingadmissionpolicybinding"}, tried...)...))
	lab.Cleanup(t, func(ctx context.Context) error { return provider.Install(ctx) })
	for i := range tried {
		tried[i] += " does not hold"
	}
	reports("the guards do not hold", tried...)
}

// TestLiqoNegotiatesUnderTheGuards covers the life of a peering with Liqo's controllers on both
// sides. All other tests of the package also run with the guards, except those that remove them.
func TestLiqoNegotiatesUnderTheGuards(t *testing.T) {
	withGuards(t)
	newPolicy(t, "guarded", `{class: gold, offer: {fixed: {cpu: "8", memory: 8Gi, pods: "20"}}}`)
	small := amounts{"cpu": "2", "memory": "1Gi", "pods": "5"}
	s := newSlice(t, bern, "guarded", "gold", small)
	s.awaitGrant(t, granted("guarded", small))

	t.Run("liqoctl replaces the slice's spec", func(t *testing.T) {
		// The slice has no consumer ID and no CSR until Liqo has filled them in again.
		more := amounts{"cpu": "3", "memory": "1Gi", "pods": "5"}
		lab.Eventually(t, "the slice is written", func(ctx context.Context) error {
			rs, err := s.seen(ctx)
			if err != nil {
				return err
			}
			err = forge.MutateResourceSlice(rs, liqov1beta1.ClusterID(provider.ID),
				&forge.ResourceSliceOptions{Class: "gold", Resources: quantities(more)}, true)
			return errors.Join(err, bern.Client.Update(ctx, rs))
		})
		s.awaitGrant(t, granted("guarded", more))
	})
	t.Run("the certificate of the slice is renewed", func(t *testing.T) {
		var old []byte
		lab.Eventually(t, "the certificate is replaced by an old one", func(ctx context.Context) error {
			rs, err := s.replica(ctx)
			if err != nil {
				return err
			}
			if old, err = provider.OldCertificate(rs.Spec.CSR); err != nil {
				return err
			}
			rs.Status.AuthParams.SignedCRT = old
			return provider.Client.Status().Update(ctx, rs)
		})
		s.ask(t, small)
		lab.Eventually(t, "Liqo renews the certificate, and the consumer has the new one", func(ctx context.Context) error {
			rs, err := s.seen(ctx)
			if err != nil {
				return err
			}
			replica, err := s.replica(ctx)
			if err != nil {
				return err
			}
			if got := rs.Status.AuthParams.SignedCRT; string(got) == string(old) ||
				string(got) != string(replica.Status.AuthParams.SignedCRT) {
				return errors.New("not yet")
			}
			return nil
		})
		s.awaitGrant(t, granted("guarded", small))
	})
	t.Run("the certificate of the consumer is renewed", func(t *testing.T) { renewConsumer(t, bern) })
	t.Run("unpeering and peering again", func(t *testing.T) {
		s.remove(t)
		ctx, cancel := context.WithTimeout(t.Context(), 2*stepTimeout)
		defer cancel()
		lab.Must(t, errors.Join(bern.Unpeer(ctx, provider), bern.Peer(ctx, provider)))
		again := newSlice(t, bern, "again", "gold", small)
		again.awaitGrant(t, granted("guarded", small))
	})
}

// renewConsumer replaces the certificate of a consumer's control plane by an old one, and waits
// until the consumer has a renewed one.
func renewConsumer(t *testing.T, consumer *lab.Cluster) {
	t.Helper()
	namespace := lab.TenantNamespace(consumer.ID)
	tenant := forge.Tenant(liqov1beta1.ClusterID(consumer.ID), &namespace)
	var old []byte
	lab.Eventually(t, "the certificate is replaced by an old one", func(ctx context.Context) (err error) {
		if err := provider.Client.Get(ctx, client.ObjectKeyFromObject(tenant), tenant); err != nil {
			return err
		}
		if old, err = provider.OldCertificate(tenant.Spec.CSR); err != nil {
			return err
		}
		tenant.Status.AuthParams.SignedCRT = old
		return provider.Client.Status().Update(ctx, tenant)
	})
	lab.Eventually(t, "Liqo renews the certificate, and the consumer has the new one", func(ctx context.Context) error {
		if err := provider.Client.Get(ctx, client.ObjectKeyFromObject(tenant), tenant); err != nil {
			return err
		}
		identity := forge.Identity(forge.ControlPlaneIdentityName(liqov1beta1.ClusterID(provider.ID)),
			lab.TenantNamespace(provider.ID))
		if err := consumer.Client.Get(ctx, client.ObjectKeyFromObject(identity), identity); err != nil {
			return err
		}
		got := string(identity.Spec.AuthParams.SignedCRT)
		if got == string(old) || got != string(tenant.Status.AuthParams.SignedCRT) {
			return errors.New("not yet")
		}
		return nil
	})
}

// The consumer uses the certificate and role that Liqo gave it. The tests in test/deploy cover the
// messages and bounds of the guards.
func TestTheGuardsRejectEachAbuse(t *testing.T) {
	withGuards(t)
	newPolicy(t, "abused", `{class: gold, offer: {fixed: {cpu: "8", memory: 8Gi, pods: "20"}}}`)
	small := amounts{"cpu": "2", "memory": "1Gi", "pods": "5"}
	s := newSlice(t, rome, "abused", "gold", small)
	s.awaitGrant(t, granted("abused", small))
	before, err := s.replica(t.Context())
	lab.Must(t, err)
	oslosID := liqov1beta1.ClusterID(oslo.ID)
	for name, abuse := range map[string]func(*authv1beta1.ResourceSlice){
		"the label replicated":  func(rs *authv1beta1.ResourceSlice) { delete(rs.Labels, "liqo.io/replicated") },
		"the label originID":    func(rs *authv1beta1.ResourceSlice) { rs.Labels["liqo.io/originID"] = oslo.ID },
		"the label replication": func(rs *authv1beta1.ResourceSlice) { rs.Labels["liqo.io/replication"] = "true" },
		"the ID of another":     func(rs *authv1beta1.ResourceSlice) { rs.Spec.ConsumerClusterID = &oslosID },
		"no ID":                 func(rs *authv1beta1.ResourceSlice) { rs.Spec.ConsumerClusterID = nil },
		"a finalizer": func(rs *authv1beta1.ResourceSlice) {
			rs.Finalizers = append(rs.Finalizers, "rome.test/keep")
		},
		"an owner": func(rs *authv1beta1.ResourceSlice) {
			rs.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: "x", UID: "x"}}
		},
		"annotations of 200,000 characters": func(rs *authv1beta1.ResourceSlice) {
			rs.Annotations["a"] = strings.Repeat("x", 200_000)
		},
	} {
		err := editAtProvider(t.Context(), s, abuse)
		if err := refused(err, metav1.StatusReasonInvalid, "proffer-slice-guard"); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	tooLong := func(rs *authv1beta1.ResourceSlice) { rs.Spec.CSR = make([]byte, 1_000_000) }
	if err := refused(editAtProvider(t.Context(), s, tooLong), metav1.StatusReasonInvalid, "proffer-csr-guard"); err != nil {
		t.Errorf("a CSR up to etcd's limit: %v", err)
	}
	lab.Check(t, refused(s.answerItself(t.Context()), metav1.StatusReasonForbidden,
		"only the provider writes the status of a ResourceSlice, which is its answer: "+
			"request resources in spec.resources, and wait"))
	for _, policy := range []metav1.DeletionPropagation{
		metav1.DeletePropagationOrphan, metav1.DeletePropagationForeground,
	} {
		if err := refused(deleteAtProvider(t.Context(), s, policy), metav1.StatusReasonInvalid,
			"a ResourceSlice is deleted together with its Quota"); err != nil {
			t.Errorf("deletion by %s: %v", policy, err)
		}
	}
	after, err := s.replica(t.Context())
	lab.Must(t, err)
	if after.ResourceVersion != before.ResourceVersion {
		t.Error("an abuse changed the slice")
	}
}

// TestWithoutTheGuardsAQuotaCanStayBehind shows an attack that the guards prevent. The consumer
// removes its ID from a slice, so that Liqo no longer finds the Quota, deletes the slice, and
// orphans the Quota, which still admits the consumer's pods.
func TestWithoutTheGuardsAQuotaCanStayBehind(t *testing.T) {
	withoutGuards(t)
	newPolicy(t, "orphaned", `{class: gold, offer: {fixed: {cpu: "8", memory: 8Gi, pods: "20"}}}`)
	small := amounts{"cpu": "2", "memory": "1Gi", "pods": "5"}
	s := newSlice(t, rome, "orphaned", "gold", small)
	s.awaitGrant(t, granted("orphaned", small))

	// The consumer's crd-replicator would create the slice again, so point the slice to another
	// destination.
	local := forge.ResourceSlice(s.name, lab.TenantNamespace(provider.ID))
	patch(t, rome, local, "/metadata/labels/liqo.io~1remoteID", "nobody")
	t.Cleanup(func() {
		err := provider.Client.Delete(context.WithoutCancel(t.Context()), s.emptyQuota())
		lab.Check(t, client.IgnoreNotFound(err))
		patch(t, rome, local, "/metadata/labels/liqo.io~1remoteID", provider.ID)
	})
	hide := func(rs *authv1beta1.ResourceSlice) {
		delete(rs.Labels, "liqo.io/replicated")
		rs.Spec.ConsumerClusterID = nil
	}
	lab.Eventually(t, "the slice is hidden", func(ctx context.Context) error { return editAtProvider(ctx, s, hide) })
	lab.Must(t, deleteAtProvider(t.Context(), s, metav1.DeletePropagationOrphan))
	lab.Eventually(t, "the slice is gone", func(ctx context.Context) error {
		return isGone(ctx, provider, forge.ResourceSlice(s.name, lab.TenantNamespace(rome.ID)))
	})
	quota := s.emptyQuota()
	lab.Must(t, provider.Client.Get(t.Context(), client.ObjectKeyFromObject(quota), quota))
	if len(quota.OwnerReferences) > 0 {
		t.Errorf("the quota has the owners %+v, want none", quota.OwnerReferences)
	}
	lab.Check(t, differ("the quota", small, amountsOf(quota.Spec.Resources)))
}

// TestWithoutTheGuardsACertificateIsForAnotherGroup shows an attack that the guards prevent. Liqo
// compares the first Organization of a slice's certificate signing request, and the certificate is for
// all of them.
func TestWithoutTheGuardsACertificateIsForAnotherGroup(t *testing.T) {
	key, _, err := authentication.GetClusterKeys(t.Context(), rome.Client, "liqo")
	lab.Must(t, err)
	s := slice{rome, "groups"}
	rs := forge.ResourceSlice(s.name, lab.TenantNamespace(provider.ID))
	rs.Spec.Class, rs.Spec.ConsumerClusterID = "of-nobody", new(liqov1beta1.ClusterID(rome.ID))
	request, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{
		CommonName: authentication.CommonNameResourceSliceCSR(rs), Organization: []string{rome.ID, "the-admins-of-milan"},
	}}, key)
	lab.Must(t, err)
	csr := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: request})

	withGuards(t)
	consumer, err := rome.At(t.Context(), provider)
	lab.Must(t, err)
	renew := &authv1beta1.Renew{
		ObjectMeta: metav1.ObjectMeta{Name: s.name, Namespace: lab.TenantNamespace(rome.ID)},
		Spec:       authv1beta1.RenewSpec{CSR: csr},
	}
	lab.Check(t, refused(consumer.Create(t.Context(), renew, client.DryRunAll), metav1.StatusReasonInvalid,
		"the subject of the request in spec.csr does not begin with its only Organization"))

	withoutGuards(t)
	err = forge.MutateResourceSlice(rs, liqov1beta1.ClusterID(provider.ID),
		&forge.ResourceSliceOptions{Class: "of-nobody", Resources: quantities(amounts{"cpu": "1"})}, false)
	lab.Must(t, err)
	rs.Spec.ConsumerClusterID, rs.Spec.CSR = new(liqov1beta1.ClusterID(rome.ID)), csr
	t.Cleanup(func() { s.remove(t) })
	lab.Must(t, rome.Client.Create(t.Context(), rs))
	lab.Eventually(t, "the certificate is signed", func(ctx context.Context) error {
		replica, err := s.replica(ctx)
		if err != nil {
			return err
		}
		if replica.Status.AuthParams == nil {
			return errors.New("not yet")
		}
		block, _ := pem.Decode(replica.Status.AuthParams.SignedCRT)
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return err
		}
		if want := []string{rome.ID, "the-admins-of-milan"}; !slices.Equal(certificate.Subject.Organization, want) {
			t.Errorf("the certificate is for the groups %q, want %q", certificate.Subject.Organization, want)
		}
		return nil
	})
}

// TestTheGuardsFitLiqosTypes uses kube-controller-manager's type check of the expressions against
// Liqo's CRDs.
func TestTheGuardsFitLiqosTypes(t *testing.T) { requireTypes(t, guards...) }

func requireTypes(t *testing.T, policies ...string) {
	t.Helper()
	requireTypesOn(t, provider, policies...)
}

func requireTypesOn(t *testing.T, c *lab.Cluster, policies ...string) {
	t.Helper()
	for _, name := range policies {
		lab.Eventually(t, "the types of "+name+" are checked", func(ctx context.Context) error {
			var policy admissionv1.ValidatingAdmissionPolicy
			if err := c.Client.Get(ctx, client.ObjectKey{Name: name}, &policy); err != nil {
				return err
			}
			if policy.Status.TypeChecking == nil || policy.Status.ObservedGeneration != policy.Generation {
				return errors.New("not yet")
			}
			for _, warning := range policy.Status.TypeChecking.ExpressionWarnings {
				t.Errorf("%s: %s", warning.FieldRef, warning.Warning)
			}
			return nil
		})
	}
}

// TestAConsumerHasNoRightsOnTheOperatorsRecords reviews every verb on the operator's objects, for a
// consumer's control plane and for the identity of one of its slices.
func TestAConsumerHasNoRightsOnTheOperatorsRecords(t *testing.T) {
	newPolicy(t, "recorded", `{class: gold, offer: {fixed: {cpu: "8", memory: 8Gi, pods: "20"}}}`)
	small := amounts{"cpu": "2", "memory": "1Gi", "pods": "5"}
	s := newSlice(t, rome, "recorded", "gold", small)
	s.awaitGrant(t, granted("recorded", small))
	own := authorizationv1.ResourceAttributes{
		Namespace: lab.TenantNamespace(rome.ID), Verb: "update", Group: authv1beta1.GroupVersion.Group,
		Resource: "resourceslices",
	}
	for name, subject := range map[string]authorizationv1.SubjectAccessReviewSpec{
		"control plane": {User: rome.ID, Groups: []string{"liqo.io", "system:authenticated"}},
		"slice":         {User: s.emptyQuota().Name, Groups: []string{rome.ID, "system:authenticated"}},
	} {
		allowed := func(what authorizationv1.ResourceAttributes) bool {
			review := &authorizationv1.SubjectAccessReview{Spec: *subject.DeepCopy()}
			review.Spec.ResourceAttributes = &what
			lab.Must(t, provider.Client.Create(t.Context(), review))
			return review.Status.Allowed
		}
		if got, want := allowed(own), name == "control plane"; got != want {
			t.Errorf("%s: can write slices: %t, want %t", name, got, want)
		}
		for _, verb := range []string{"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"} {
			for group, resources := range map[string][]string{
				"proffer.dev":         {"grants", "grants/status", "resourcepolicies", "resourcepolicies/status"},
				"coordination.k8s.io": {"leases"}, "": {"configmaps", "secrets", "pods", "serviceaccounts"},
				"apps":                         {"deployments"},
				"admissionregistration.k8s.io": {"validatingadmissionpolicies", "validatingadmissionpolicybindings"},
			} {
				for _, resource := range resources {
					for _, namespace := range []string{lab.OperatorNamespace, lab.TenantNamespace(rome.ID), ""} {
						if group != "proffer.dev" && namespace == lab.TenantNamespace(rome.ID) {
							continue // Liqo's own objects
						}
						resource, sub, _ := strings.Cut(resource, "/")
						if allowed(authorizationv1.ResourceAttributes{
							Namespace: namespace, Verb: verb, Group: group, Resource: resource, Subresource: sub,
						}) {
							t.Errorf("%s: can %s %s/%s of %q in namespace %q", name, verb, resource, sub, group, namespace)
						}
					}
				}
			}
		}
	}
	// A real request agrees with the reviews.
	consumer, err := rome.At(t.Context(), provider)
	lab.Must(t, err)
	_, err = recordedGrants(t.Context(), consumer)
	if !apierrors.IsForbidden(err) && !meta.IsNoMatchError(err) {
		t.Errorf("a list of the grants: %v, want it forbidden", err)
	}
}

// editAtProvider changes the slice on the provider as the consumer.
func editAtProvider(ctx context.Context, s slice, change func(*authv1beta1.ResourceSlice)) error {
	consumer, err := s.consumer.At(ctx, provider)
	if err != nil {
		return err
	}
	rs, err := s.replica(ctx)
	if err != nil {
		return err
	}
	change(rs)
	return consumer.Update(ctx, rs)
}

func deleteAtProvider(ctx context.Context, s slice, policy metav1.DeletionPropagation) error {
	consumer, err := s.consumer.At(ctx, provider)
	if err != nil {
		return err
	}
	return consumer.Delete(ctx, forge.ResourceSlice(s.name, lab.TenantNamespace(s.consumer.ID)),
		client.PropagationPolicy(policy))
}
