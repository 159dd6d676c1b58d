package command

import (
	"time"

	authv1beta1 "github.com/liqotech/liqo/apis/authentication/v1beta1"
	corev1beta1 "github.com/liqotech/liqo/apis/core/v1beta1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"proffer.dev/proffer/test"
)

// replicaOf returns a slice as the consumer's crd-replicator creates it on the provider.
func replicaOf(id, name, class, cpu string) *authv1beta1.ResourceSlice {
	return &authv1beta1.ResourceSlice{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespaceOf(id), Name: name,
			Labels: map[string]string{
				"liqo.io/replication": "false", "liqo.io/replicated": "true", "liqo.io/originID": id,
				"liqo.io/remote-cluster-id": id, "liqo.io/remoteID": "here",
			},
			Annotations: map[string]string{"liqo.io/create-virtual-node": "true"},
		},
		Spec: authv1beta1.ResourceSliceSpec{
			Class:             authv1beta1.ResourceSliceClass(class),
			ConsumerClusterID: new(corev1beta1.ClusterID(id)), ProviderClusterID: new(corev1beta1.ClusterID("here")),
			Resources: corev1.ResourceList{
				corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse("1Gi"),
			},
		},
	}
}

// ask creates a slice as its consumer and authenticates it as Liqo. It returns the slice's key in
// the history.
func (m *multitenant) ask(id, name, class, cpu string) string {
	m.t.Helper()
	s := m.askOnly(id, name, class, cpu)
	m.authenticate(s)
	return s.Namespace + "/" + s.Name
}

// askOnly creates a slice that Liqo does not authenticate. It retries, since a new class may not be
// on the list of served classes yet.
func (m *multitenant) askOnly(id, name, class, cpu string) *authv1beta1.ResourceSlice {
	m.t.Helper()
	s := replicaOf(id, name, class, cpu)
	test.EventuallyWithin(m.t, answerTimeout, func() error { return m.consumers[id].Create(m.t.Context(), s) })
	return s
}

func (m *multitenant) authenticate(s *authv1beta1.ResourceSlice) {
	m.t.Helper()
	test.Must(m.t, m.writeStatus(m.admin, keyOf(s), func(s *authv1beta1.ResourceSlice) {
		s.Status.Conditions = append(s.Status.Conditions,
			conditionOf(authv1beta1.ResourceSliceConditionTypeAuthentication, "Because"))
	}))
}

func conditionOf(kind authv1beta1.ResourceSliceConditionType, reason string) authv1beta1.ResourceSliceCondition {
	return authv1beta1.ResourceSliceCondition{
		Type: kind, Status: authv1beta1.ResourceSliceConditionAccepted, Reason: reason,
		LastTransitionTime: metav1.NewTime(time.Now()),
	}
}

func keyOf(s *authv1beta1.ResourceSlice) string { return s.Namespace + "/" + s.Name }

func (m *multitenant) get(key string) (*authv1beta1.ResourceSlice, error) {
	id := ownerOf(key)
	s := &authv1beta1.ResourceSlice{}
	return s, m.admin.Get(m.t.Context(),
		client.ObjectKey{Namespace: namespaceOf(id), Name: key[len(namespaceOf(id))+1:]}, s)
}

// edit changes a slice as its consumer, and returns the error of the API server.
func (m *multitenant) edit(key string, change func(*authv1beta1.ResourceSlice)) error {
	for {
		s, err := m.get(key)
		if err != nil {
			return err
		}
		change(s)
		if err := m.consumers[ownerOf(key)].Update(m.t.Context(), s); !apierrors.IsConflict(err) {
			return err
		}
	}
}

// writeStatus changes the status of a slice as someone other than the operator.
func (m *multitenant) writeStatus(by client.Client, key string, change func(*authv1beta1.ResourceSlice)) error {
	for {
		s, err := m.get(key)
		if err != nil {
			return err
		}
		change(s)
		who := others
		if by != m.admin {
			who = forger
		}
		err = m.history.by(who, key, func() (string, error) {
			err := by.Status().Update(m.t.Context(), s)
			return s.ResourceVersion, err
		})
		if !apierrors.IsConflict(err) {
			return err
		}
	}
}

// forge writes the status of a slice as its consumer. It returns false if a guard refuses that.
func (m *multitenant) forge(key string, change func(*authv1beta1.ResourceSlice)) bool {
	m.t.Helper()
	return m.allowed(m.writeStatus(m.consumers[ownerOf(key)], key, change))
}

// attack changes a slice as its consumer. It returns false if a guard refuses that.
func (m *multitenant) attack(key string, change func(*authv1beta1.ResourceSlice)) bool {
	m.t.Helper()
	return m.allowed(m.edit(key, change))
}

func (m *multitenant) allowed(err error) bool {
	m.t.Helper()
	if m.guarded && (apierrors.IsForbidden(err) || apierrors.IsInvalid(err)) {
		m.t.Logf("refused: %v", err)
		return false
	}
	test.Must(m.t, err)
	return true
}

func grants(cpu string) func(*authv1beta1.ResourceSlice) {
	return func(s *authv1beta1.ResourceSlice) {
		i := resourcesConditionOf(s)
		if i < 0 {
			s.Status.Conditions = append(s.Status.Conditions,
				conditionOf(authv1beta1.ResourceSliceConditionTypeResources, "ProfferGranted"))
		} else {
			s.Status.Conditions[i].Status = authv1beta1.ResourceSliceConditionAccepted
			s.Status.Conditions[i].Reason = "ProfferGranted"
		}
		s.Status.Resources = corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse("1Gi"),
		}
	}
}

func resourcesConditionOf(s *authv1beta1.ResourceSlice) int {
	for i := range s.Status.Conditions {
		if s.Status.Conditions[i].Type == authv1beta1.ResourceSliceConditionTypeResources {
			return i
		}
	}
	return -1
}

func withoutAnswer(s *authv1beta1.ResourceSlice) {
	if i := resourcesConditionOf(s); i >= 0 {
		s.Status.Conditions = append(s.Status.Conditions[:i:i], s.Status.Conditions[i+1:]...)
	}
	s.Status.Resources = nil
}

func identify(id string) func(*authv1beta1.ResourceSlice) {
	return func(s *authv1beta1.ResourceSlice) { s.Spec.ConsumerClusterID = new(corev1beta1.ClusterID(id)) }
}

func withoutLabels(s *authv1beta1.ResourceSlice) {
	delete(s.Labels, "liqo.io/replicated")
	delete(s.Labels, "liqo.io/originID")
}

func asking(cpu string) func(*authv1beta1.ResourceSlice) {
	return func(s *authv1beta1.ResourceSlice) { s.Spec.Resources[corev1.ResourceCPU] = resource.MustParse(cpu) }
}

func movingTo(class string) func(*authv1beta1.ResourceSlice) {
	return func(s *authv1beta1.ResourceSlice) { s.Spec.Class = authv1beta1.ResourceSliceClass(class) }
}
