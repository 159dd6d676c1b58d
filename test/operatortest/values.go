package operatortest

import (
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"proffer.dev/proffer/api/rest"
	"proffer.dev/proffer/api/v1alpha1"
)

// Evaluated is the moment of all answers.
var Evaluated = rest.Evaluated{Revision: 42, Time: time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)}

// Version is the version of the operator.
const Version = "v0.1.0"

// milan is a consumer of Liqo v0.10, whose IDs are UUIDs.
const milan = "9f1c2a44-7a53-4d1e-8e0b-5f6f0d7c1b22"

// Amounts returns quantities from pairs of resource and amount.
func Amounts(pairs ...string) rest.Amounts {
	amounts := rest.Amounts{}
	for i := 0; i < len(pairs); i += 2 {
		amounts[pairs[i]] = resource.MustParse(pairs[i+1])
	}
	return amounts
}

// Offers returns offers to three consumers by three policies: of nodes, of fixed amounts, and one
// that is shadowed.
func Offers() rest.Offers {
	nodes, zero := 3, 0
	standard := []rest.Offer{{
		Policy: "standard", Resources: Amounts("cpu", "2", "memory", "4Gi", "pods", "20"),
		Because: []string{"cpu 2: fixed at 2", "memory 4Gi: fixed at 4Gi", "pods 20: fixed at 20"},
	}}
	return rest.Offers{
		Evaluated: Evaluated,
		Consumers: []rest.Consumer{
			{ClusterID: milan, Known: true, Offers: standard},
			{ClusterID: "oslo", Known: true, Offers: []rest.Offer{standard[0], {
				Class: "gold", Policy: "gold-pool",
				Resources: Amounts("cpu", "4", "memory", "40Gi", "nvidia.com/gpu", "2", "pods", "200"),
				Used:      Amounts("cpu", "1", "memory", "8Gi", "nvidia.com/gpu", "0", "pods", "4"),
				Because: []string{
					"cpu 4: 50% of 14 is a pool of 7, 4 committed, 3 remaining; it has 1",
					"memory 40Gi: 50% of 112Gi is a pool of 56Gi, 24Gi committed, 32Gi remaining; it has 8Gi",
					"nvidia.com/gpu 2: 50% of 4 is a pool of 2, 0 committed, 2 remaining; it has 0",
					"pods 200: 50% of 430 is a pool of 215, 19 committed, 196 remaining; it has 4",
				},
			}}},
			{ClusterID: "rome", Known: true, Offers: []rest.Offer{standard[0], {
				Class: "gold", Policy: "gold-pool", Override: &zero,
				Resources: Amounts("cpu", "6", "memory", "48Gi", "nvidia.com/gpu", "2", "pods", "211"),
				Granted:   Amounts("cpu", "3", "memory", "16Gi"),
				Used:      Amounts("cpu", "2500m", "memory", "12Gi", "nvidia.com/gpu", "0", "pods", "15"),
				Because: []string{
					"cpu 6: 50% of 14 is a pool of 7, 4 committed, 3 remaining; it has 3",
					"memory 48Gi: 50% of 112Gi is a pool of 56Gi, 24Gi committed, 32Gi remaining; it has 16Gi",
					"nvidia.com/gpu 2: 50% of 4 is a pool of 2, 0 committed, 2 remaining; it has 0",
					"pods 211: 50% of 430 is a pool of 215, 19 committed, 196 remaining; it has 15",
				},
			}}},
		},
		Anyone: standard,
		Policies: []rest.Policy{
			{
				Name: "gold-pool", Class: "gold", Source: "Nodes", Reason: v1alpha1.ReasonOffering,
				Consumers: 2, Slices: 1, Nodes: &nodes,
				Capacity:  Amounts("cpu", "7", "memory", "56Gi", "nvidia.com/gpu", "2", "pods", "215"),
				Committed: Amounts("cpu", "4", "memory", "24Gi", "nvidia.com/gpu", "0", "pods", "19"),
				Remaining: Amounts("cpu", "3", "memory", "32Gi", "nvidia.com/gpu", "2", "pods", "196"),
			},
			{Name: "gold-trial", Class: "gold", Source: "Fixed", DryRun: true, Reason: v1alpha1.ReasonDryRun},
			{Name: "standard", Source: "Fixed", Reason: v1alpha1.ReasonOffering, Consumers: 3},
		},
	}
}

// Detailed returns a consumer with details.
func Detailed(c rest.Consumer) rest.Consumer {
	c.Details = &rest.Details{Evaluated: Evaluated, Policies: []rest.Candidate{{Policy: "standard", Decides: true}}}
	if c.ClusterID != "rome" {
		return c
	}
	c.Details.Policies = append(c.Details.Policies,
		rest.Candidate{Class: "gold", Policy: "gold-pool", Decides: true, LeftOut: &rest.LeftOut{
			Nodes: 7, Filtered: 6, First: []rest.LeftOutNode{
				{Name: "worker-3", Why: "cordoned"},
				{Name: "worker-4", Why: "left out by the filter"},
				{Name: "worker-5", Why: "left out by the filter, which fails on it: no such key: rack"},
			},
		}},
		rest.Candidate{Class: "gold", Policy: "gold-trial", Because: "it is a dry run"},
		rest.Candidate{Class: "silver", Policy: "silver-eu", Because: "its filter leaves this consumer out"},
	)
	c.Details.InGrace = []rest.LeftOutNode{
		{Name: "worker-2", Why: "not Ready since 2026-11-23T11:59:30Z and counts as before until 2026-11-23T12:01:30Z"},
	}
	c.Details.Uncounted = []rest.Uncounted{{
		Resource: "nvidia.com/gpu", Node: "worker-7",
		Why: "its devices share counters with those of nvidia.com/mig-1g.10gb",
	}}
	c.Details.Slices = []rest.Slice{{
		Namespace: "liqo-tenant-rome", Name: "batch", Class: "gold", Policy: "gold-pool", Accepted: true,
		Asked: Amounts("cpu", "4", "memory", "16Gi"), Written: map[string]string{"cpu": "4.0", "memory": "16384Mi"},
		Granted: Amounts("cpu", "3", "memory", "16Gi"),
		Because: "granted less cpu than asked: 3 of 4, by the remaining pool of policy gold-pool",
	}}
	c.Details.Pods = []rest.Pod{
		{UID: "0b6f4f0e-2c6f-4b62-9a2a-8a3f3f7f0c11", Node: "worker-1", Requests: Amounts("cpu", "1500m", "memory", "8Gi")},
		{UID: "6a0d7f4c-51d8-4f9c-8f3e-0c8a9d1b2e33", Node: "worker-2", Requests: Amounts("cpu", "1", "memory", "4Gi")},
	}
	return c
}

// World returns the snapshot that the offers are of.
func World() rest.World {
	return rest.World{
		Version: rest.WorldVersion, Evaluated: Evaluated, Proffer: Version,
		Policies: []v1alpha1.ResourcePolicy{
			policy("gold-pool", v1alpha1.ResourcePolicySpec{
				Class:     "gold",
				Consumers: &v1alpha1.Consumers{ClusterIDs: []v1alpha1.ClusterID{"rome", "oslo"}},
				Offer: v1alpha1.PolicyOffer{Nodes: &v1alpha1.Nodes{
					Selector: &metav1.LabelSelector{
						MatchLabels: map[string]string{"pool": "gold"},
						MatchExpressions: []metav1.LabelSelectorRequirement{
							{Key: "zone", Operator: metav1.LabelSelectorOpIn, Values: []string{"north", "south"}},
						},
					},
				}},
			}),
			policy("standard", v1alpha1.ResourcePolicySpec{
				Offer: v1alpha1.PolicyOffer{Fixed: v1alpha1.Quantities{"cpu": {Quantity: resource.MustParse("2")}}},
			}),
		},
		Consumers: []rest.WorldConsumer{
			{ClusterID: "oslo", Labels: map[string]string{"tier": "silver"}},
			{ClusterID: "rome", Labels: map[string]string{"tier": "gold"}},
		},
		Offers: []rest.WorldOffer{{ClusterID: "rome", Class: "gold", Policy: "gold-pool", Resources: Amounts("cpu", "6")}},
		Slices: []rest.WorldSlice{
			{
				Namespace: "liqo-tenant-rome", Name: "batch", UID: "33333333-3333-3333-3333-333333333333",
				Consumer: "rome", Class: "gold", Created: Evaluated.Time.Add(-time.Hour),
				Asked:    Amounts("cpu", "4", "memory", "16Gi"),
				Accepted: true, GrantedIn: "gold", GrantedBy: "gold-pool",
				Granted: Amounts("cpu", "3", "memory", "16Gi"),
			},
			{
				Namespace: "liqo-tenant-bern", Name: "first", UID: "44444444-4444-4444-4444-444444444444",
				Consumer: "bern", Class: "gold", Created: Evaluated.Time, Asked: Amounts("cpu", "2"),
			},
		},
		Nodes: []rest.WorldNode{
			node("worker-1", "Ready", "gold", "north"),
			node("worker-2", "Ready", "gold", "south"),
			node("worker-3", "Cordoned", "gold", "north"),
			node("worker-4", "Ready", "", "south", "maintenance=window-7:NoSchedule"),
		},
		Pods: []rest.WorldPod{
			{UID: "11111111-1111-1111-1111-111111111111", Node: "worker-1", Requests: Amounts("cpu", "2", "memory", "4Gi")},
			{
				UID: "0b6f4f0e-2c6f-4b62-9a2a-8a3f3f7f0c11", Node: "worker-1", Consumer: "rome", Creator: "rome-batch",
				Requests: Amounts("cpu", "1500m", "memory", "8Gi"),
			},
			{
				UID: "6a0d7f4c-51d8-4f9c-8f3e-0c8a9d1b2e33", Node: "worker-2", Consumer: "rome",
				Requests: Amounts("cpu", "1", "memory", "4Gi"),
			},
			{
				UID: "22222222-2222-2222-2222-222222222222", Node: "worker-2", Consumer: "oslo",
				Requests: Amounts("cpu", "1", "memory", "8Gi"),
			},
		},
	}
}

func policy(name string, spec v1alpha1.ResourcePolicySpec) v1alpha1.ResourcePolicy {
	return v1alpha1.ResourcePolicy{
		TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "ResourcePolicy"},
		ObjectMeta: metav1.ObjectMeta{
			Name: name, ResourceVersion: "7", CreationTimestamp: metav1.NewTime(Evaluated.Time.Add(-time.Hour)),
			Annotations: map[string]string{"kubectl.kubernetes.io/last-applied-configuration": `{"for":"rome"}`},
		},
		Spec: spec,
	}
}

func node(name, state, pool, zone string, taints ...string) rest.WorldNode {
	labels := map[string]string{"zone": zone, "node-role.kubernetes.io/worker": ""}
	if pool != "" {
		labels["pool"] = pool
	}
	return rest.WorldNode{
		Name: name, State: state, Labels: labels, Taints: taints,
		Allocatable: Amounts("cpu", "8", "memory", "32Gi", "pods", "110", "hugepages-2Mi", "0"),
	}
}

// Overview returns what needs somebody, 20 minutes after the evaluation.
func Overview() rest.Overview {
	now := Evaluated.Time.Add(20 * time.Minute)
	return rest.Overview{
		Evaluated: Evaluated, Now: now, Status: rest.StatusWrong, Wrong: 1, Warnings: 50,
		Findings: []rest.Finding{
			{
				Kind: "policies", Status: rest.StatusWrong,
				Page: "policies#policy-silver", Do: "kubectl edit resourcepolicy silver",
				Message: "Policy silver is not Ready, Invalid: The policy is ignored until this is corrected: " +
					`spec.class: Invalid value: "default": Liqo itself answers this class; write another name, ` +
					"or leave class out for the unnamed pool.",
			},
			{
				Kind: "pools", Status: rest.StatusWarning, Page: "#pool-gold-pool", Do: "kubectl proffer top",
				Message: "Nothing is left of nvidia.com/gpu in the pool of policy gold-pool: " +
					"whoever asks for more waits, or is denied.",
			},
			{
				Kind: "denied", Status: rest.StatusWarning, Since: new(now.Add(-50 * time.Hour)),
				Page: "consumers/bern", Do: "kubectl proffer explain bern",
				Message: "ResourceSlice liqo-tenant-bern/first, class gold: " +
					"denied: 2 nvidia.com/gpu asked, but policy gold-pool leaves 0 for this cluster.",
			},
			{
				Kind: "denied", Status: rest.StatusWarning, Page: "consumers",
				Do: "kubectl get resourceslices.authentication.liqo.io -A", Message: "And 47 more.",
			},
			{
				Kind: "capped", Status: rest.StatusWarning, Since: new(now.Add(-130 * time.Minute)),
				Page: "consumers/rome", Do: "kubectl proffer explain rome",
				Message: "ResourceSlice liqo-tenant-rome/batch, class gold: " +
					"granted 3 of 4 cpu: policy gold-pool leaves 3 for this cluster.",
			},
		},
		Unknown: []string{"whether the books are behind: only the replica that leads knows"},
	}
}

// Simulation returns what a change would do in every respect.
func Simulation() rest.Simulation {
	return rest.Simulation{
		Evaluated: Evaluated,
		Offers: []rest.OfferChange{
			{
				Consumer: "oslo", Class: "gold", Resource: "cpu", Now: "4", Then: "0",
				Because: "cpu 0: policy gold-pool has no usable node (worker-1 is cordoned)",
			},
			{
				Consumer: "rome", Class: "gold", Resource: "cpu", Now: "6", Then: "2500m",
				Because: "cpu 2.5: 25% of 14 is a pool of 3.5, 3.5 committed, 0 remaining; it has 2.5; " +
					"held at 2.5 by reclaim: its pods request 2.5",
			},
			{Anyone: true, Resource: "nvidia.com/gpu", Then: "1", Because: "nvidia.com/gpu 1: fixed at 1"},
		},
		Policies: []rest.PolicyChange{
			{
				Policy: "gold-pool", Now: v1alpha1.ReasonOffering, Then: v1alpha1.ReasonExhausted,
				Message: "nothing is left of cpu for oslo",
			},
			{Policy: "silver", Then: v1alpha1.ReasonOffering},
		},
		Slices: []rest.SliceChange{{
			Namespace: "liqo-tenant-rome", Name: "batch", Consumer: "rome", Class: "gold",
			Now: Amounts("cpu", "3", "memory", "16Gi"), Then: Amounts("cpu", "2500m", "memory", "16Gi"),
			Because: "capped by the pool of policy gold-pool",
		}},
		Evicted: []rest.Eviction{{
			Consumer: "oslo", Class: "gold", Pods: 4, Because: "cpu becomes 0, so its virtual node is not Ready",
		}},
		Unknown: []string{"grants that are being written at this moment"},
	}
}
