package operatorclient

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"proffer.dev/proffer/api/rest"
)

// ErrTryAgain is wrapped by errors that may not occur again: the operator is starting, or busy.
var ErrTryAgain = errors.New("try again in a moment")

// ErrNotInstalled is wrapped by errors that say that there is no operator where it was looked for.
var ErrNotInstalled = errors.New("the operator is not installed there")

// ErrNoRight is wrapped by errors that name a right that the caller does not have.
var ErrNoRight = errors.New("you may not")

// ErrNoAnswer is wrapped by errors that say that the API server waits for the operator in vain.
var ErrNoAnswer = errors.New("the operator does not answer")

// Explain explains an error of a request that the API server has not answered, and wraps any other.
func Explain(err error) error {
	if wrapped, ok := errors.AsType[*url.Error](err); ok {
		return fmt.Errorf("the API server cannot be reached (%w): choose another with --context or --kubeconfig", wrapped.Err)
	}
	return fmt.Errorf("asking the API server: %w", err)
}

// noToken explains why the API server created no token.
func (f *Flags) noToken(account Account, err error) error {
	switch {
	case apierrors.IsForbidden(err):
		return f.missing(account, fmt.Sprintf("create serviceaccounts/token %q", account.Name))
	case apierrors.IsUnauthorized(err):
		return fmt.Errorf("the API server does not accept your credentials: "+
			"log in again, or choose others with --context or --kubeconfig (%w)", err)
	case apierrors.IsNotFound(err):
		return f.notInstalled("ServiceAccount " + account.Name)
	default:
		return Explain(err)
	}
}

// refusal explains an answer that is not 200: of the API server's proxy, or of the operator behind
// it.
func (f *Flags) refusal(account Account, method, path string, code int, header http.Header, body []byte) error {
	status := &metav1.Status{}
	message := strings.TrimSpace(string(body))
	if json.Unmarshal(body, status) == nil && status.Message != "" {
		message = status.Message
	}
	// The errors for a busy and an unavailable operator add this themselves.
	message = strings.TrimSuffix(message, ": "+ErrTryAgain.Error())
	switch byProxy := status.Details != nil && status.Details.Kind == "services"; {
	case byProxy && code == http.StatusForbidden:
		verb := "get"
		if method == http.MethodPost {
			verb = "create"
		}
		return f.missing(account, fmt.Sprintf("%s services/proxy %q", verb, f.proxied()))
	case byProxy && code == http.StatusNotFound:
		return f.notInstalled("Service " + f.Service)
	}
	if code == http.StatusInternalServerError && strings.Contains(message, "Authentication failed") {
		code = http.StatusUnauthorized // The operator says so of a token that is not one.
	}
	problem := &rest.Problem{}
	described := json.Unmarshal(body, problem) == nil && problem.Detail != ""
	if described {
		message = problem.Detail
	}
	switch code {
	case http.StatusUnauthorized:
		return fmt.Errorf("the operator in namespace %s did not accept the token: "+
			"it is too old for this plugin, or cannot ask the API server to review tokens", f.Namespace)
	case http.StatusForbidden:
		if path == rest.CatalogPath {
			account.Rights = catalogReader
		}
		return fmt.Errorf("the operator refuses %s %s to ServiceAccount %s in namespace %s: "+
			"bind ClusterRole %s to it, as the manifests do",
			method, path, account.Name, f.Namespace, account.Rights)
	case http.StatusNotFound:
		if described {
			return fmt.Errorf("the operator in namespace %s refuses the request: %s", f.Namespace, message)
		}
		return fmt.Errorf("the operator in namespace %s does not serve %s: it is too old for this plugin", f.Namespace, path)
	case http.StatusBadRequest:
		return fmt.Errorf("the operator refuses the request: %s", message)
	case http.StatusTooManyRequests:
		err := fmt.Errorf("the operator is busy: %s: %w", message, ErrTryAgain)
		if after := header.Get("Retry-After"); after != "" {
			err = fmt.Errorf("%w (after %s s)", err, after)
		}
		return err
	case http.StatusServiceUnavailable:
		return f.unavailable(message)
	default:
		return fmt.Errorf("the operator answers %d: %s", code, message)
	}
}

func (f *Flags) missing(account Account, right string) error {
	return fmt.Errorf("%w %s in namespace %s: ask for Role %s, "+
		"as in: kubectl -n %[3]s create rolebinding NAME --role=%[4]s --user=USER",
		ErrNoRight, right, f.Namespace, account.Role)
}

func (f *Flags) notInstalled(missing string) error {
	return fmt.Errorf("there is no %s in namespace %s: %w (choose its namespace with --operator-namespace), "+
		"or it is too old for this plugin", missing, f.Namespace, ErrNotInstalled)
}

// noAnswer explains an answer that does not come.
func (f *Flags) noAnswer() error {
	return fmt.Errorf("%w: probably a firewall keeps the control plane from its pod on TCP port 8443: "+
		"allow this port from the control plane to the nodes, as in docs/how-to/run-with-a-private-control-plane.md; "+
		"see the error of the control plane with: kubectl get --raw %s/offers", ErrNoAnswer, f.proxyPath())
}

// unreached is in the answer of the API server's proxy if it reaches no replica, and dropped matches the
// reasons for which it has waited in vain.
const unreached = "error trying to reach service"

var dropped = regexp.MustCompile(`(?i)timeout|timed out|deadline exceeded`)

// unavailable explains 503, which the API server's proxy also answers if it reaches no replica.
func (f *Flags) unavailable(message string) error {
	switch {
	case strings.Contains(message, "no endpoints available"):
		return fmt.Errorf("no replica of the operator is ready: %w, or look at: kubectl -n %s get pods",
			ErrTryAgain, f.Namespace)
	case strings.Contains(message, unreached) && dropped.MatchString(message):
		return f.noAnswer()
	case strings.Contains(message, unreached):
		return fmt.Errorf("the API server cannot reach the operator (%s): %w, or look at: kubectl -n %s get pods",
			message, ErrTryAgain, f.Namespace)
	default:
		return fmt.Errorf("the operator is not ready: %s: %w", message, ErrTryAgain)
	}
}
