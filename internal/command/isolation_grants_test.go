package command

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	authv1beta1 "github.com/liqotech/liqo/apis/authentication/v1beta1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/test"
)

// In all tests below, history checks each answer: no more is promised of a class than it has, nor
// to one consumer than it may have.

func TestAGrantCountsForTheOwnerOfItsNamespace(t *testing.T) {
	withAndWithoutGuards(t, func(t *testing.T, m *multitenant) {
		m.node("gold", "16")
		m.createPolicy("gold", withMax("4"))
		m.history.setBounds("gold", 16000, 4000)
		m.start()
		mine := m.ask("rome", "mine", "gold", "4")
		m.awaitGrant(mine, "4")
		for i, id := range []string{"oslo", "nobody", "rome-2"} {
			m.attack(mine, identify(id))
			another := m.ask("rome", fmt.Sprintf("another-%d", i), "gold", "4")
			m.awaitAnswer(another)
			if has := m.history.promisedTo(another); has > 0 {
				t.Errorf("as %s, rome is granted %d on top of its 4000 of 4000", id, has)
			}
		}
		// None of that counts against oslo.
		m.awaitGrant(m.ask("oslo", "own", "gold", "4"), "4")
	})
}

func TestTheNextLeaderCountsAGrantThatHasLostItsLabels(t *testing.T) {
	withAndWithoutGuards(t, func(t *testing.T, m *multitenant) {
		m.startWithGold()
		mine := m.ask("rome", "mine", "gold", "8")
		m.awaitGrant(mine, "8")
		m.attack(mine, func(s *authv1beta1.ResourceSlice) { withoutLabels(s); identify("nobody")(s) })
		m.restart()
		own := m.ask("oslo", "own", "gold", "8")
		m.awaitAnswer(own)
		m.awaitProbe()
		if has := m.history.promisedTo(own); has > 0 {
			t.Errorf("oslo has %d of 8000, but rome has all 8000", has)
		}
	})
}

// Two policies share the nodes of a class, each for one consumer.
func TestAGrantOfADeletedPolicyCountsForTheNextLeader(t *testing.T) {
	for name, tenant := range map[string]bool{"with its Tenant": true, "without its Tenant": false} {
		t.Run(name, func(t *testing.T) {
			withAndWithoutGuards(t, func(t *testing.T, m *multitenant) {
				m.node("gold", "8")
				m.createPolicy("gold", only("rome"))
				other := policyFor("gold", only("oslo"))
				other.Name = "gold-of-oslo"
				m.create(other)
				m.history.setBounds("gold", 8000, 0)
				m.start()
				mine := m.ask("rome", "mine", "gold", "8")
				m.awaitGrant(mine, "8")
				own := m.ask("oslo", "own", "gold", "8")
				m.awaitGrant(own, "0")
				m.kill()
				if !tenant {
					test.Must(m.t, m.admin.Delete(t.Context(), tenantOf("rome")))
				}
				m.deletePolicy("gold")
				m.start()
				m.awaitProbe()
				within := func() error {
					if a, b := m.history.promisedTo(mine), m.history.promisedTo(own); a+b > 8000 {
						return fmt.Errorf("rome has %d and oslo %d of 8000", a, b)
					}
					return nil
				}
				m.consistently(quietPeriod, within)
				m.awaitProbe()
				test.Must(m.t, within())
			})
		})
	}
}

func only(id string) func(*v1alpha1.ResourcePolicySpec) {
	return func(s *v1alpha1.ResourcePolicySpec) {
		s.Consumers = &v1alpha1.Consumers{ClusterIDs: []v1alpha1.ClusterID{v1alpha1.ClusterID(id)}}
	}
}

func TestASliceThatMovesWithoutALeaderTakesNothingFromOthers(t *testing.T) {
	withAndWithoutGuards(t, func(_ *testing.T, m *multitenant) {
		for _, class := range []string{"gold", "silver"} {
			m.node(class, "8")
			m.createPolicy(class)
			m.history.setBounds(class, 8000, 0)
		}
		m.start()
		moves := m.ask("oslo", "moves", "gold", "8") // The older one: oslo also sorts first within a second.
		m.awaitGrant(moves, "8")
		stays := m.ask("rome", "stays", "silver", "8")
		m.awaitGrant(stays, "8")
		m.kill()
		test.Must(m.t, m.edit(moves, movingTo("silver")))
		m.start()
		m.awaitGrant(moves, "0")
		m.awaitProbe()
		m.awaitGrant(stays, "8")
		m.history.requireKept(stays)
	})
}

func TestARestartWritesNoAnswerInAForeignClass(t *testing.T) {
	for name, answered := range map[string]bool{"answered by another controller": true, "not answered yet": false} {
		t.Run(name, func(t *testing.T) {
			withAndWithoutGuards(t, func(t *testing.T, m *multitenant) {
				m.startWithGold()
				mine := m.ask("rome", "mine", "gold", "6")
				m.awaitGrant(mine, "6")
				if m.guarded {
					m.serveByOthers("theirs")
				}
				test.Must(m.t, m.edit(mine, movingTo("theirs")))
				if answered {
					test.Must(m.t, m.writeStatus(m.admin, mine, func(s *authv1beta1.ResourceSlice) {
						grants("3")(s)
						s.Status.Conditions[resourcesConditionOf(s)].Reason = "Theirs"
					}))
				}
				before := m.history.answers(mine)
				m.restart()
				own := m.ask("oslo", "own", "gold", "8")
				m.awaitAnswer(own)
				m.awaitProbe()
				m.consistently(quietPeriod, func() error {
					if after := m.history.answers(mine); after != before {
						return fmt.Errorf("a slice of a foreign class was answered: %+v", m.state(mine))
					}
					return nil
				})
				if has := m.history.promisedTo(own); !answered && has != 2000 {
					t.Errorf("oslo has %d, want the 2000 that rome's slice leaves until another controller answers it",
						has)
				}
			})
		})
	}
}

// serveByOthers adds a class of another controller to the list of classes that consumers may ask
// for.
func (m *multitenant) serveByOthers(class string) {
	m.t.Helper()
	list := &v1alpha1.AdmissionParams{
		ObjectMeta: metav1.ObjectMeta{Namespace: operatorNamespace, Name: "proffer-served-classes"},
	}
	test.Must(m.t, m.admin.Patch(m.t.Context(), list, patchOf(object{"data": object{class: "others"}})))
	probe := replicaOf("rome", "probe", class, "1")
	test.EventuallyWithin(m.t, answerTimeout, func() error { return m.consumers["rome"].Create(m.t.Context(), probe, client.DryRunAll) })
}

func (m *multitenant) state(key string) sliceState {
	m.t.Helper()
	s, err := m.get(key)
	test.Must(m.t, err)
	return sliceStateOf(s)
}

func TestAStatusForgedWithoutALeaderCostsOthersNothing(t *testing.T) {
	withAndWithoutGuards(t, func(_ *testing.T, m *multitenant) {
		m.startWithGold()
		forges := m.ask("oslo", "forges", "gold", "4") // The older one: oslo also sorts first within a second.
		m.awaitGrant(forges, "4")
		honest := m.ask("rome", "honest", "gold", "4")
		m.awaitGrant(honest, "4")
		m.kill()
		test.Must(m.t, m.edit(forges, asking("8")))
		m.forge(forges, grants("8"))
		m.start()
		m.awaitProbe()
		m.awaitGrant(forges, "4")
		m.awaitGrant(honest, "4")
		m.history.requireKept(honest)
	})
}

func TestAnAnswerRemovedWithoutALeaderStillCounts(t *testing.T) {
	for name, hidden := range map[string]bool{"only the answer": false, "and the labels": true} {
		t.Run(name, func(t *testing.T) {
			withAndWithoutGuards(t, func(t *testing.T, m *multitenant) {
				m.startWithGold()
				mine := m.ask("rome", "mine", "gold", "8")
				m.awaitGrant(mine, "8")
				m.kill()
				test.Must(m.t, m.edit(mine, asking("1")))
				m.forge(mine, withoutAnswer)
				if hidden {
					m.attack(mine, withoutLabels)
				}
				m.start()
				own := m.ask("oslo", "own", "gold", "8")
				m.awaitAnswer(own)
				m.awaitProbe()
				if a, b := m.history.promisedTo(mine), m.history.promisedTo(own); a+b > 8000 {
					t.Errorf("rome has %d and oslo %d of 8000", a, b)
				}
			})
		})
	}
}

// departure is a way in which slices give up what their pods still use.
type departure struct {
	leave func(m *multitenant, key string)
	// restarted reports whether the operator is restarted afterwards.
	restarted bool
}

var departures = map[string]departure{
	"deleted":           {leave: (*multitenant).delete},
	"deleted-restarted": {leave: (*multitenant).delete, restarted: true},
	"moved": {leave: func(m *multitenant, key string) {
		test.Must(m.t, m.edit(key, movingTo(spare)))
		m.awaitClass(key, spare)
	}},
	"asks-for-nothing":           {leave: (*multitenant).askForNothing},
	"asks-for-nothing-restarted": {leave: (*multitenant).askForNothing, restarted: true},
	"asks-for-nothing-moved": {leave: func(m *multitenant, key string) {
		m.askForNothing(key)
		test.Must(m.t, m.edit(key, movingTo(spare)))
		m.awaitClass(key, spare)
	}},
	"recreated-asks-for-nothing": {leave: func(m *multitenant, key string) {
		s, err := m.get(key)
		test.Must(m.t, err)
		m.delete(key)
		m.awaitGrant(m.ask("rome", s.Name, string(s.Spec.Class), "0"), "0")
	}},
}

func (m *multitenant) askForNothing(key string) {
	m.t.Helper()
	test.Must(m.t, m.edit(key, asking("0")))
	m.awaitGrant(key, "0")
}

// Pods of these sources' classes are not bound when their slice gives them up, but later: those of waits exist,
// and Liqo has accepted those of accepted.
const (
	waits    = "waits"
	accepted = "accepted"
)

// Each departure has classes of its own, with one slice and one pod of rome.
func TestPodsOfDeletedSlicesCountUntilTheyEnd(t *testing.T) {
	sources := map[string]func(*v1alpha1.ResourcePolicySpec){
		"free":   func(*v1alpha1.ResourcePolicySpec) {},
		waits:    func(*v1alpha1.ResourcePolicySpec) {},
		accepted: func(*v1alpha1.ResourcePolicySpec) {},
		"whole":  func(s *v1alpha1.ResourcePolicySpec) { s.Offer.Nodes.Count = v1alpha1.NodeCountAllocatable },
		"fixed": func(s *v1alpha1.ResourcePolicySpec) {
			s.Offer = v1alpha1.PolicyOffer{
				Fixed: v1alpha1.Quantities{
					"cpu": {Quantity: resource.MustParse("4")}, "memory": {Quantity: resource.MustParse("64Gi")},
				},
			}
		},
	}
	withAndWithoutGuards(t, func(t *testing.T, m *multitenant) {
		classes := map[string][]string{} // By departure.
		for name := range departures {
			for of, source := range sources {
				class := name + "-" + of
				classes[name] = append(classes[name], class)
				m.node(class, "16")
				m.createPolicy(class, withMax("4"), source)
				m.history.setBounds(class, 16000, 4000)
			}
		}
		m.start()
		first, pods := map[string]string{}, map[string]*corev1.Pod{}
		for _, class := range slices.Concat(slices.Collect(maps.Values(classes))...) {
			first[class] = m.ask("rome", class+"-1", class, "4")
		}
		for class := range first {
			m.awaitGrant(first[class], "4")
			switch {
			case strings.HasSuffix(class, accepted):
				pods[class] = m.accepted(class, "rome", class+"-1", "3")
			case strings.HasSuffix(class, waits):
				pods[class] = m.waiting(class, "rome", class+"-1", "3")
			default:
				pods[class] = m.waiting(class, "rome", class+"-1", "3")
				m.bind(pods[class], class)
			}
		}
		m.awaitCounted(slices.Collect(maps.Values(pods))...)
		leave := func(m *multitenant, name string) {
			for _, class := range classes[name] {
				departures[name].leave(m, first[class])
			}
		}
		test := func(m *multitenant, name string) {
			next := map[string]string{}
			for _, class := range classes[name] {
				next[class] = m.ask("rome", class+"-2", class, "4")
			}
			for _, class := range classes[name] {
				m.awaitGrant(next[class], "1")
			}
			for _, source := range []string{waits, accepted} {
				late := name + "-" + source
				m.bind(pods[late], late)
			}
			// Running pods of rome do not count against oslo.
			for _, class := range classes[name] {
				m.awaitGrant(m.ask("oslo", class, class, "4"), "4")
			}
			for _, class := range classes[name] {
				m.end(pods[class])
			}
			for _, class := range classes[name] {
				m.awaitGrant(next[class], "4")
			}
		}
		for name, d := range departures {
			if !d.restarted {
				t.Run(name, func(t *testing.T) {
					m := m.forSubtest(t)
					leave(m, name)
					test(m, name)
				})
			}
		}
		for name, d := range departures {
			if d.restarted {
				leave(m, name)
			}
		}
		m.restart()
		for name, d := range departures {
			if d.restarted {
				t.Run(name, func(t *testing.T) { test(m.forSubtest(t), name) })
			}
		}
	})
}

// What an admin does to a consumer gives nothing to others of what its pods wait for.
func TestPodsThatWaitCountWhateverTheAdminDoes(t *testing.T) {
	for name, do := range map[string]func(m *multitenant, key string){
		"drain": func(m *multitenant, key string) {
			tenant := func(condition string) {
				test.Must(m.t, m.admin.Patch(m.t.Context(), tenantOf("rome"), patchOf(object{"spec": object{"tenantCondition": condition}})))
			}
			tenant("Drained")
			m.delete(key)
			tenant("Active")
		},
		"edit": func(m *multitenant, key string) {
			m.editPolicy("gold", object{"reclaim": "Evict", "offer": object{"max": object{"cpu": "1"}}})
			m.awaitGrant(key, "1")
			m.editPolicy("gold", object{"reclaim": nil, "offer": object{"max": nil}})
			test.Must(m.t, m.edit(key, asking("1")))
		},
		"delete the policy": func(m *multitenant, key string) {
			m.deletePolicy("gold")
			m.delete(key)
			m.createPolicy("gold", only("oslo"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			withAndWithoutGuards(t, func(_ *testing.T, m *multitenant) {
				m.startWithGold()
				mine := m.ask("rome", "mine", "gold", "8")
				m.awaitGrant(mine, "8")
				pods := []*corev1.Pod{m.waiting("gold", "rome", "mine", "4"), m.accepted("gold", "rome", "mine", "3")}
				m.awaitCounted(pods...)
				do(m, mine)
				own := m.ask("oslo", "own", "gold", "8")
				m.awaitGrant(own, "1")
				m.bind(pods[0], "gold")
				m.awaitProbe()
				m.restart()
				m.awaitProbe()
				m.awaitGrant(own, "1")
				m.bind(pods[1], "gold")
				m.awaitProbe()
				m.awaitGrant(own, "1")
				m.end(pods...)
				m.await(own, func(s sliceState) error {
					if s.granted[cpu] < 7000 {
						return fmt.Errorf("oslo is granted %d once rome's pods have ended", s.granted[cpu])
					}
					return nil
				})
			})
		})
	}
}

func TestANewInstallationTakesNothingBack(t *testing.T) {
	for name, everything := range map[string]bool{
		"the policies were deleted": false, "all that the operator made was deleted": true,
	} {
		t.Run(name, func(t *testing.T) {
			withAndWithoutGuards(t, func(t *testing.T, m *multitenant) {
				m.startWithGold()
				mine, theirs := m.ask("rome", "mine", "gold", "5"), m.ask("oslo", "theirs", "gold", "3")
				m.awaitGrant(mine, "5")
				m.awaitGrant(theirs, "3")
				m.kill()
				m.deletePolicy("gold")
				m.deletePolicy(spare)
				if everything {
					kinds, err := ownKinds(m.cluster.Config)
					test.Must(m.t, err)
					for _, kind := range kinds {
						test.Must(m.t, emptyKind(t.Context(), m.admin, kind))
					}
				}
				m.start()
				m.consistently(2 * quietPeriod)
				m.createPolicy("gold")
				m.createPolicy(spare)
				m.awaitProbe()
				m.consistently(quietPeriod)
				m.awaitGrant(mine, "5")
				m.awaitGrant(theirs, "3")
				m.history.requireKept(mine, theirs)
			})
		})
	}
}
