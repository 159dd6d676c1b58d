package federation

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/sync/errgroup"
	"golang.org/x/time/rate"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/dynamic"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"proffer.dev/proffer/api/rest"
	"proffer.dev/proffer/internal/kube"
)

const (
	// timeLimit bounds the reading of one provider.
	timeLimit = 10 * time.Second
	// MaxProviders bounds the providers that are read: the first ones by cluster ID.
	MaxProviders = 256
	// maxReadings bounds the providers that are read at a time, and so the memory for what arrives. It is so
	// large that a hundred providers that do not answer delay the others by no more than a period.
	maxReadings = 32
	// maxUnread is how long Offers count without a further reading: a provider may say that its Offers are valid for
	// ever.
	maxUnread = time.Hour
	// lookPeriod is the time between two looks at the identities that change all the time, after lookBurst of
	// them: each new identity is read at once.
	lookPeriod = 5 * time.Second
	lookBurst  = 5
)

// Source keeps what the providers of this cluster publish to it. It runs in every replica, each of which serves
// what it has read itself.
type Source struct {
	secrets   corev1client.SecretsGetter
	peerings  *peerings
	informers kube.CRDInformers
	// identitiesChanged has room for one value.
	identitiesChanged chan struct{}
	// reading is held while a provider is read.
	reading chan struct{}
	log     logr.Logger

	mu sync.Mutex
	// providers are the latest readings by cluster ID.
	providers map[string]*provider
}

// provider is what the readings of a provider brought.
type provider struct {
	offers    []rest.FederationOffer
	publishes bool
	// read is when the offers were read, zero if they never were.
	read time.Time
	// problems are those of the latest reading.
	problems []string
}

// New returns a Source that has not started.
func New(objects dynamic.Interface, secrets corev1client.SecretsGetter, log logr.Logger) *Source {
	s := &Source{
		secrets: secrets, log: log, identitiesChanged: make(chan struct{}, 1),
		reading: make(chan struct{}, maxReadings), providers: map[string]*provider{},
	}
	s.peerings, s.informers = watchPeerings(objects, s.wake, log)
	return s
}

// wake lets the source look at the identities again.
func (s *Source) wake() {
	select {
	case s.identitiesChanged <- struct{}{}:
	default:
	}
}

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (*Source) NeedLeaderElection() bool { return false }

// Start implements manager.Runnable. It reads the providers until the context ends.
func (s *Source) Start(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return s.informers.Start(ctx) })
	group.Go(func() error {
		s.followAll(ctx)
		return nil
	})
	return group.Wait()
}

// followAll follows the provider of each identity for as long as the identity is there.
func (s *Source) followAll(ctx context.Context) {
	var running sync.WaitGroup
	defer running.Wait()
	stops, logged := map[Identity]context.CancelFunc{}, 0
	for looks := rate.NewLimiter(rate.Every(lookPeriod), lookBurst); looks.Wait(ctx) == nil; {
		all := s.peerings.identities()
		wanted, others := all[:min(len(all), MaxProviders)], all[min(len(all), MaxProviders):]
		if len(others) > 0 && len(all) != logged {
			s.log.Info("There are more identities than are read", "read", MaxProviders, "all", len(all))
			logged = len(all)
		}
		for id, stop := range stops {
			if !slices.Contains(wanted, id) {
				stop()
				delete(stops, id)
			}
		}
		s.keep(wanted, others)
		for _, id := range wanted {
			if stops[id] == nil {
				var following context.Context
				following, stops[id] = context.WithCancel(ctx)
				running.Go(func() { s.follow(following, id) })
			}
		}
		select {
		case <-s.identitiesChanged:
		case <-ctx.Done():
		}
	}
	for _, stop := range stops {
		stop()
	}
}

// follow reads one provider until the context ends.
func (s *Source) follow(ctx context.Context, id Identity) {
	var latest Reading
	follower{
		read: func(ctx context.Context) string {
			latest = s.readOnce(ctx, id)
			return latest.version
		},
		awaitChange: func(ctx context.Context, version string) bool { return latest.at.awaitChange(ctx, version) },
	}.run(ctx)
}

// readOnce reads a provider, once it is its turn.
func (s *Source) readOnce(ctx context.Context, id Identity) (r Reading) {
	select {
	case s.reading <- struct{}{}:
	case <-ctx.Done():
		return r
	}
	defer func() { <-s.reading }()
	r, err := Ask(ctx, id, s.secrets, timeLimit, time.Now)
	if apierrors.IsForbidden(err) {
		err = errors.New("Proffer may not read the Secret of its identity: apply what kubectl proffer catalog --roles prints") //nolint:staticcheck,lll // Proffer is a name.
	}
	s.note(ctx, id.Provider, r, err)
	return r
}

// note keeps the result of a reading. After an error that may pass, the Offers stay: they expire by themselves.
func (s *Source) note(ctx context.Context, id string, r Reading, err error) {
	now := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	if ctx.Err() != nil {
		return // The identity is gone, and keep may have forgotten the provider already. Or the process ends.
	}
	was := s.providers[id]
	is := &provider{offers: r.Offers, publishes: err == nil, read: now}
	if err != nil && !errors.Is(err, errNotPublished) && was != nil {
		*is = *was
	} else if err != nil {
		is.offers, is.read = []rest.FederationOffer{}, time.Time{}
	}
	if err != nil {
		r.Problem(err)
	}
	is.problems = r.Problems
	s.providers[id] = is
}

// keep forgets the providers of which no identity is there any more, and notes of others that they are not read.
func (s *Source) keep(wanted, others []Identity) {
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.providers, func(id string, _ *provider) bool {
		return !slices.ContainsFunc(wanted, func(w Identity) bool { return w.Provider == id })
	})
	for _, other := range others {
		if s.providers[other.Provider] == nil {
			s.providers[other.Provider] = &provider{
				problems: []string{fmt.Sprintf("it is not read: only the first %d identities are", MaxProviders)},
			}
		}
	}
}

// Federation returns what is known of each provider, with the Offers that have expired by now, or are of a provider
// that could not be read for maxUnread.
func (s *Source) Federation(now time.Time) rest.Federation {
	all := s.peerings.byProvider()
	s.mu.Lock()
	for id, read := range s.providers {
		p := all[id]
		if p == nil {
			p = &rest.FederationProvider{}
			all[id] = p
		}
		p.Publishes, p.Problems, p.Offers = read.publishes, read.problems, slices.Clone(read.offers)
		if !read.read.IsZero() {
			p.ReadTime = new(read.read)
		}
	}
	s.mu.Unlock()
	f := rest.Federation{Providers: make([]rest.FederationProvider, 0, len(all))}
	for id, p := range all {
		p.ClusterID = tidy(id, maxID)
		if p.Offers == nil {
			p.Offers = []rest.FederationOffer{}
		}
		for i := range p.Offers {
			p.Offers[i].Expired = !now.Before(p.Offers[i].ValidUntil.Time) ||
				p.ReadTime != nil && now.Sub(*p.ReadTime) > maxUnread
		}
		f.Providers = append(f.Providers, *p)
	}
	slices.SortFunc(f.Providers, func(a, b rest.FederationProvider) int { return cmp.Compare(a.ClusterID, b.ClusterID) })
	return f
}
