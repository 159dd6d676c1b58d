package main

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
)

// lockouts are what a consumer does so that its grant cannot be taken back.
var lockouts = map[string]func(m *market, key string) (done bool){
	"stripped": func(m *market, key string) bool { return m.attack(key, withoutLabels) },
	"unnamed": func(m *market, key string) bool {
		return m.attack(key, func(s *authv1beta1.ResourceSlice) { s.Spec.ConsumerClusterID = nil })
	},
	"renamed": func(m *market, key string) bool { return m.attack(key, identify("nobody")) },
	"undying": func(m *market, key string) bool {
		if !m.attack(key, func(s *authv1beta1.ResourceSlice) { s.Finalizers = append(s.Finalizers, "rome.test/stays") }) {
			return false
		}
		m.delete(key)
		return true
	},
	"padded": (*market).pad,
}

// pad makes a slice as large as etcd takes it, to the byte: most of it by what is asked for with it, the rest by an annotation. It reports false
// where a guard refuses that.
func (m *market) pad(key string) (done bool) {
	const etcdLimit, nearly, rest = 3 << 19, 8 << 10, 16 << 10 // etcd's --max-request-bytes as it is by default.
	if !m.attack(key, func(s *authv1beta1.ResourceSlice) { s.Spec.CSR = bytes.Repeat([]byte("x"), (etcdLimit-nearly)/4*3) }) {
		return false
	}
	size := 0
	for step := rest / 2; step > 0; step /= 2 {
		pad := patchOf(object{"metadata": object{"annotations": object{"rome.test/pad": strings.Repeat("x", size+step)}}})
		if err := m.consumers[ownerOf(key)].Patch(m.t.Context(), metadataOf(key), pad); err == nil {
			size += step
		}
	}
	if size == 0 || size >= rest-1 {
		m.t.Fatalf("%s is not at the limit: %d characters fit beside what it had", key, size)
	}
	return true
}

// metadataOf is a slice of which only the metadata is of interest.
func metadataOf(key string) *metav1.PartialObjectMetadata {
	name := metav1.ObjectMeta{Namespace: namespaceOf(ownerOf(key)), Name: key[strings.Index(key, "/")+1:]}
	return &metav1.PartialObjectMetadata{
		TypeMeta: metav1.TypeMeta{APIVersion: authv1beta1.GroupVersion.String(), Kind: "ResourceSlice"}, ObjectMeta: name,
	}
}

func TestAGrantThatIsLockedAwayIsLoweredAllTheSame(t *testing.T) {
	amongStrangers(t, func(t *testing.T, m *market) {
		keys := map[string]string{}
		for class := range lockouts {
			m.node(class, "8")
			m.share(class, evicting)
			m.history.bound(class, 8000, 0)
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
			m.history.bound(class, 8000, 0)
			m.editShare(class, lessForRome("2"))
		}
		for class := range lockouts {
			t.Run(class, func(t *testing.T) {
				m := m.within(t)
				m.awaitGrant(keys[class], "2")
				m.awaitGrant(m.ask("oslo", class, class, "8"), "6")
			})
		}
	})
}

// What only a short answer fits into is answered so, once: also by the next leader, who has to find out that it stands.
func TestAShortAnswerStandsAndIsLoweredByTheNextLeader(t *testing.T) {
	m := newMarket(t, false)
	m.node("gold", "8")
	m.share("gold", evicting)
	m.history.bound("gold", 8000, 0)
	m.start()
	key := m.ask("rome", "padded", "gold", "8")
	m.awaitGrant(key, "8")
	m.pad(key)
	m.history.bound("gold", 8000, 0)
	m.editShare("gold", lessForRome("4"))
	m.awaitGrant(key, "4")
	m.awaitGrant(m.ask("oslo", "early", "gold", "4"), "4")
	m.restart()
	m.editShare("gold", lessForRome("1"))
	m.awaitGrant(key, "1")
	m.awaitGrant(m.ask("oslo", "late", "gold", "3"), "3")
	// The next answer of which only the message differs is written within this time.
	m.consistently(11*time.Second, func() error {
		for _, reason := range m.eventsOf(key) {
			if reason == "Altered" || reason == "Unwritable" {
				return fmt.Errorf("there is an Event %s", reason)
			}
		}
		return nil
	})
}

// within is the same for a part of the test.
func (m *market) within(t *testing.T) *market {
	part := *m
	part.t = t
	return &part
}

// shuts are what shuts the gate of one slice; the first two do it to all of a consumer, and nobody means harm.
var shuts = map[string]func(m *market, key string){
	"tenant-missing": func(m *market, _ string) {
		m.must(client.IgnoreNotFound(m.admin.Delete(m.t.Context(), tenantOf("rome"))))
	},
	"tenant-doubled": func(m *market, _ string) {
		another := tenantOf("rome")
		another.Name = "rome-2"
		m.must(client.IgnoreAlreadyExists(m.admin.Create(m.t.Context(), another)))
	},
	"unauthenticated": func(m *market, key string) {
		m.must(m.writeStatus(m.admin, key, func(s *authv1beta1.ResourceSlice) {
			for i := range s.Status.Conditions {
				if s.Status.Conditions[i].Type == authv1beta1.ResourceSliceConditionTypeAuthentication {
					s.Status.Conditions[i].Status = authv1beta1.ResourceSliceConditionDenied
				}
			}
		}))
	},
	"stripped": func(m *market, key string) { lockouts["stripped"](m, key) },
	"unnamed":  func(m *market, key string) { lockouts["unnamed"](m, key) },
	"renamed":  func(m *market, key string) { lockouts["renamed"](m, key) },
	"undying":  func(m *market, key string) { lockouts["undying"](m, key) },
	"padded":   func(m *market, key string) { lockouts["padded"](m, key) },
}

// Whether what another has can be taken back or not: who comes later is told, and has what is free.
func TestASliceIsAnsweredBesideOneThatCannotBe(t *testing.T) {
	for name, ways := range map[string][]string{
		"of a missing Tenant":       {"tenant-missing"},
		"of a doubled Tenant":       {"tenant-doubled"},
		"that was spoilt by itself": {"unauthenticated", "stripped", "unnamed", "renamed", "undying", "padded"},
	} {
		t.Run(name, func(t *testing.T) {
			amongStrangers(t, func(t *testing.T, m *market) { testBeside(t, m, ways) })
		})
	}
}

func testBeside(t *testing.T, m *market, ways []string) {
	t.Helper()
	classes := map[string]string{} // And which way.
	for _, way := range ways {
		for class, reclaim := range map[string]v1alpha1.Reclaim{way + "-evict": v1alpha1.ReclaimEvict, way + "-unused": v1alpha1.ReclaimUnused} {
			classes[class] = way
			m.node(class, "8")
			m.share(class, func(s *v1alpha1.ResourcePolicySpec) { s.Reclaim = reclaim })
			m.history.bound(class, 8000, 0)
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
		shuts[way](m, keys[class])
	}
	for class := range classes {
		m.editShare(class, lessForRome("1"))
	}
	for class := range classes {
		t.Run(class, func(t *testing.T) {
			m := m.within(t)
			own := m.ask("oslo", class, class, "8")
			m.await(own, func(s seen) error {
				if s.status == "" || s.granted[cpu] < 2000 {
					return fmt.Errorf("%s: %s %d: %s; want what is free", own, s.status, s.granted[cpu], s.message)
				}
				if s.granted[cpu] < 8000 && s.message == "" {
					return fmt.Errorf("%s is not told why it has %d", own, s.granted[cpu])
				}
				return nil
			})
		})
	}
}

// lessForRome is how a policy is edited that gives one consumer less.
func lessForRome(cpu string) object {
	return object{"overrides": []object{{"consumers": object{"clusterIDs": []string{"rome"}}, "offer": object{"max": object{"cpu": cpu}}}}}
}

// An answer that does not fit into the object is not held against others, and an admin hears of it.
func TestASliceThatNoAnswerFitsIntoIsReportedAndNotPlannedOn(t *testing.T) {
	m := newMarket(t, false)
	m.node("goldens", "8") // A class whose name is as long as default.
	m.share("goldens")
	m.history.bound("goldens", 8000, 0)
	m.start()
	full := m.ask("rome", "full", "default", "8")
	if !m.pad(full) {
		t.Fatal("without the guards a slice can be made as large as etcd takes it")
	}
	m.must(m.edit(full, movingTo("goldens")))
	m.awaitAnother()
	m.awaitGrant(m.ask("oslo", "own", "goldens", "8"), "8")
	m.eventually(func() error {
		if got := m.eventsOf(full); !slices.Contains(got, "Unwritable") {
			return fmt.Errorf("the Events are %v", got)
		}
		return nil
	})
}

// eventsOf are the reasons of the Warnings that tell of a slice.
func (m *market) eventsOf(key string) (reasons []string) {
	m.t.Helper()
	var events eventsv1.EventList
	m.must(m.admin.List(m.t.Context(), &events, client.InNamespace(namespaceOf(ownerOf(key)))))
	for _, e := range events.Items {
		if namespaceOf(ownerOf(key))+"/"+e.Regarding.Name == key && e.Type == corev1.EventTypeWarning {
			reasons = append(reasons, e.Reason)
		}
	}
	return reasons
}

// Without the guard of statuses, what a consumer grants itself is taken back in whatever state the slice is: of cpu it then has what the
// operator gave it, or an explicit 0, since Liqo leaves the Quota of an answer that is only removed or denied.
func TestWhatAConsumerGrantsItselfIsTakenBackInWhateverState(t *testing.T) {
	stuffed := func(s *authv1beta1.ResourceSlice) {
		grants("999")(s)
		s.Status.NodeLabels = map[string]string{}
		for i := range 1300 {
			s.Status.NodeLabels[fmt.Sprintf("label-%d", i)] = strings.Repeat("x", 1000)
		}
	}
	granted := func(m *market, class string) string {
		key := m.ask("rome", class, class, "2")
		m.awaitGrant(key, "2")
		return key
	}
	states := map[string]func(m *market, class string) (key string, forged bool){
		"unauthenticated": func(m *market, class string) (string, bool) {
			key := keyOf(m.askOnly("rome", class, class, "2"))
			return key, m.forge(key, grants("999"))
		},
		"being-deleted": func(m *market, class string) (string, bool) {
			key := granted(m, class)
			done := lockouts["undying"](m, key)
			return key, done && m.forge(key, grants("999"))
		},
		"stuffed": func(m *market, class string) (string, bool) {
			key := granted(m, class)
			return key, m.forge(key, stuffed)
		},
		"stuffed-and-padded": func(m *market, class string) (string, bool) {
			key := granted(m, class)
			done := m.forge(key, grants("999"))
			return key, m.pad(key) && done
		},
		"stripped": func(m *market, class string) (string, bool) {
			key := granted(m, class)
			done := m.attack(key, withoutLabels)
			return key, m.forge(key, grants("999")) && done
		},
		"renamed": func(m *market, class string) (string, bool) {
			key := granted(m, class)
			m.attack(key, identify("nobody"))
			return key, m.forge(key, grants("999"))
		},
		"not-a-copy": func(m *market, class string) (string, bool) {
			s := replicaOf("rome", class, class, "2")
			withoutLabels(s)
			s.Spec.ConsumerClusterID = nil
			if !m.allowed(m.consumers["rome"].Create(m.t.Context(), s)) {
				return "", false
			}
			return keyOf(s), m.forge(keyOf(s), grants("999"))
		},
	}
	neverGranted := []string{"unauthenticated", "not-a-copy"}
	amongStrangers(t, func(t *testing.T, m *market) {
		for class := range states {
			m.node(class, "8")
			m.share(class, func(s *v1alpha1.ResourcePolicySpec) { s.Reclaim = v1alpha1.ReclaimRetain })
			m.history.bound(class, 8000, 0)
		}
		m.start()
		m.awaitAnother()
		for class, bring := range states {
			t.Run(class, func(t *testing.T) {
				m := m.within(t)
				if m.guarded {
					m.eventually(func() error {
						return m.consumers["rome"].Create(t.Context(), replicaOf("rome", "probe", class, "1"), client.DryRunAll)
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
				m.await(key, func(s seen) error {
					if s.status != authv1beta1.ResourceSliceConditionAccepted || s.granted[cpu] > given {
						return fmt.Errorf("%s: %s %d, want at most %d accepted: %s", key, s.status, s.granted[cpu], given, s.message)
					}
					return nil
				})
				// And it counts for nothing.
				m.awaitGrant(m.ask("oslo", class, class, "6"), "6")
			})
		}
	})
}
