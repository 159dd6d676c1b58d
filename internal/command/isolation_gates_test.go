package command

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	authv1beta1 "github.com/liqotech/liqo/apis/authentication/v1beta1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/test"
)

// lockouts are ways in which a consumer tries to prevent the operator from lowering its grant.
var lockouts = map[string]func(m *multitenant, key string) (done bool){
	"stripped": func(m *multitenant, key string) bool { return m.attack(key, withoutLabels) },
	"unnamed": func(m *multitenant, key string) bool {
		return m.attack(key, func(s *authv1beta1.ResourceSlice) { s.Spec.ConsumerClusterID = nil })
	},
	"renamed": func(m *multitenant, key string) bool { return m.attack(key, identify("nobody")) },
	"undying": func(m *multitenant, key string) bool {
		if !m.attack(key,
			func(s *authv1beta1.ResourceSlice) { s.Finalizers = append(s.Finalizers, "rome.test/stays") }) {
			return false
		}
		m.delete(key)
		return true
	},
	"padded": (*multitenant).pad,
}

// pad fills a slice up to etcd's limit, to the byte: most of it with the CSR, the rest with an
// annotation. It returns false if a guard refuses that.
func (m *multitenant) pad(key string) (done bool) {
	const nearly, rest = 8 << 10, 16 << 10
	if !m.attack(key,
		func(s *authv1beta1.ResourceSlice) { s.Spec.CSR = bytes.Repeat([]byte("x"), (etcdLimit-nearly)/4*3) }) {
		return false
	}
	size := 0
	for step := rest / 2; step > 0; step /= 2 {
		pad := patchOf(object{
			"metadata": object{"annotations": object{"rome.test/pad": strings.Repeat("x", size+step)}},
		})
		if err := m.consumers[ownerOf(key)].Patch(m.t.Context(), metadataOf(key), pad); err == nil {
			size += step
		}
	}
	if size == 0 || size >= rest-1 {
		m.t.Fatalf("%s is not at the limit: another %d characters fit", key, size)
	}
	return true
}

// metadataOf returns the metadata of a slice.
func metadataOf(key string) *metav1.PartialObjectMetadata {
	name := metav1.ObjectMeta{Namespace: namespaceOf(ownerOf(key)), Name: key[strings.Index(key, "/")+1:]}
	return &metav1.PartialObjectMetadata{
		TypeMeta:   metav1.TypeMeta{APIVersion: authv1beta1.GroupVersion.String(), Kind: "ResourceSlice"},
		ObjectMeta: name,
	}
}

func TestALockedGrantIsStillLowered(t *testing.T) {
	withAndWithoutGuards(t, func(t *testing.T, m *multitenant) {
		keys := map[string]string{}
		for class := range lockouts {
			m.node(class, "8")
			m.createPolicy(class, withEvict)
			m.history.setBounds(class, 8000, 0)
		}
		m.start()
		for class := range lockouts {
			keys[class] = m.ask("rome", class, class, "8")
		}
		for class := range lockouts {
			m.awaitGrant(keys[class], "8")
		}
		for class, lock := range lockouts {
			lock(m, keys[class])
		}
		for class := range lockouts {
			m.history.setBounds(class, 8000, 0)
			m.editPolicy(class, lessForRome("2"))
		}
		for class := range lockouts {
			t.Run(class, func(t *testing.T) {
				m := m.forSubtest(t)
				m.awaitGrant(keys[class], "2")
				m.awaitGrant(m.ask("oslo", class, class, "8"), "6")
			})
		}
	})
}

// If only a short answer fits, it is written once. The next leader must find out that it stands.
func TestAShortAnswerStandsAndIsLoweredByTheNextLeader(t *testing.T) {
	m := newMultitenant(t, false)
	m.node("gold", "8")
	m.createPolicy("gold", withEvict)
	m.history.setBounds("gold", 8000, 0)
	m.start()
	key := m.ask("rome", "padded", "gold", "8")
	m.awaitGrant(key, "8")
	m.pad(key)
	m.history.setBounds("gold", 8000, 0)
	m.editPolicy("gold", lessForRome("4"))
	m.awaitGrant(key, "4")
	m.awaitGrant(m.ask("oslo", "early", "gold", "4"), "4")
	m.restart()
	m.editPolicy("gold", lessForRome("1"))
	m.awaitGrant(key, "1")
	m.awaitGrant(m.ask("oslo", "late", "gold", "3"), "3")
	// An answer that differs only in its message would be written within this time.
	m.consistently(11*time.Second, func() error {
		for _, reason := range m.eventsOf(key) {
			if reason == "Altered" || reason == "Unwritable" {
				return fmt.Errorf("the slice has an Event %s", reason)
			}
		}
		return nil
	})
}

// forSubtest returns the same provider for a subtest.
func (m *multitenant) forSubtest(t *testing.T) *multitenant {
	part := *m
	part.t = t
	return &part
}

// gateClosers are ways to close the gate of one slice. The first two close it for all slices of a
// consumer, without any attack.
var gateClosers = map[string]func(m *multitenant, key string){
	"tenant-missing": func(m *multitenant, _ string) {
		test.Must(m.t, client.IgnoreNotFound(m.admin.Delete(m.t.Context(), tenantOf("rome"))))
	},
	"tenant-doubled": func(m *multitenant, _ string) {
		another := tenantOf("rome")
		another.Name = "rome-2"
		test.Must(m.t, client.IgnoreAlreadyExists(m.admin.Create(m.t.Context(), another)))
	},
	"unauthenticated": func(m *multitenant, key string) {
		test.Must(m.t, m.writeStatus(m.admin, key, func(s *authv1beta1.ResourceSlice) {
			for i := range s.Status.Conditions {
				if s.Status.Conditions[i].Type == authv1beta1.ResourceSliceConditionTypeAuthentication {
					s.Status.Conditions[i].Status = authv1beta1.ResourceSliceConditionDenied
				}
			}
		}))
	},
	"stripped": func(m *multitenant, key string) { lockouts["stripped"](m, key) },
	"unnamed":  func(m *multitenant, key string) { lockouts["unnamed"](m, key) },
	"renamed":  func(m *multitenant, key string) { lockouts["renamed"](m, key) },
	"undying":  func(m *multitenant, key string) { lockouts["undying"](m, key) },
	"padded":   func(m *multitenant, key string) { lockouts["padded"](m, key) },
}

// Whether or not another slice's grant can be taken back, a later slice is answered: it gets what
// is free, and the reason.
func TestASliceIsAnsweredWhileAnotherCannotBe(t *testing.T) {
	for name, ways := range map[string][]string{
		"missing Tenant": {"tenant-missing"},
		"two Tenants":    {"tenant-doubled"},
		"broken slice":   {"unauthenticated", "stripped", "unnamed", "renamed", "undying", "padded"},
	} {
		t.Run(name, func(t *testing.T) {
			withAndWithoutGuards(t, func(t *testing.T, m *multitenant) { testBeside(t, m, ways) })
		})
	}
}

func testBeside(t *testing.T, m *multitenant, ways []string) {
	t.Helper()
	classes := map[string]string{} // The way that each class tests.
	for _, way := range ways {
		for class, reclaim := range map[string]v1alpha1.Reclaim{
			way + "-evict": v1alpha1.ReclaimEvict, way + "-unused": v1alpha1.ReclaimUnused,
		} {
			classes[class] = way
			m.node(class, "8")
			m.createPolicy(class, func(s *v1alpha1.ResourcePolicySpec) { s.Reclaim = reclaim })
			m.history.setBounds(class, 8000, 0)
		}
	}
	m.start()
	keys := map[string]string{}
	for class := range classes {
		keys[class] = m.ask("rome", class, class, "6")
	}
	for class := range classes {
		m.awaitGrant(keys[class], "6")
	}
	for class, way := range classes {
		gateClosers[way](m, keys[class])
	}
	for class := range classes {
		m.editPolicy(class, lessForRome("1"))
	}
	for class := range classes {
		t.Run(class, func(t *testing.T) {
			m := m.forSubtest(t)
			own := m.ask("oslo", class, class, "8")
			m.await(own, func(s sliceState) error {
				if s.status == "" || s.granted[cpu] < 2000 {
					return fmt.Errorf("%s is %s with %d, want what is free: %s",
						own, s.status, s.granted[cpu], s.message)
				}
				if s.granted[cpu] < 8000 && s.message == "" {
					return fmt.Errorf("%s has only %d, and no message says why", own, s.granted[cpu])
				}
				return nil
			})
		})
	}
}

// lessForRome returns an edit of a policy that lowers what rome may have.
func lessForRome(cpu string) object {
	return object{
		"overrides": []object{
			{"consumers": object{"clusterIDs": []string{"rome"}}, "offer": object{"max": object{"cpu": cpu}}},
		},
	}
}

// A slice that no answer fits into does not reduce what others get, and an Event reports it.
func TestASliceThatNoAnswerFitsIntoIsReportedAndHoldsNothing(t *testing.T) {
	m := newMultitenant(t, false)
	m.node("goldens", "8") // The name is as long as "default".
	m.createPolicy("goldens")
	m.history.setBounds("goldens", 8000, 0)
	m.start()
	full := m.ask("rome", "full", "default", "8")
	if !m.pad(full) {
		t.Fatal("without the guards, a slice cannot be padded up to etcd's limit")
	}
	test.Must(m.t, m.edit(full, movingTo("goldens")))
	m.awaitProbe()
	m.awaitGrant(m.ask("oslo", "own", "goldens", "8"), "8")
	test.EventuallyWithin(m.t, answerTimeout, func() error {
		if got := m.eventsOf(full); !slices.Contains(got, "Unwritable") {
			return fmt.Errorf("the Events are %v", got)
		}
		return nil
	})
}

// eventsOf returns the reasons of the Warnings about a slice.
func (m *multitenant) eventsOf(key string) (reasons []string) {
	m.t.Helper()
	var events eventsv1.EventList
	test.Must(m.t, m.admin.List(m.t.Context(), &events, client.InNamespace(namespaceOf(ownerOf(key)))))
	for _, e := range events.Items {
		if namespaceOf(ownerOf(key))+"/"+e.Regarding.Name == key && e.Type == corev1.EventTypeWarning {
			reasons = append(reasons, e.Reason)
		}
	}
	return reasons
}

// Without the guard of statuses, the operator takes back what a consumer grants itself, whatever
// state the slice is in. The slice then has what the operator granted, or an explicit 0: if an
// answer is only removed or denied, Liqo leaves its Quota.
func TestAForgedGrantIsTakenBackInEveryStateOfTheSlice(t *testing.T) {
	stuffed := func(s *authv1beta1.ResourceSlice) {
		grants("999")(s)
		s.Status.NodeLabels = map[string]string{}
		for i := range etcdLimit * 5 / 6 / 1000 {
			s.Status.NodeLabels[fmt.Sprintf("label-%d", i)] = strings.Repeat("x", 1000)
		}
	}
	granted := func(m *multitenant, class string) string {
		key := m.ask("rome", class, class, "2")
		m.awaitGrant(key, "2")
		return key
	}
	states := map[string]func(m *multitenant, class string) (key string, forged bool){
		"unauthenticated": func(m *multitenant, class string) (string, bool) {
			key := keyOf(m.askOnly("rome", class, class, "2"))
			return key, m.forge(key, grants("999"))
		},
		"being-deleted": func(m *multitenant, class string) (string, bool) {
			key := granted(m, class)
			done := lockouts["undying"](m, key)
			return key, done && m.forge(key, grants("999"))
		},
		"stuffed": func(m *multitenant, class string) (string, bool) {
			key := granted(m, class)
			return key, m.forge(key, stuffed)
		},
		"stuffed-and-padded": func(m *multitenant, class string) (string, bool) {
			key := granted(m, class)
			done := m.forge(key, grants("999"))
			return key, m.pad(key) && done
		},
		"stripped": func(m *multitenant, class string) (string, bool) {
			key := granted(m, class)
			done := m.attack(key, withoutLabels)
			return key, m.forge(key, grants("999")) && done
		},
		"renamed": func(m *multitenant, class string) (string, bool) {
			key := granted(m, class)
			m.attack(key, identify("nobody"))
			return key, m.forge(key, grants("999"))
		},
		"not-a-replica": func(m *multitenant, class string) (string, bool) {
			s := replicaOf("rome", class, class, "2")
			withoutLabels(s)
			s.Spec.ConsumerClusterID = nil
			if !m.allowed(m.consumers["rome"].Create(m.t.Context(), s)) {
				return "", false
			}
			return keyOf(s), m.forge(keyOf(s), grants("999"))
		},
	}
	neverGranted := []string{"unauthenticated", "not-a-replica"}
	withAndWithoutGuards(t, func(t *testing.T, m *multitenant) {
		for class := range states {
			m.node(class, "8")
			m.createPolicy(class, func(s *v1alpha1.ResourcePolicySpec) { s.Reclaim = v1alpha1.ReclaimRetain })
			m.history.setBounds(class, 8000, 0)
		}
		m.start()
		m.awaitProbe()
		for class, bring := range states {
			t.Run(class, func(t *testing.T) {
				m := m.forSubtest(t)
				if m.guarded {
					test.EventuallyWithin(m.t, answerTimeout, func() error {
						return m.consumers["rome"].Create(t.Context(), replicaOf("rome", "probe", class, "1"),
							client.DryRunAll)
					})
				}
				key, forged := bring(m, class)
				if !forged {
					return
				}
				given := int64(2000)
				if slices.Contains(neverGranted, class) {
					given = 0
				}
				m.await(key, func(s sliceState) error {
					if s.status != authv1beta1.ResourceSliceConditionAccepted || s.granted[cpu] > given {
						return fmt.Errorf("%s is %s with %d, want at most %d accepted: %s",
							key, s.status, s.granted[cpu], given, s.message)
					}
					return nil
				})
				// The forged grant takes no capacity.
				m.awaitGrant(m.ask("oslo", class, class, "6"), "6")
			})
		}
	})
}
