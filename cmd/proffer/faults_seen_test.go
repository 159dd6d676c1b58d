package main

import (
	"fmt"
	"time"

	authv1beta1 "github.com/liqotech/liqo/apis/authentication/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"proffer.dev/proffer/internal/capacity"
)

// seen is a slice as it stands in the API.
type seen struct {
	key string
	uid types.UID
	// creator is as whom its pods are made.
	creator         string
	version         string
	consumer, class string
	created         int64
	request         amounts
	// answer is what the operator writes, as text, to see whether it is another. The time in it is new also where a slice that has come from another
	// class is answered as it was there.
	answer          string
	status          authv1beta1.ResourceSliceConditionStatus
	reason, message string
	granted         amounts
	// resources are all of status.resources, in the units of the account.
	resources capacity.Amounts
	// open is false for a slice that no answer may raise: the labels of a copy or its consumer's ID are gone, or it is being deleted.
	open bool
	// authenticated says that Liqo has authenticated it: until then no answer is written to it but to take something back.
	authenticated bool
	// promised is what the operator has last accepted, in the class of then. What others write changes neither.
	promised   amounts
	promisedIn string
	// forged says that the consumer has written the answer that stands.
	forged bool
	// least is the least that it was promised of each since lag before leastUntil; from then on that is promised.
	least      amounts
	leastUntil time.Duration
}

// line is what there is to say of it, for whoever looks for a mistake.
func (s *seen) line() string {
	return fmt.Sprintf("%s (%s) of class %s asks for %d, open %t, %s %s %d, promised %d of %s: %s",
		s.key, s.version, s.class, s.request, s.open, s.status, s.reason, s.granted, s.promised, s.promisedIn, s.message)
}

// follow notes what the slice had before.
func (s *seen) follow(was *seen, now time.Duration) {
	s.least, s.leastUntil = was.least, was.leastUntil
	if now >= was.leastUntil {
		s.least, s.leastUntil = was.promised, now+lag
	}
	for i := range s.least {
		s.least[i] = min(s.least[i], s.promised[i])
	}
}

// atLeast is what it has had of each all the time since lag ago.
func (s *seen) atLeast(now time.Duration) amounts {
	if now >= s.leastUntil {
		return s.promised
	}
	return s.least
}

func seenOf(s *authv1beta1.ResourceSlice) seen {
	out := seen{
		key: s.Namespace + "/" + s.Name, uid: s.UID, version: s.ResourceVersion, class: string(s.Spec.Class),
		created: s.CreationTimestamp.Unix(), request: amountsIn(s.Spec.Resources),
	}
	out.creator = creatorOf(ownerOf(out.key), s.Name)
	if s.Spec.ConsumerClusterID != nil {
		out.consumer = string(*s.Spec.ConsumerClusterID)
	}
	out.open = s.Labels["liqo.io/replicated"] == "true" && s.Labels["liqo.io/originID"] != "" && s.DeletionTimestamp == nil &&
		out.consumer == ownerOf(out.key)
	var since metav1.Time
	for _, c := range s.Status.Conditions {
		if c.Type == authv1beta1.ResourceSliceConditionTypeAuthentication {
			out.authenticated = c.Status == authv1beta1.ResourceSliceConditionAccepted
		}
		if c.Type == authv1beta1.ResourceSliceConditionTypeResources {
			out.status, out.reason, out.message, since = c.Status, c.Reason, c.Message, c.LastTransitionTime
		}
	}
	if out.status == authv1beta1.ResourceSliceConditionAccepted {
		out.granted = amountsIn(s.Status.Resources)
	}
	for name, q := range s.Status.Resources {
		if out.resources == nil {
			out.resources = capacity.Amounts{}
		}
		if name == corev1.ResourceCPU {
			out.resources[string(name)] = q.MilliValue()
		} else {
			out.resources[string(name)] = q.Value()
		}
	}
	out.answer = fmt.Sprint(out.status, out.reason, out.message, since, s.Status.Resources)
	return out
}
