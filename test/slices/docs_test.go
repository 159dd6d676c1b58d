package slices

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	authv1beta1 "github.com/liqotech/liqo/apis/authentication/v1beta1"
	"github.com/liqotech/liqo/pkg/liqo-controller-manager/authentication/forge"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"proffer.dev/proffer/test/slices/lab"
)

// TestThePageShowsWhatHappens applies the policy and the slice of the docs and follows the
// steps of its table.
func TestThePageShowsWhatHappens(t *testing.T) {
	page := readPage(t)
	newNode(t, "gold", amounts{"cpu": "16", "memory": "64Gi", "pods": "110"})
	policy := page.object(t, "ResourcePolicy")
	create(t, policy)
	goldWith := func(edit func(spec map[string]any)) {
		t.Helper()
		changed := policy.DeepCopy()
		edit(changed.Object["spec"].(map[string]any))
		patch(t, provider, emptyPolicy("gold"), "/spec", changed.Object["spec"])
	}
	limitTo1 := func(spec map[string]any) { spec["offer"].(map[string]any)["max"] = map[string]any{"cpu": "1"} }
	s := slice{rome, "mine"}
	t.Cleanup(func() { s.remove(t) })
	askFor := func(cpu string) { s.ask(t, amounts{"cpu": cpu, "memory": "8Gi", "pods": "20"}) }

	steps := []func(){
		func() {
			lab.Must(t, rome.Client.Create(t.Context(), page.object(t, "ResourceSlice"), strict))
		},
		func() { askFor("12") },
		func() { askFor("4") },
		func() { askFor("-1") },
		func() {
			askFor("4")
			newPod(t, rome, "running", "gold", amounts{"cpu": "2", "memory": "1Gi"})
			goldWith(limitTo1)
		},
		func() { goldWith(func(spec map[string]any) { limitTo1(spec); spec["reclaim"] = "Evict" }) },
		func() { goldWith(func(map[string]any) {}) },
		func() { setCondition(t, rome, authv1beta1.TenantConditionCordoned) },
		func() { askFor("5") },
		func() { setCondition(t, rome, authv1beta1.TenantConditionActive) },
		func() { setCondition(t, rome, authv1beta1.TenantConditionDrained) },
		func() {
			setCondition(t, rome, authv1beta1.TenantConditionActive)
			awaitRights(t, rome)
		},
		func() {
			patch(t, rome, forge.ResourceSlice(s.name, lab.TenantNamespace(provider.ID)), "/metadata/annotations/again", "1")
		},
		func() {
			pod := &unstructured.Unstructured{}
			pod.SetAPIVersion("v1")
			pod.SetKind("Pod")
			pod.SetNamespace("default")
			pod.SetName("running")
			err := errors.Join(
				provider.Client.Delete(t.Context(), pod, client.GracePeriodSeconds(0)),
				provider.Client.Delete(t.Context(), policy))
			lab.Must(t, err)
		},
	}
	if len(steps) != len(page.rows) {
		t.Fatalf("%d rows in the table, want %d", len(page.rows), len(steps))
	}
	last := ""
	for i, row := range page.rows {
		steps[i]()
		lab.Eventually(t, "after the step "+row.step, func(ctx context.Context) error {
			got, err := s.row(ctx)
			if err != nil {
				return err
			}
			said, cells, _ := strings.Cut(row.seen, " | ")
			before, _, _ := strings.Cut(last, " | ")
			if strings.Contains(said, "ResourceSliceResourcesDenied") && got == before+" | "+cells {
				return nil // The consumer may miss a denial, see the page. It then keeps the answer before it.
			}
			last = got
			return differ("the row", row.seen, got)
		})
	}
}

// A page is the policy of docs/how-to/serve-classes.md, the slice of docs/how-to/ask-for-a-class.md, and the table of
// docs/explanation/grants.md.
type page struct {
	text string
	rows []row
}

// A row is a row of the page's table: a step, and the cells that describe its result.
type row struct{ step, seen string }

func readPage(t *testing.T) page {
	t.Helper()
	var p page
	for _, name := range []string{"how-to/serve-classes", "how-to/ask-for-a-class", "explanation/grants"} {
		text, err := os.ReadFile("../../docs/" + name + ".md")
		lab.Must(t, err)
		p.text += string(text)
	}
	_, table, _ := strings.Cut(p.text, "| step | the slice says | node | Quota |\n|---|---|---|---|\n")
	for line := range strings.Lines(table) {
		step, seen, ok := strings.Cut(strings.Trim(line, "| \n"), " | ")
		if !ok {
			break
		}
		p.rows = append(p.rows, row{step, seen})
	}
	return p
}

// object returns the complete object of this kind on the page.
func (p page) object(t *testing.T, kind string) *unstructured.Unstructured {
	t.Helper()
	for _, block := range regexp.MustCompile("(?ms)^```yaml\n(.*?)^```$").FindAllStringSubmatch(p.text, -1) {
		if u := (&unstructured.Unstructured{Object: parse(t, block[1])}); u.GetKind() == kind {
			return u
		}
	}
	t.Fatalf("the page has no %s", kind)
	return nil
}

// row returns the state of the slice in the form of the page's table.
func (s slice) row(ctx context.Context) (string, error) {
	rs, err := s.seen(ctx)
	if err != nil {
		return "", err
	}
	node, quota := s.emptyVirtualNode(), s.emptyQuota()
	if err := s.consumer.Client.Get(ctx, client.ObjectKeyFromObject(node), node); err != nil {
		return "", err
	}
	if err := client.IgnoreNotFound(provider.Client.Get(ctx, client.ObjectKeyFromObject(quota), quota)); err != nil {
		return "", err
	}
	a := answerOf(rs)
	held := cmp.Or(amountsOf(quota.Spec.Resources)["cpu"], "none")
	if ptr.Deref(quota.Spec.Cordoned, false) {
		held += ", cordoned"
	}
	return fmt.Sprintf("%s, `%s`: %s | %s | %s", a.Status, a.Reason, a.Message,
		amountsOf(node.Spec.ResourceQuota.Hard)["cpu"], held), nil
}
