package monitoring

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/prometheus/prometheus/promql/parser"

	"proffer.dev/proffer/test"
)

// board is what the tests read of a Grafana board.
type board struct {
	Title      string
	Templating struct{ List []variable }
	Panels     []panel
}

type variable struct {
	Name, Type, Definition string
	// Query is a text for the kind datasource, an object for the kind query.
	Query json.RawMessage
}

type panel struct {
	ID                       int
	Type, Title, Description string
	GridPos                  struct{ X, Y, W, H int }
	Datasource               struct{ Type, UID string }
	Targets                  []target
}

type target struct{ RefID, Expr, LegendFormat string }

func readBoard(t *testing.T) *board {
	t.Helper()
	text := test.Read(t, config+"/components/dashboard/proffer.json")
	b := &board{}
	test.Must(t, json.Unmarshal([]byte(text), b))
	return b
}

// queries returns the panels that show data.
func (b *board) queries() (with []panel) {
	for _, p := range b.Panels {
		if p.Type != "row" {
			with = append(with, p)
		}
	}
	return with
}

var (
	labelValues = regexp.MustCompile(`^label_values\((.*), (\w+)\)$`)
	reference   = regexp.MustCompile(`\$\{?(\w+)\}?`)
	placeholder = regexp.MustCompile(`\{\{(\w+)\}\}`)
)

// labelsOf returns the selector of the metrics and the label from which a variable takes its values.
func (v *variable) labelsOf(t *testing.T) (selector, label string) {
	t.Helper()
	match := labelValues.FindStringSubmatch(v.Definition)
	if match == nil {
		t.Fatalf("variable %s: %q is not label_values(METRIC, LABEL)", v.Name, v.Definition)
	}
	return match[1], match[2]
}

// selection has the value of each variable that a viewer of the board has chosen.
type selection map[string]string

// all is the selection of a board that was just opened.
var all = selection{
	"cluster": cluster, "namespace": namespace,
	"class": ".*", "policy": ".*", "consumer": ".*", "resource": "cpu", "__rate_interval": "2m",
}

// in returns the expression as Grafana sends it to Prometheus.
func (s selection) in(expr string) string {
	return reference.ReplaceAllStringFunc(expr, func(ref string) string { return s[strings.Trim(ref, "${}")] })
}

func TestThePanelsOfTheBoardAreCompleteAndDoNotOverlap(t *testing.T) {
	b := readBoard(t)
	variables := map[string]bool{"__rate_interval": true}
	for _, v := range b.Templating.List {
		variables[v.Name] = true
	}
	ids, titles, taken := map[int]bool{}, map[string]bool{}, map[[2]int]string{}
	for _, p := range b.Panels {
		if ids[p.ID] || titles[p.Title] || p.Title == "" {
			t.Errorf("panel %d %q: another one has this id or title, or it has none", p.ID, p.Title)
		}
		ids[p.ID], titles[p.Title] = true, true
		at := p.GridPos
		if at.W < 1 || at.H < 1 || at.X < 0 || at.X+at.W > 24 {
			t.Errorf("%s lies outside of the 24 columns: %+v", p.Title, at)
		}
		for x := at.X; x < at.X+at.W; x++ {
			for y := at.Y; y < at.Y+at.H; y++ {
				if other := taken[[2]int{x, y}]; other != "" {
					t.Fatalf("%s and %s overlap", other, p.Title)
				}
				taken[[2]int{x, y}] = p.Title
			}
		}
	}
	for _, p := range b.queries() {
		if p.Description == "" || len(p.Targets) == 0 ||
			p.Datasource.Type != "prometheus" || p.Datasource.UID != "${datasource}" {
			t.Errorf("%s has no description, no query, or another source of data than the variable", p.Title)
		}
		refs := map[string]bool{}
		for _, q := range p.Targets {
			if q.LegendFormat == "" || refs[q.RefID] {
				t.Errorf("%s: %s has no legend, or the refId of another query", p.Title, q.Expr)
			}
			refs[q.RefID] = true
			for _, ref := range reference.FindAllStringSubmatch(q.Expr, -1) {
				if !variables[ref[1]] {
					t.Errorf("%s: there is no variable %s", p.Title, ref[1])
				}
			}
		}
	}
}

func TestTheQueryOfAVariableIsItsDefinition(t *testing.T) {
	n := 0
	for _, v := range readBoard(t).Templating.List {
		if v.Type != "query" {
			continue
		}
		n++
		var sent struct{ Query, RefID string }
		test.Must(t, json.Unmarshal(v.Query, &sent))
		if sent.Query != v.Definition || sent.RefID == "" {
			t.Errorf("variable %s sends %+v, and is shown as %s", v.Name, sent, v.Definition)
		}
	}
	if n == 0 {
		t.Error("no variable has a query")
	}
}

// selectors returns the vector selectors in an expression.
func selectors(t *testing.T, expr string) (found []*parser.VectorSelector) {
	t.Helper()
	parsed, err := parser.NewParser(parser.Options{}).ParseExpr(expr)
	if err != nil {
		t.Fatalf("%s: %v", expr, err)
	}
	parser.Inspect(parsed, func(node parser.Node, _ []parser.Node) error {
		if s, ok := node.(*parser.VectorSelector); ok {
			found = append(found, s)
		}
		return nil
	})
	return found
}

// expressions returns all expressions by the alert, panel or variable that has them.
func expressions(t *testing.T) map[string][]string {
	t.Helper()
	out := map[string][]string{}
	_, alerts := readRules(t)
	for _, a := range alerts {
		out["alert "+a.Alert] = []string{a.Expr}
	}
	b := readBoard(t)
	for _, p := range b.queries() {
		for _, q := range p.Targets {
			out["panel "+p.Title] = append(out["panel "+p.Title], all.in(q.Expr))
		}
	}
	for _, v := range b.Templating.List {
		if v.Type == "query" {
			of, _ := v.labelsOf(t)
			out["variable "+v.Name] = []string{all.in(of)}
		}
	}
	return out
}
