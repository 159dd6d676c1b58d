package toggle

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/sync/singleflight"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"

	"proffer.dev/proffer/api/rest"
	"proffer.dev/proffer/api/v1alpha1"
)

const (
	// MaxOrchestrations bounds the Orchestrations that are read: each may have a megabyte.
	MaxOrchestrations = 100
	// maxAttempts bounds how often a change starts again because somebody else has changed an
	// Orchestration.
	maxAttempts = 5
	// listTimeout bounds one list, and changeTimeout a change with all of its attempts.
	listTimeout, changeTimeout = 10 * time.Second, 20 * time.Second
)

var orchestrations = v1alpha1.GroupVersion.WithResource("orchestrations")

// errTooMany is the error for more than MaxOrchestrations.
var errTooMany = errors.New("there are too many Orchestrations")

// Config holds the dependencies of a Toggler.
type Config struct {
	// Client lists and patches Orchestrations.
	Client dynamic.Interface
	// Peers returns the IDs of the clusters that this one is peered with.
	Peers func(context.Context) (map[string]bool, error)
	// Caller names the caller of a request, for the log. If it fails, no change is made.
	Caller func(context.Context) (string, error)
	Log    logr.Logger
}

// Toggler lists, disables and enables providers. It is safe for concurrent use.
type Toggler struct {
	Config
	// lists has the list that is under way, which its callers share.
	lists singleflight.Group
	// busy is held by the one change that is made.
	busy chan struct{}
}

// New returns a Toggler.
func New(config Config) *Toggler { return &Toggler{Config: config, busy: make(chan struct{}, 1)} }

// Providers returns the providers that Orchestrations know, by cluster ID. The caller must not change
// them. An error is in words for the caller of the API.
func (t *Toggler) Providers(ctx context.Context) ([]rest.Provider, *apierrors.StatusError) {
	listing := t.lists.DoChan("", func() (any, error) {
		// Others wait for it too.
		all, err := t.list(context.WithoutCancel(ctx))
		if err != nil {
			return nil, err
		}
		return providersOf(all), nil
	})
	select {
	case listed := <-listing:
		if listed.Err != nil {
			return nil, t.explain(listed.Err)
		}
		providers, _ := listed.Val.([]rest.Provider)
		return providers, nil
	case <-ctx.Done():
		return nil, t.explain(refuse(http.StatusServiceUnavailable, "the request has ended"))
	}
}

// Toggle makes a change, and returns all providers as they are then. One change is made at a time. If it
// fails, Orchestrations may be changed that were written before: the same change can be sent again.
func (t *Toggler) Toggle(ctx context.Context, change rest.Toggle) ([]rest.Provider, *apierrors.StatusError) {
	select {
	case t.busy <- struct{}{}:
		defer func() { <-t.busy }()
	default:
		return nil, t.explain(refuse(http.StatusTooManyRequests, "another change is being made: try again in a moment"))
	}
	// Who lists from now on sees what is written from now on.
	defer t.lists.Forget("")
	// A caller that goes away in between must not leave a change without a line in the log.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), changeTimeout)
	defer cancel()
	user, err := t.Caller(ctx)
	if err != nil {
		t.Log.Error(err, "Cannot name the caller of a change")
		return nil, t.explain(refuse(http.StatusServiceUnavailable,
			"the API server does not say who you are, for the log: try again in a moment"))
	}
	for attempt := 1; ; attempt++ {
		all, err := t.change(ctx, change, user)
		switch {
		case err == nil:
			return providersOf(all), nil
		case attempt == maxAttempts || !isStale(err):
			return nil, t.explain(err)
		}
	}
}

// check returns an error unless somebody knows the IDs: a typing error would disable nothing.
func (t *Toggler) check(ctx context.Context, all []v1alpha1.Orchestration, change rest.Toggle) error {
	named := change.Orchestration == ""
	missing := map[string]string{rest.ToggleID: change.ID, rest.ToggleConsumer: change.Consumer}
	for i := range all {
		named = named || all[i].Name == change.Orchestration
		providers, consumers := knownIDs(&all[i])
		if providers[change.ID] {
			delete(missing, rest.ToggleID)
		}
		if change.Consumer == "" || consumers[change.Consumer] {
			delete(missing, rest.ToggleConsumer)
		}
	}
	switch {
	case len(all) == 0:
		return refuse(http.StatusNotFound, "there is no Orchestration: create one first")
	case !named:
		return refuse(http.StatusNotFound,
			"there is no Orchestration %s: write the name of one, or leave orchestration out", change.Orchestration)
	case len(missing) == 0:
		return nil
	}
	peers, err := t.Peers(ctx)
	if err != nil { // It is logged.
		return refuse(http.StatusServiceUnavailable,
			"the API server does not list the ForeignClusters: try again in a moment")
	}
	for _, parameter := range []string{rest.ToggleID, rest.ToggleConsumer} {
		if id, unknown := missing[parameter]; unknown && !peers[id] {
			return refuse(http.StatusNotFound,
				"%s=%s is unknown: no Orchestration and no ForeignCluster has this ID", parameter, id)
		}
	}
	return nil
}

// change reads the Orchestrations, writes those that differ from what should be, and returns all as they
// are then. It writes none if one of them cannot be changed. The user is for the log.
func (t *Toggler) change(ctx context.Context, change rest.Toggle, user string) ([]v1alpha1.Orchestration, error) {
	all, err := t.list(ctx)
	if err != nil {
		return nil, err
	}
	if err := t.check(ctx, all, change); err != nil {
		return nil, err
	}
	sets := map[int]ownEntries{}
	for i := range all {
		if change.Orchestration != "" && all[i].Name != change.Orchestration {
			continue
		}
		set, differs, err := plan(&all[i], change)
		if err != nil {
			return nil, err
		}
		if differs {
			sets[i] = set
		}
	}
	for i := range all {
		set, differs := sets[i]
		if !differs {
			continue
		}
		log := t.Log.WithValues("orchestration", all[i].Name, "provider", change.ID, "consumer", change.Consumer,
			"enable", change.Enable, "user", user)
		after, err := t.apply(ctx, &all[i], set)
		if err != nil {
			// The API server may have made the change nevertheless.
			log.Info("A caller wanted to change which providers an Orchestration may choose", "problem", err.Error())
			return nil, fmt.Errorf("applying Orchestration %s: %w", all[i].Name, err)
		}
		all[i] = *after
		log.Info("A caller has changed which providers an Orchestration may choose")
	}
	return all, nil
}

// apply makes Manager the owner of these entries, and of nothing else, in the version of the Orchestration
// that was read.
func (t *Toggler) apply(
	ctx context.Context, o *v1alpha1.Orchestration, set ownEntries,
) (*v1alpha1.Orchestration, error) {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("Orchestration"))
	u.SetName(o.Name)
	u.SetUID(o.UID)
	u.SetResourceVersion(o.ResourceVersion)
	spec := map[string]any{}
	for field, list := range map[string][]entry{"disabled": set.disabled, "enabled": set.enabled} {
		var entries []any
		for _, e := range list {
			entries = append(entries, map[string]any{"provider": string(e.Provider), "consumer": string(e.Consumer)})
		}
		if len(entries) > 0 {
			spec[field] = entries
		}
	}
	if len(spec) > 0 {
		u.Object["spec"] = spec
	}
	applied, err := t.Client.Resource(orchestrations).Apply(ctx, o.Name, u, metav1.ApplyOptions{FieldManager: Manager})
	if err != nil {
		return nil, err
	}
	return decode(applied)
}

// list reads all Orchestrations, by name.
func (t *Toggler) list(ctx context.Context) ([]v1alpha1.Orchestration, error) {
	ctx, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	listed, err := t.Client.Resource(orchestrations).List(ctx, metav1.ListOptions{Limit: MaxOrchestrations})
	if err != nil {
		return nil, fmt.Errorf("listing Orchestrations: %w", err)
	}
	if listed.GetContinue() != "" {
		return nil, errTooMany
	}
	all := make([]v1alpha1.Orchestration, 0, len(listed.Items))
	for i := range listed.Items { // The API server lists by name.
		o, err := decode(&listed.Items[i])
		if err != nil {
			return nil, err
		}
		all = append(all, *o)
	}
	return all, nil
}

func decode(u *unstructured.Unstructured) (*v1alpha1.Orchestration, error) {
	o := &v1alpha1.Orchestration{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, o); err != nil {
		return nil, fmt.Errorf("reading Orchestration %s: %w", u.GetName(), err)
	}
	return o, nil
}

// isStale reports whether an apply failed because the Orchestration is not what was read. The API server
// answers the apply of one that is gone with Forbidden, since Manager may not create any.
func isStale(err error) bool {
	return apierrors.IsConflict(err) || apierrors.IsNotFound(err) || apierrors.IsForbidden(err)
}

// explain logs an error of the API server, and returns it in words for the caller, without the names of
// hosts and users that it may have.
func (t *Toggler) explain(err error) *apierrors.StatusError {
	if refused, ok := errors.AsType[refusal](err); ok {
		return refused.StatusError
	}
	t.Log.Error(err, "Cannot read or change which providers are disabled")
	return inWords(err).StatusError
}

func inWords(err error) refusal {
	const code = http.StatusServiceUnavailable
	switch {
	case errors.Is(err, errTooMany):
		return refuse(http.StatusInternalServerError,
			"there are more than %d Orchestrations: use kubectl edit", MaxOrchestrations)
	case apierrors.IsNotFound(err) && strings.HasPrefix(err.Error(), "listing"):
		return refuse(code, "the CRD orchestrations.proffer.dev does not exist: apply config/components/orchestrator")
	case apierrors.IsForbidden(err):
		return refuse(code, "the operator may not do this: "+
			"apply the roles in config/components/orchestrator of this version, and look at its log")
	case apierrors.IsConflict(err), apierrors.IsNotFound(err):
		return refuse(code, "the Orchestrations are being changed by others: try again in a moment")
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err):
		return refuse(http.StatusConflict, "the API server refuses the change: the log of the operator says why")
	}
	return refuse(code, "the API server does not answer, or refuses the change: try again in a moment")
}
