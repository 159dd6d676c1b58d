package federation

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/internal/kube/jsonstream"
)

const (
	// maxAttempts bounds how often a write is tried while others change the choice.
	maxAttempts = 5
	// maxProvider bounds each provider in the status of a ProviderChoice, and maxPart each other part, in bytes of JSON.
	maxProvider = 8 << 10
	maxPart     = 32 << 10
	// fieldManager owns the fields that are set.
	fieldManager = "kubectl-proffer"
)

// ErrNotServed is wrapped by errors of providers that are no brokers which let this cluster choose.
var ErrNotServed = errors.New("it serves no ProviderChoice to this cluster")

// Choice is the ProviderChoice of this cluster at a broker, as far as it can be printed.
type Choice struct {
	Generation int64                         `json:"generation"`
	Spec       v1alpha1.ProviderChoiceSpec   `json:"spec"`
	Status     v1alpha1.ProviderChoiceStatus `json:"status"`

	// version is the version that a write replaces.
	version string
}

// Broker reaches a provider that may let this cluster choose among its own providers. Each method returns within the
// limit.
type Broker struct {
	at    *Connection
	limit time.Duration
}

// NewBroker connects with an identity. An error of the API server about the Secret is wrapped.
func NewBroker(
	ctx context.Context, id Identity, secrets corev1client.SecretsGetter, limit time.Duration,
) (b Broker, err error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	b.limit = limit
	b.at, err = id.Connect(ctx, secrets)
	return b, err
}

// Choice reads the ProviderChoice, nil if there is none.
func (b Broker) Choice(ctx context.Context) (c *Choice, err error) {
	err = within(ctx, b.limit, func(ctx context.Context) error {
		c, err = b.at.choice(ctx, call{method: http.MethodGet, path: choicePath})
		return err
	})
	return c, explain(err)
}

// Choose sets a field of the spec, or removes it if the value is nil, and leaves the others as they are. The object is
// created if there is none.
func (b Broker) Choose(ctx context.Context, field string, value any) (c *Choice, err error) {
	err = within(ctx, b.limit, func(ctx context.Context) error {
		for range maxAttempts {
			before, err := b.at.choice(ctx, call{method: http.MethodGet, path: choicePath})
			if err != nil && !isAbsent(err) {
				return err
			}
			if c, err = b.at.write(ctx, before, field, value); !isCode(err, http.StatusConflict) && !isAbsent(err) {
				return err
			}
		}
		return fmt.Errorf("others change the ProviderChoice all the time: after %d attempts, it is as they left it",
			maxAttempts)
	})
	return c, explain(err)
}

// Reset deletes the ProviderChoice, and reports whether there was one.
func (b Broker) Reset(ctx context.Context) (found bool, err error) {
	err = within(ctx, b.limit, func(ctx context.Context) error {
		body, err := b.at.do(ctx, call{method: http.MethodDelete, path: choicePath})
		if err != nil {
			return err
		}
		return body.Close()
	})
	if isAbsent(err) {
		return false, nil
	}
	return err == nil, explain(err)
}

// choicesPath is the path of the ProviderChoices in a namespace, and choicePath that of the one that counts.
var (
	choicesPath = []string{"providerchoices"}
	choicePath  = []string{"providerchoices", v1alpha1.ChoiceName}
)

// write sets a field in the choice as it was read, nil if it was not there.
func (c *Connection) write(ctx context.Context, before *Choice, field string, value any) (*Choice, error) {
	spec := map[string]any{field: value}
	object := map[string]any{"metadata": map[string]any{"name": v1alpha1.ChoiceName}, "spec": spec}
	to := call{method: http.MethodPost, path: choicesPath, contentType: "application/json"}
	if before != nil {
		object["metadata"] = map[string]any{"resourceVersion": before.version}
		to = call{method: http.MethodPatch, path: choicePath, contentType: "application/merge-patch+json"}
	} else {
		object["apiVersion"], object["kind"] = v1alpha1.GroupVersion.String(), "ProviderChoice"
		if value == nil {
			delete(spec, field)
		}
	}
	// A broker that does not know a field must not drop it.
	to.query = url.Values{"fieldManager": {fieldManager}, "fieldValidation": {"Strict"}}
	var err error
	if to.body, err = json.Marshal(object); err != nil {
		return nil, err
	}
	return c.choice(ctx, to)
}

// choice makes a request whose answer is a ProviderChoice.
func (c *Connection) choice(ctx context.Context, r call) (*Choice, error) {
	answer, err := c.do(ctx, r)
	if err != nil {
		return nil, err
	}
	defer func() { _ = answer.Close() }()
	return readChoice(answer)
}

func isCode(err error, code int) bool {
	r, ok := errors.AsType[*refusal](err)
	return ok && r.code == code
}

// isAbsent reports whether the broker serves ProviderChoices, and has none of this cluster.
func isAbsent(err error) bool {
	r, ok := errors.AsType[*refusal](err)
	return ok && r.code == http.StatusNotFound && r.name == v1alpha1.ChoiceName
}

// explain says what an answer about a ProviderChoice means, in one line. That there is none is no error.
func explain(err error) error {
	r, refused := errors.AsType[*refusal](err)
	switch {
	case err == nil || isAbsent(err):
		return nil
	case refused && r.code == http.StatusForbidden:
		return fmt.Errorf("%w: it has no component orchestrator, or has not bound ClusterRole "+
			"proffer-provider-choice to this cluster yet (%s)", ErrNotServed, tidy(r.message, maxProblem))
	case refused && r.code == http.StatusNotFound:
		return fmt.Errorf("%w: it has no component orchestrator", ErrNotServed)
	case refused && (r.code == http.StatusUnprocessableEntity || r.code == http.StatusBadRequest):
		return fmt.Errorf("it refuses this: %s", tidy(r.message, maxMessage))
	}
	return errors.New(tidy(err.Error(), maxProblem))
}

// readChoice decodes a ProviderChoice of a stranger as it arrives. It keeps no more of it than the CRD allows, and
// makes each text one line that can be printed.
func readChoice(answer io.Reader) (*Choice, error) {
	limited := &io.LimitedReader{R: answer, N: maxAnswer}
	in, c := jsonstream.NewReader(limited), &Choice{}
	err := in.Object(func(key string) (err error) {
		switch key {
		case "metadata":
			_, err = in.Members(func(key string) (err error) {
				switch key {
				case "resourceVersion":
					c.version, _, err = in.String(maxName)
				case "generation":
					err = decodeField(in, maxPart, key, c)
				}
				return err
			})
		case "spec":
			err = decodeField(in, maxPart, key, c)
		case "status":
			err = readStatus(in, &c.Status)
		}
		return err
	})
	switch {
	case err != nil && limited.N <= 0:
		return nil, fmt.Errorf("its answer has more than %d MiB", maxAnswer>>20)
	case err == nil && c.version == "":
		err = errors.New("it has no resourceVersion")
	}
	if err != nil {
		return nil, fmt.Errorf("its answer is not a ProviderChoice: %w", err)
	}
	return c, nil
}

// readStatus reads a status. It reads one provider after the other, up to maxItems.
func readStatus(in *jsonstream.Reader, into *v1alpha1.ProviderChoiceStatus) error {
	_, err := in.Members(func(key string) error {
		if key != "providers" {
			return decodeField(in, maxPart, key, into)
		}
		_, err := in.Elements(func() error {
			if len(into.Providers) >= maxItems {
				return nil
			}
			var field struct{ Provider v1alpha1.ChoiceOfProvider }
			err := decodeField(in, maxProvider, "Provider", &field)
			into.Providers = append(into.Providers, field.Provider)
			return err
		})
		return err
	})
	return err
}

// decodeField decodes a value of at most this many bytes as a field, with texts that can be printed.
func decodeField(in *jsonstream.Reader, most int, key string, into any) error {
	value, whole, err := in.Value(most)
	if err != nil {
		return err
	}
	if !whole {
		return fmt.Errorf("a part of it has more than %d KiB", most>>10)
	}
	text, err := json.Marshal(map[string]any{key: tidyValue(value)})
	if err != nil {
		return err
	}
	return json.Unmarshal(text, into)
}

// tidyValue shortens lists and texts, and makes each text one line.
func tidyValue(value any) any {
	switch v := value.(type) {
	case string:
		return tidy(v, maxMessage)
	case []any:
		v = v[:min(len(v), maxItems)]
		for i := range v {
			v[i] = tidyValue(v[i])
		}
		return v
	case map[string]any:
		for key := range v {
			v[key] = tidyValue(v[key])
		}
	}
	return value
}
