package check

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestTheAnswerOfAListIsTheOneOfTheListAsItIs(t *testing.T) {
	refusal := func(text string) error {
		return apierrors.NewBadRequest("ValidatingAdmissionPolicy 'proffer-slice-pod-guard' with binding 'proffer-slice-pod-guard' denied request: " + text)
	}
	const lacks = "spec.pod.nodeSelector lacks pool=gold: write all of pool=gold there"
	webhook := errors.New(`admission webhook "shadowpod.validate.liqo.io" denied the request: failed getting quota`)
	for name, c := range map[string]struct {
		says   string
		answer error
		want   verdict
	}{
		"refused":                         {"lacks pool=gold:", refusal(lacks), holds},
		"refused by other labels":         {"lacks pool=silver:", refusal(lacks), outdated},
		"refused by what is not the list": {"lacks pool=gold:", refusal("the namespace has no pod-security level yet"), outdated},
		"accepted, but listed":            {"lacks pool=gold:", nil, outdated},
		"accepted up to Liqo, but listed": {"lacks pool=gold:", webhook, outdated},
		"accepted":                        {"", nil, admits},
		"accepted up to Liqo":             {"", webhook, admits},
		"accepted by the list":            {"", refusal("the namespace has no pod-security level yet"), admits},
		"refused, but not listed":         {"", refusal(lacks), outdated},
		"without a list":                  {"", refusal("ask its admin to run kubectl proffer check"), waits},
		"not reached":                     {"", apierrors.NewBadRequest(`admission webhook "other.example.com" denied the request`), untried},
	} {
		t.Run(name, func(t *testing.T) {
			of := trial{guard{"proffer-slice-pod-guard", ""}, "", expected{true, c.says}, obstacle{"", c.answer}}
			if got := of.verdict(); got != c.want {
				t.Errorf("the verdict is %d, want %d", got, c.want)
			}
		})
	}
}

func TestAListThatMayNotBeReadIsNotTried(t *testing.T) {
	may := apierrors.NewForbidden(schema.GroupResource{}, "", errors.New("no"))
	of := trial{guard{"proffer-slice-pod-guard", ""}, "", expected{ofList: true}, obstacle{"get admissionparams.proffer.dev in n", may}}
	want := []Finding{{
		checkGuards, Skipped, "Not tried: the list of proffer-slice-pod-guard. You may not get admissionparams.proffer.dev in n.",
		"Ask for this right, or let a cluster admin run the check.",
	}}
	if diff := cmp.Diff(want, findTrials([]trial{of, of})); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// tried lists attempts as in "class gold" or "class default: refused".
func tried(all []attempt) (texts []string) {
	for _, a := range all {
		text := a.harm
		if a.says != "" {
			text += ": " + a.says
		}
		texts = append(texts, text)
	}
	return texts
}

func TestWhatIsTriedFollowsTheList(t *testing.T) {
	s := stage{consumer: "rome", slice: found{name: "mine"}}
	for _, id := range []string{"rome", "oslo"} {
		s.namespaces = append(s.namespaces, corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
			Name: "liqo-tenant-" + id, Labels: map[string]string{"liqo.io/tenant-namespace": "true", "liqo.io/remote-cluster-id": id},
		}})
	}
	many := strings.Repeat("k=v,", maxShown) + "k=v"
	const rome = "-a8a4c692b93b"
	for name, c := range map[string]struct {
		got  []attempt
		want []string
	}{
		"classes": {classAttempts(s, map[string]string{"gold": "", "silver": ""}), []string{
			"class proffer-check: this cluster does not serve class proffer-check:",
			"class default: this cluster does not serve class default:", "class gold", "class silver",
		}},
		"class default": {classAttempts(s, map[string]string{"default": ""}), []string{
			"class proffer-check: this cluster does not serve class proffer-check:", "class default",
		}},
		"no placement": {placementAttempts(s, nil), []string{"a pod of mine-a8a4c692b93b without labels"}},
		"placements": {placementAttempts(s, map[string]string{
			"": "", ".complete": "", "of-nobody-000000000000": "pool=gold", "mine" + rome: "?", "more" + rome: "pool=gold,zone=a", "some" + rome: many,
			"!more" + rome: "",
		}), []string{
			"a pod of mine-a8a4c692b93b without labels: what it required of your pods is lost",
			"a pod of more-a8a4c692b93b without its labels: spec.pod.nodeSelector lacks pool=gold, zone=a:",
			"a pod of more-a8a4c692b93b with its labels: request more than it was granted",
			"a pod of some-a8a4c692b93b without its labels: spec.pod.nodeSelector lacks ", "a pod of some-a8a4c692b93b with its labels",
		}},
		"a user in excess": {placementAttempts(s, map[string]string{"!more" + rome: "", "!of-nobody-000000000000": ""}), []string{
			"a pod of more-a8a4c692b93b without labels: request more than it was granted", "a pod of mine-a8a4c692b93b without labels",
		}},
		"a full list": {placementAttempts(s, map[string]string{"_rome": "", "_nobody": ""}), []string{
			"a pod of rome without labels: more ResourceSlices than this cluster keeps the placement of",
			"a pod of mine-a8a4c692b93b without labels: more ResourceSlices than this cluster keeps the placement of",
		}},
		"a consumer in excess": {placementAttempts(s, map[string]string{"!_oslo": "", "!_rome": "", "mine" + rome: "pool=gold"}), []string{
			"a pod of mine-a8a4c692b93b without its labels: spec.pod.nodeSelector lacks pool=gold:",
			"a pod of mine-a8a4c692b93b with its labels: request more than it was granted",
			"a pod of oslo without labels: request more than it was granted", "a pod of rome without labels: request more than it was granted",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, tried(c.got)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
	long := map[string]string{}
	for i := range 1000 {
		long[fmt.Sprintf("slice-%d%s", i, rome)] = "pool=gold"
	}
	if n := len(placementAttempts(s, long)); n != 2*maxTried+1 {
		t.Errorf("%d attempts on a long list of placements", n)
	}
	for i := range 100 {
		long[fmt.Sprintf("!other-%d%s", i, rome)] = ""
	}
	if n := len(placementAttempts(s, long)); n != 3*maxTried+1 {
		t.Errorf("%d attempts on a long list of placements and marks", n)
	}
	if n := len(classAttempts(s, long)); n != maxTried+2 {
		t.Errorf("%d attempts on a long list of classes", n)
	}
}
