package page

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"proffer.dev/proffer/api/rest"
	"proffer.dev/proffer/internal/policy"
)

const (
	// MaxForm bounds the body of a form in bytes. The caller of the handler has read it.
	MaxForm = 256 << 10
	// maxRows bounds each list of a rehearsal that is shown.
	maxRows = 500
)

// rehearsal is the form with its answer.
type rehearsal struct {
	// Text is the pasted text.
	Text string
	// Problem is why there is no answer.
	Problem string
	Answer  *rest.Simulation
	// Cut lists the lists of the answer that are not shown as a whole.
	Cut []string
}

// form serves the empty form.
func (h *Handler) form(w http.ResponseWriter, r *http.Request) {
	h.show(w, r, http.StatusOK, rehearse(rehearsal{}))
}

// simulate rehearses the policies that were pasted.
func (h *Handler) simulate(w http.ResponseWriter, r *http.Request) {
	if err := r.ParseForm(); err != nil {
		Refuse(w, r, http.StatusBadRequest, err.Error())
		return
	}
	text := r.PostForm.Get("policy")
	change, err := changeOf(text)
	if err != nil {
		h.show(w, r, http.StatusBadRequest, rehearse(rehearsal{Text: text, Problem: err.Error()}))
		return
	}
	answer, refused := h.operator.Simulate(r.Context(), change)
	if refused != nil {
		h.show(w, r, int(refused.Status().Code), rehearse(rehearsal{Text: text, Problem: refused.Error()}))
		return
	}
	d := rehearse(rehearsal{Text: text, Answer: answer, Cut: cut(answer)})
	d.Of, d.Read = &answer.Evaluated, time.Now()
	h.show(w, r, http.StatusOK, d)
}

// rehearse is the document of the form.
func rehearse(data rehearsal) document {
	return document{Title: "Rehearse a policy", Section: "simulate", Body: "simulate", Data: data}
}

// changeOf returns a rest.Change, as JSON, that applies the policies of a YAML text.
func changeOf(text string) ([]byte, error) {
	var change struct {
		Apply []any `json:"apply"`
	}
	documents := yaml.NewDecoder(strings.NewReader(text))
	for {
		var node yaml.Node
		err := documents.Decode(&node)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		if hasAlias(&node) {
			return nil, errors.New("the text has a YAML alias (*name): write the value out")
		}
		var value any
		if err := node.Decode(&value); err != nil {
			return nil, err
		}
		if object, is := value.(map[string]any); is {
			if err := policy.CheckWritten(object); err != nil {
				return nil, err
			}
		}
		if value != nil { // There is nothing between two separators.
			change.Apply = append(change.Apply, value)
		}
	}
	if len(change.Apply) == 0 {
		return nil, errors.New("paste a ResourcePolicy")
	}
	if len(change.Apply) > rest.MaxApplied {
		return nil, fmt.Errorf("the text has %d policies: paste at most %d", len(change.Apply), rest.MaxApplied)
	}
	body, err := json.Marshal(change)
	if err != nil {
		return nil, fmt.Errorf("the text is no YAML of Kubernetes: %w", err)
	}
	if len(body) > rest.MaxChange {
		return nil, fmt.Errorf("the policies have %d bytes as JSON: paste at most %d", len(body), rest.MaxChange)
	}
	return body, nil
}

// hasAlias reports whether a document has an alias. Aliases make a document of some kilobytes that is
// gigabytes as JSON.
func hasAlias(node *yaml.Node) bool {
	return node.Kind == yaml.AliasNode || slices.ContainsFunc(node.Content, hasAlias)
}

// cut shortens the lists to what is shown, and names those that were longer.
func cut(s *rest.Simulation) []string {
	names := s.Truncated
	s.Offers, names = first(s.Offers, names, "offers")
	s.Policies, names = first(s.Policies, names, "policies")
	s.Slices, names = first(s.Slices, names, "slices")
	s.Evicted, names = first(s.Evicted, names, "evicted")
	return names
}

func first[T any](all []T, names []string, name string) (shown []T, cut []string) {
	if len(all) <= maxRows {
		return all, names
	}
	return all[:maxRows], append(names, name)
}
