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
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
	// maxFirst bounds the wait for the first readings. It is long enough for MaxProviders of which none answers.
	maxFirst = 2 * time.Minute
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
	// changed are called after a change of what is known, apart from the times of Offers.
	changed []func()

	mu sync.Mutex
	// started is when the source started, zero before that, and complete is set from the end of the first readings
	// on.
	started  time.Time
	complete bool
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
	s.peerings, s.informers = watchPeerings(objects, s.wake, s.tell, log)
	return s
}

// OnChange has a function called after each change of what is known, apart from the times of Offers. It must not
// block, and is set before Start.
func (s *Source) OnChange(changed func()) { s.changed = append(s.changed, changed) }

func (s *Source) tell() {
	for _, changed := range s.changed {
		changed()
	}
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
	s.mu.Lock()
	s.started = time.Now()
	s.mu.Unlock()
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
	if ctx.Err() != nil {
		s.mu.Unlock()
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
	s.mu.Unlock()
	if was == nil || !equality.Semantic.DeepEqual(lasting(was.offers), lasting(is.offers)) {
		s.tell()
	}
}

// lasting returns Offers without what changes all the time.
func lasting(offers []rest.FederationOffer) []rest.FederationOffer {
	out := slices.Clone(offers)
	for i := range out {
		out[i].Expired, out[i].ObservedTime, out[i].ValidUntil = false, metav1.Time{}, metav1.Time{}
	}
	return out
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
		p.Publishes, p.Problems, p.Offers = read.publishes, read.problems, read.at(now)
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
		f.Providers = append(f.Providers, *p)
	}
	slices.SortFunc(f.Providers, func(a, b rest.FederationProvider) int { return cmp.Compare(a.ClusterID, b.ClusterID) })
	return f
}

// at returns the Offers as of now: one has expired whose time is over, or whose provider could not be read for
// maxUnread.
func (p *provider) at(now time.Time) []rest.FederationOffer {
	out := slices.Clone(p.offers)
	for i := range out {
		out[i].Expired = !now.Before(out[i].ValidUntil.Time) || !p.read.IsZero() && now.Sub(p.read) > maxUnread
	}
	return out
}

// Ours returns the Offers of the classes in which this cluster has an accepted ResourceSlice, by provider, as of
// now. Those of a provider are sorted by class.
func (s *Source) Ours(now time.Time) map[string][]rest.FederationOffer {
	classes := s.peerings.accepted()
	all := map[string][]rest.FederationOffer{}
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, ours := range classes {
		if p := s.providers[id]; p != nil {
			all[id] = slices.DeleteFunc(p.at(now), func(o rest.FederationOffer) bool { return !ours[o.Class] })
		}
	}
	return all
}

// Complete reports whether each provider that was there at first has been read, or could not be: until then, Ours
// lacks some. It is true at the latest maxFirst after the start.
func (s *Source) Complete(now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.complete = s.complete || !s.started.IsZero() && (now.Sub(s.started) > maxFirst || s.haveRead())
	return s.complete
}

// haveRead reports whether each identity that is read has been. The caller holds the lock.
func (s *Source) haveRead() bool {
	for _, i := range s.informers {
		select {
		case <-i.Done():
		default:
			return false
		}
	}
	all := s.peerings.identities()
	return !slices.ContainsFunc(all[:min(len(all), MaxProviders)], func(id Identity) bool {
		return s.providers[id.Provider] == nil
	})
}
