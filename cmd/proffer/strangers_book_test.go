package main

import (
	"fmt"
	"testing"

	authv1beta1 "github.com/liqotech/liqo/apis/authentication/v1beta1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"proffer.dev/proffer/api/v1alpha1"
)

// What history checks holds of each answer in all of these: no more is promised in a class than it has, nor to one consumer than it may have.

func TestAGrantIsItsNamespacesWhateverItSaysOfItsConsumer(t *testing.T) {
	amongStrangers(t, func(t *testing.T, m *market) {
		m.node("gold", "16")
		m.share("gold", most("4"))
		m.history.bound("gold", 16000, 4000)
		m.start()
		mine := m.ask("rome", "mine", "gold", "4")
		m.awaitGrant(mine, "4")
		for i, id := range []string{"oslo", "nobody", "rome-2"} {
			m.attack(mine, identify(id))
			another := m.ask("rome", fmt.Sprintf("another-%d", i), "gold", "4")
			m.awaitAnswer(another)
			if has := m.history.promisedTo(another); has > 0 {
				t.Errorf("as %s, rome is granted %d beside its 4000 of 4000", id, has)
			}
		}
		// Nothing of that is charged to oslo.
		m.awaitGrant(m.ask("oslo", "own", "gold", "4"), "4")
	})
}

func TestTheNextLeaderCountsAGrantThatHasLostItsLabels(t *testing.T) {
	amongStrangers(t, func(t *testing.T, m *market) {
		m.openGold()
		mine := m.ask("rome", "mine", "gold", "8")
		m.awaitGrant(mine, "8")
		m.attack(mine, func(s *authv1beta1.ResourceSlice) { withoutLabels(s); identify("nobody")(s) })
		m.restart()
		own := m.ask("oslo", "own", "gold", "8")
		m.awaitAnswer(own)
		m.awaitAnother()
		if has := m.history.promisedTo(own); has > 0 {
			t.Errorf("oslo has %d of 8000, all of which rome has", has)
		}
	})
}

// Two policies share the nodes of a class, each for one consumer.
func TestAGrantOfADeletedPolicyCountsForTheNextLeader(t *testing.T) {
	for name, tenant := range map[string]bool{"with its Tenant": true, "without its Tenant": false} {
		t.Run(name, func(t *testing.T) {
			amongStrangers(t, func(t *testing.T, m *market) {
				m.node("gold", "8")
				m.share("gold", only("rome"))
				other := shareOf("gold", only("oslo"))
				other.Name = "gold-of-oslo"
				m.create(other)
				m.history.bound("gold", 8000, 0)
				m.start()
				mine := m.ask("rome", "mine", "gold", "8")
				m.awaitGrant(mine, "8")
				own := m.ask("oslo", "own", "gold", "8")
				m.awaitGrant(own, "0")
				m.kill()
				if !tenant {
					m.must(m.admin.Delete(t.Context(), tenantOf("rome")))
				}
				m.unshare("gold")
				m.start()
				m.awaitAnother()
				within := func() error {
					if a, b := m.history.promisedTo(mine), m.history.promisedTo(own); a+b > 8000 {
						return fmt.Errorf("rome has %d and oslo %d of 8000", a, b)
					}
					return nil
				}
				m.consistently(calm, within)
				m.awaitAnother()
				m.must(within())
			})
		})
	}
}

func only(id string) func(*v1alpha1.ResourcePolicySpec) {
	return func(s *v1alpha1.ResourcePolicySpec) {
		s.Consumers = &v1alpha1.Consumers{ClusterIDs: []v1alpha1.ClusterID{v1alpha1.ClusterID(id)}}
	}
}

func TestASliceThatMovesWhileNobodyLeadsPushesNobodyOut(t *testing.T) {
	amongStrangers(t, func(_ *testing.T, m *market) {
		for _, class := range []string{"gold", "silver"} {
			m.node(class, "8")
			m.share(class)
			m.history.bound(class, 8000, 0)
		}
		m.start()
		moves := m.ask("oslo", "moves", "gold", "8") // The older one, also where both are of one second.
		m.awaitGrant(moves, "8")
		stays := m.ask("rome", "stays", "silver", "8")
		m.awaitGrant(stays, "8")
		m.kill()
		m.must(m.edit(moves, movingTo("silver")))
		m.start()
		m.awaitGrant(moves, "0")
		m.awaitAnother()
		m.awaitGrant(stays, "8")
		m.history.requireKept(stays)
	})
}

func TestARestartWritesNothingIntoAClassOfSomebodyElse(t *testing.T) {
	for name, answered := range map[string]bool{"answered by somebody else": true, "not answered yet": false} {
		t.Run(name, func(t *testing.T) {
			amongStrangers(t, func(t *testing.T, m *market) {
				m.openGold()
				mine := m.ask("rome", "mine", "gold", "6")
				m.awaitGrant(mine, "6")
				if m.guarded {
					m.serveByOthers("theirs")
				}
				m.must(m.edit(mine, movingTo("theirs")))
				if answered {
					m.must(m.writeStatus(m.admin, mine, func(s *authv1beta1.ResourceSlice) {
						grants("3")(s)
						s.Status.Conditions[resourcesConditionOf(s)].Reason = "Theirs"
					}))
				}
				before := m.history.answers(mine)
				m.restart()
				own := m.ask("oslo", "own", "gold", "8")
				m.awaitAnswer(own)
				m.awaitAnother()
				m.consistently(calm, func() error {
					if after := m.history.answers(mine); after != before {
						return fmt.Errorf("a slice of a class of somebody else was answered: %+v", m.stands(mine))
					}
					return nil
				})
				if has := m.history.promisedTo(own); !answered && has != 2000 {
					t.Errorf("oslo has %d, want the 2000 that the slice of rome leaves until somebody else has answered it", has)
				}
			})
		})
	}
}

// serveByOthers puts a class on the list of those that consumers may ask for.
func (m *market) serveByOthers(class string) {
	m.t.Helper()
	list := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: operatorNamespace, Name: "proffer-served-classes"}}
	m.must(m.admin.Patch(m.t.Context(), list, patchOf(object{"data": object{class: "others"}})))
	probe := replicaOf("rome", "probe", class, "1")
	m.eventually(func() error { return m.consumers["rome"].Create(m.t.Context(), probe, client.DryRunAll) })
}

func (m *market) stands(key string) seen {
	m.t.Helper()
	s, err := m.get(key)
	m.must(err)
	return seenOf(s)
}

func TestAStatusForgedWhileNobodyLeadsCostsOthersNothing(t *testing.T) {
	amongStrangers(t, func(_ *testing.T, m *market) {
		m.openGold()
		forges := m.ask("oslo", "forges", "gold", "4") // The older one, also where both are of one second.
		m.awaitGrant(forges, "4")
		honest := m.ask("rome", "honest", "gold", "4")
		m.awaitGrant(honest, "4")
		m.kill()
		m.must(m.edit(forges, asking("8")))
		m.forge(forges, grants("8"))
		m.start()
		m.awaitAnother()
		m.awaitGrant(forges, "4")
		m.awaitGrant(honest, "4")
		m.history.requireKept(honest)
	})
}

func TestAnAnswerRemovedWhileNobodyLeadsStillCounts(t *testing.T) {
	for name, hidden := range map[string]bool{"alone": false, "with the labels": true} {
		t.Run(name, func(t *testing.T) {
			amongStrangers(t, func(t *testing.T, m *market) {
				m.openGold()
				mine := m.ask("rome", "mine", "gold", "8")
				m.awaitGrant(mine, "8")
				m.kill()
				m.must(m.edit(mine, asking("1")))
				m.forge(mine, withoutAnswer)
				if hidden {
					m.attack(mine, withoutLabels)
				}
				m.start()
				own := m.ask("oslo", "own", "gold", "8")
				m.awaitAnswer(own)
				m.awaitAnother()
				if a, b := m.history.promisedTo(mine), m.history.promisedTo(own); a+b > 8000 {
					t.Errorf("rome has %d and oslo %d of 8000", a, b)
				}
			})
		})
	}
}

func TestPodsOfSlicesThatAreGoneCountUntilTheyEnd(t *testing.T) {
	sources := map[string]func(*v1alpha1.ResourcePolicySpec){
		"free":  func(*v1alpha1.ResourcePolicySpec) {},
		"whole": func(s *v1alpha1.ResourcePolicySpec) { s.Offer.Nodes.Count = v1alpha1.NodeCountAllocatable },
		"fixed": func(s *v1alpha1.ResourcePolicySpec) {
			s.Offer = v1alpha1.Offer{Fixed: v1alpha1.Quantities{"cpu": {Quantity: resource.MustParse("4")}, "memory": {Quantity: resource.MustParse("64Gi")}}}
		},
	}
	for name, leave := range map[string]func(m *market, key string){
		"deleted":            func(m *market, key string) { m.delete(key) },
		"moved":              func(m *market, key string) { m.must(m.edit(key, movingTo(spare))); m.awaitClass(key, spare) },
		"deleted, restarted": func(m *market, key string) { m.delete(key); m.restart() },
		"asks for nothing":   func(m *market, key string) { m.must(m.edit(key, asking("0"))); m.awaitGrant(key, "0") },
		"asks for nothing, restarted": func(m *market, key string) {
			m.must(m.edit(key, asking("0")))
			m.awaitGrant(key, "0")
			m.restart()
		},
		"asks for nothing, moved": func(m *market, key string) {
			m.must(m.edit(key, asking("0")))
			m.awaitGrant(key, "0")
			m.must(m.edit(key, movingTo(spare)))
			m.awaitClass(key, spare)
		},
		"made again, asks for nothing": func(m *market, key string) {
			s, err := m.get(key)
			m.must(err)
			m.delete(key)
			m.awaitGrant(m.ask("rome", s.Name, string(s.Spec.Class), "0"), "0")
		},
	} {
		t.Run(name, func(t *testing.T) {
			amongStrangers(t, func(_ *testing.T, m *market) {
				pods, first, next := map[string]*corev1.Pod{}, map[string]string{}, map[string]string{}
				for class, source := range sources {
					m.node(class, "16")
					m.share(class, most("4"), source)
					m.history.bound(class, 16000, 4000)
				}
				m.start()
				for class := range sources {
					first[class] = m.ask("rome", class+"-1", class, "4")
					m.awaitGrant(first[class], "4")
					pods[class] = m.run(class, "rome", class+"-1", "3")
				}
				m.counted(pods["free"], pods["whole"], pods["fixed"])
				for class := range sources {
					leave(m, first[class])
				}
				for class := range sources {
					next[class] = m.ask("rome", class+"-2", class, "4")
				}
				for class := range sources {
					m.awaitGrant(next[class], "1")
				}
				// What still runs is not charged to others.
				for class := range sources {
					m.awaitGrant(m.ask("oslo", class, class, "4"), "4")
				}
				m.end(pods["free"], pods["whole"], pods["fixed"])
				for class := range sources {
					m.awaitGrant(next[class], "4")
				}
			})
		})
	}
}

func TestANewInstallationTakesNothingBack(t *testing.T) {
	for name, everything := range map[string]bool{"the policies were deleted": false, "all that the operator made was deleted": true} {
		t.Run(name, func(t *testing.T) {
			amongStrangers(t, func(t *testing.T, m *market) {
				m.openGold()
				mine, theirs := m.ask("rome", "mine", "gold", "5"), m.ask("oslo", "theirs", "gold", "3")
				m.awaitGrant(mine, "5")
				m.awaitGrant(theirs, "3")
				m.kill()
				m.unshare("gold")
				m.unshare(spare)
				if everything {
					kinds, err := ownKinds(m.cluster.Config)
					m.must(err)
					for _, kind := range kinds {
						m.must(emptyKind(t.Context(), m.admin, kind))
					}
				}
				m.start()
				m.consistently(2 * calm)
				m.share("gold")
				m.share(spare)
				m.awaitAnother()
				m.consistently(calm)
				m.awaitGrant(mine, "5")
				m.awaitGrant(theirs, "3")
				m.history.requireKept(mine, theirs)
			})
		})
	}
}
