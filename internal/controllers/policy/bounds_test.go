package policy

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/kube"
	"proffer.dev/proffer/internal/offer"
	"proffer.dev/proffer/internal/table"
	"proffer.dev/proffer/test"
	"proffer.dev/proffer/test/kubetest"
)

// reportOf returns a report of a pool with this many resources, and as many consumers, each of
// which is offered all of them.
func reportOf(resources, consumers int, prefix string) *offer.Report {
	amounts := capacity.Amounts{"cpu": 1000, "memory": 1 << 30, "pods": 10}
	var offered []offer.Amount
	for i := range resources {
		name := fmt.Sprintf("%s/r%04d", prefix, i)
		amounts[name] = int64(i)
		offered = append(offered, offer.Amount{Resource: name, Value: int64(i)})
	}
	r := &offer.Report{Count: consumers, Nodes: 1, Capacity: amounts, Committed: amounts, Remaining: amounts}
	for i := range consumers {
		r.Consumers = append(r.Consumers, offer.ConsumerReport{
			ID:    fmt.Sprintf("consumer-%03d", i),
			Offer: &offer.Offer{Override: -1, Amounts: append(offered, offer.Amount{Resource: "cpu", Value: 1000})},
		})
	}
	for _, o := range offered {
		r.Offered = append(r.Offered, o.Resource)
	}
	return r
}

// The API server refuses a status with more than 256 resource names as a whole.
func TestATooLargeStatusIsCutWithAMessage(t *testing.T) {
	long := strings.Join([]string{
		strings.Repeat("d", 63), strings.Repeat("e", 63), strings.Repeat("f", 63), strings.Repeat("g", 61),
	}, ".")
	for name, tc := range map[string]struct {
		report *offer.Report
		says   []string
	}{
		"many resources": {reportOf(300, 1, "example.com"),
			[]string{"only the first of 303 resources are listed", "More than 64 resources have been offered"}},
		"much of each": {reportOf(300, 100, "example.com"), []string{"only the first of 303 resources", "of 100 offers are"}},
		"long names":   {reportOf(250, 100, long), []string{"only the first of 253 resources", "of 100 offers are"}},
		"what fits":    {reportOf(60, 60, "example.com"), nil},
	} {
		object := kubetest.Create(t, kubetest.Policy("bounded"))
		p := table.Policy{
			Name:       object.Name,
			UID:        string(object.UID),
			Generation: object.Generation,
			Source:     "Nodes",
			Parsed:     &offer.Policy{Nodes: &offer.Nodes{}},
		}
		held := map[string]table.ConsumerGrants{}
		for _, c := range tc.report.Consumers {
			held[c.ID] = table.ConsumerGrants{Slices: 1, Amounts: tc.report.Capacity}
		}
		found := finding{report: tc.report, granted: table.PolicyGrants{Slices: 1, Consumers: held}}
		object.Status = statusOf(p, found, object.Status)
		again := statusOf(p, found, object.Status)
		if err := kubetest.API(t).Status().Update(t.Context(), object); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		ready := meta.FindStatusCondition(object.Status.Conditions, v1alpha1.ConditionReady)
		if ready == nil {
			t.Fatalf("%s: no condition Ready", name)
		}
		for _, words := range tc.says {
			if !strings.Contains(ready.Message, words) {
				t.Errorf("%s: message %q does not contain %q", name, ready.Message, words)
			}
		}
		if tc.says == nil && strings.Contains(ready.Message, "cut") {
			t.Errorf("%s: message %q of a status that fits", name, ready.Message)
		}
		for _, resource := range []string{"cpu", "memory", "pods"} {
			if _, ok := object.Status.Capacity[corev1.ResourceName(resource)]; !ok {
				t.Errorf("%s: capacity does not list %s", name, resource)
			}
		}
		for i, o := range object.Status.Offers {
			if o.ClusterID != fmt.Sprintf("consumer-%03d", i) || o.Offer.Cpu().MilliValue() != 1000 {
				t.Errorf("%s: offer %d is %+v", name, i, o)
			}
		}
		if len(object.Status.Offers) == 0 || len(object.Status.OfferedResources) == 0 {
			t.Errorf("%s: the status has no offers", name)
		}
		// Cutting again must change nothing, or the status would be written over and over.
		if diff := diffOfStatus(again, object.Status); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		kubetest.Remove(t, object)
	}
}

// Consumers choose these names. A message must have room for several of the longest names that the
// API server accepts.
func TestTheLongestNamesFitIntoAMessage(t *testing.T) {
	part := strings.Repeat("d", 63)
	var names []string
	for i := range 8 {
		names = append(names, fmt.Sprintf("%s.%s.%s.%s/%s%d", part, part, part, part[:61], part[:62], i))
	}
	p := table.Policy{Parsed: &offer.Policy{Nodes: &offer.Nodes{}}}
	s := statusOf(p, finding{report: &offer.Report{
		Count:    1,
		Unlisted: names,
		Unknown:  names,
		Losses:   []offer.Loss{{Policy: part, Count: 8, Consumers: names}},
	}}, v1alpha1.ResourcePolicyStatus{})
	for _, c := range s.Conditions {
		if len(c.Message) == 0 || len(c.Message) > kube.MaxMessage {
			t.Errorf("%s has a message of %d bytes", c.Type, len(c.Message))
		}
	}
	if c := s.Conditions[0]; !strings.Contains(c.Message, "check the spelling") && !strings.Contains(c.Message, "...") {
		t.Errorf("message %q is neither complete nor marked as cut", c.Message)
	}
	for most := range 8 {
		if got := kube.Shorten("a text", most); len(got) > most {
			t.Errorf("Shorten to %d bytes returns %q", most, got)
		}
	}
}

func diffOfStatus(a, b v1alpha1.ResourcePolicyStatus) string {
	x, errX := json.Marshal(a)
	y, errY := json.Marshal(b)
	if errX != nil || errY != nil || string(x) != string(y) {
		return "computing the status again changes it"
	}
	return ""
}

func TestConditionsAreWrittenWhenTheRestOfAStatusIsRefused(t *testing.T) {
	withWriter(t, func(w *testWriter) {
		refusal := apierrors.NewInvalid(schema.GroupKind{Kind: "ResourcePolicy"}, "p",
			field.ErrorList{field.TooMany(field.NewPath("status", "capacity"), 300, 256)})
		w.failOnce(refusal)
		w.report(offer.Report{Count: 1, Nodes: 1, Capacity: capacity.Amounts{"cpu": 1000}, Offered: []string{"cpu"}})
		test.Pass(time.Second)
		status := w.status()
		ready := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionReady)
		if ready == nil || !strings.Contains(ready.Message, "refused the rest") || len(status.OfferedResources) != 1 {
			t.Fatalf("the status is %+v", status)
		}
		w.reportOf(w.writer.table.Current().Reports["p"])
		test.Pass(statusInterval)
		if got := w.capacity(); got != 1000 {
			t.Errorf("capacity %d once writes succeed again, want 1000", got)
		}
	})
}
