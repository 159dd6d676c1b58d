package command

import (
	"fmt"
	"time"

	authv1beta1 "github.com/liqotech/liqo/apis/authentication/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"proffer.dev/proffer/internal/capacity"
)

// sliceState is one version of a slice in the API.
type sliceState struct {
	key string
	uid types.UID
	// creator is the user that creates the slice's pods.
	creator         string
	version         string
	consumer, class string
	created         int64
	request         amounts
	// answer is the operator's part of the status as text, to detect a new answer. It includes the
	// time, which also changes if a slice gets the same answer again in another class.
	answer          string
	status          authv1beta1.ResourceSliceConditionStatus
	reason, message string
	granted         amounts
	// resources is all of status.resources, in the units of the auditor.
	resources capacity.Amounts
	// open is false for a slice that no answer may raise: it lacks the labels of a replica or its
	// consumer's ID, or it is being deleted.
	open bool
	// authenticated reports whether Liqo has authenticated the slice. Until then, the operator
	// writes an answer only to take something back.
	authenticated bool
	// promised is what the operator last accepted, and promisedIn the class at that time. Writes of
	// others change neither.
	promised   amounts
	promisedIn string
	// left is what was promised when Liqo answered the slice in its own class. If the slice returns before a
	// leader has noticed, it still has that.
	left amounts
	// forged reports whether the consumer has written the current answer.
	forged bool
	// least is the minimum that was promised of each resource since lag before leastUntil. From
	// leastUntil on, promised applies.
	least      amounts
	leastUntil time.Duration
}

// line describes the slice in one line of a failure report.
func (s *sliceState) line() string {
	return fmt.Sprintf("%s (%s) of class %s asks for %d, open %t, %s %s %d, promised %d of %s: %s",
		s.key, s.version, s.class, s.request, s.open, s.status, s.reason, s.granted, s.promised, s.promisedIn, s.message)
}

// carryOver carries over what the slice was promised before.
func (s *sliceState) carryOver(was *sliceState, now time.Duration) {
	s.least, s.leastUntil = was.least, was.leastUntil
	if now >= was.leastUntil {
		s.least, s.leastUntil = was.promised, now+lag
	}
	for i := range s.least {
		s.least[i] = min(s.least[i], s.promised[i])
	}
}

// atLeast returns what the slice has been promised of each resource at all times since lag ago.
func (s *sliceState) atLeast(now time.Duration) amounts {
	if now >= s.leastUntil {
		return s.promised
	}
	return s.least
}

func sliceStateOf(s *authv1beta1.ResourceSlice) sliceState {
	out := sliceState{
		key: s.Namespace + "/" + s.Name, uid: s.UID, version: s.ResourceVersion, class: string(s.Spec.Class),
		created: s.CreationTimestamp.Unix(), request: amountsIn(s.Spec.Resources),
	}
	out.creator = creatorOf(ownerOf(out.key), s.Name)
	if s.Spec.ConsumerClusterID != nil {
		out.consumer = string(*s.Spec.ConsumerClusterID)
	}
	out.open = s.Labels["liqo.io/replicated"] == "true" && s.Labels["liqo.io/originID"] != "" &&
		s.DeletionTimestamp == nil &&
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
