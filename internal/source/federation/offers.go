package federation

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"proffer.dev/proffer/api/rest"
	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/internal/kube"
	"proffer.dev/proffer/internal/kube/jsonstream"
	"proffer.dev/proffer/internal/visible"
)

// The bounds of what one provider can take.
const (
	// maxOffers bounds the Offers of a provider that are read.
	maxOffers = 200
	// maxAnswer bounds an answer, and maxOffer one Offer in it, in bytes of JSON.
	maxAnswer = 4 << 20
	maxOffer  = 128 << 10
	// maxRefusal bounds what is read of an answer that is an error, in bytes.
	maxRefusal = 64 << 10
	// maxProblem bounds what is shown of a provider's error, in bytes.
	maxProblem = 300
)

// The bounds of texts of a provider, in bytes: the CRD's, or less where nobody would read more.
const (
	maxID      = 63
	maxName    = 253
	maxKey     = 317
	maxText    = 256
	maxMessage = 1024
	maxURL     = 1024
	// maxItems bounds each list and map of an Offer.
	maxItems = 64
	// maxStorageClasses is the bound of the CRD for this one list.
	maxStorageClasses = 256
)

// Reading is what was read of one provider.
type Reading struct {
	// Offers lists those that can be read, by class.
	Offers []rest.FederationOffer
	// Problems say what could not be read, in one line each.
	Problems []string
}

// Problem adds what is wrong, in one line. A part of it may be the provider's.
func (r *Reading) Problem(err error) { r.Problems = append(r.Problems, tidy(err.Error(), maxProblem)) }

// Ask reads what the provider of an identity publishes to this cluster, within the limit. The error is about all
// of it. One of the API server about the Secret is wrapped.
func Ask(
	ctx context.Context, id Identity, secrets corev1client.SecretsGetter, limit time.Duration, now func() time.Time,
) (r Reading, err error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	r.Offers = []rest.FederationOffer{}
	at, err := id.Connect(ctx, secrets)
	if err == nil {
		err = at.read(ctx, &r, now)
	}
	if err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		err = fmt.Errorf("it does not answer within %s", limit)
	}
	return r, err
}

func (c *Connection) read(ctx context.Context, into *Reading, now func() time.Time) error {
	answer, err := c.get(ctx, url.Values{"limit": {strconv.Itoa(maxOffers + 1)}})
	if err != nil {
		return err
	}
	defer func() { _ = answer.Close() }()
	return into.Read(answer, now)
}

// Read decodes a list of Offers as it arrives, and adds those that are well formed. The error is about
// the whole answer.
func (r *Reading) Read(answer io.Reader, now func() time.Time) error {
	limited := &io.LimitedReader{R: answer, N: maxAnswer}
	seen, left, first := map[string]bool{}, 0, error(nil)
	err := eachItem(jsonstream.NewUnbounded(limited), func(item *json.RawMessage) error {
		if left+len(r.Offers) >= maxOffers {
			return errTooMany
		}
		e, err := parse(*item, now())
		if err == nil && seen[e.Class] {
			err = fmt.Errorf("%s is there twice", e.Class)
		}
		if err != nil {
			left++
			first = cmp.Or(first, err)
			return nil
		}
		seen[e.Class] = true
		r.Offers = append(r.Offers, e)
		return nil
	})
	slices.SortFunc(r.Offers, func(a, b rest.FederationOffer) int { return cmp.Compare(a.Class, b.Class) })
	for i := range r.Offers {
		if e := &r.Offers[i]; e.Expired {
			r.Problem(fmt.Errorf("its Offer %s is not kept up to date: it was valid until %s", e.Class,
				e.ValidUntil.UTC().Format(time.RFC3339)))
		}
	}
	if left > 0 {
		r.Problem(fmt.Errorf("Offers left out: %d; the first: %w", left, first))
	}
	switch {
	case errors.Is(err, errTooMany):
		r.Problem(fmt.Errorf("it has more than %d Offers, and the others are left out", maxOffers))
	case err != nil && limited.N <= 0:
		return fmt.Errorf("its answer has more than %d MiB, and the rest is left out", maxAnswer>>20)
	case err != nil:
		return fmt.Errorf("its answer is not a list of Offers: %w", err)
	}
	return nil
}

var errTooMany = errors.New("too many items")

// eachItem calls item for each element of the member items of a list. It keeps one element at a time.
func eachItem(in *jsonstream.Reader, item func(text *json.RawMessage) error) error {
	found := false
	err := in.Object(func(key string) error {
		if key != "items" || found {
			return nil
		}
		found = true
		if err := in.Expect(jsonstream.Array); err != nil {
			return err
		}
		return jsonstream.List(in, item)
	})
	if err == nil && !found {
		return errors.New("it has no items")
	}
	return err
}

// parse turns an Offer of a stranger into an entry: its class and the names of resources have the
// characters that names have, its amounts can be computed with, and its texts can be printed.
func parse(text json.RawMessage, now time.Time) (rest.FederationOffer, error) {
	if len(text) > maxOffer {
		return rest.FederationOffer{}, fmt.Errorf("one has more than %d KiB", maxOffer>>10)
	}
	var o v1alpha1.Offer
	if err := json.Unmarshal(text, &o); err != nil {
		return rest.FederationOffer{}, fmt.Errorf("one is not an Offer: %w", err)
	}
	s := o.Status
	if len(validation.IsDNS1123Label(s.Class)) > 0 || s.Class != o.Name {
		return rest.FederationOffer{}, fmt.Errorf("%.64q is not of the class %.64q", o.Name, s.Class)
	}
	for _, amounts := range []v1alpha1.Quantities{s.Available, s.Held, s.Ceiling, s.LargestPod, s.Defaults} {
		if err := checkAmounts(amounts); err != nil {
			return rest.FederationOffer{}, fmt.Errorf("%s: %w", s.Class, err)
		}
	}
	if s.ObservedTime.IsZero() || s.ValidUntil.IsZero() {
		return rest.FederationOffer{}, fmt.Errorf("%s does not say how old it is", s.Class)
	}
	if len(s.Labels) > maxItems || len(s.Prices) > maxItems ||
		max(len(s.StorageClasses), len(s.IngressClasses), len(s.LoadBalancerClasses)) > maxStorageClasses {
		return rest.FederationOffer{}, fmt.Errorf("%s has a list that is too long", s.Class)
	}
	return rest.FederationOffer{OfferStatus: clean(s), Expired: !now.Before(s.ValidUntil.Time)}, nil
}

// checkAmounts refuses names that are not names, and amounts that are not amounts: comparing
// 1e999999999 takes minutes.
func checkAmounts(amounts v1alpha1.Quantities) error {
	if len(amounts) > maxItems {
		return fmt.Errorf("it has more than %d amounts", maxItems)
	}
	for name, amount := range amounts {
		if len(validation.IsQualifiedName(string(name))) > 0 {
			return fmt.Errorf("%.64q is not the name of a resource", name)
		}
		if problem := amount.Problem(name); problem != "" {
			return fmt.Errorf("%.32q of %.64q is not an amount: %s", amount.Text(), name, problem)
		}
	}
	return nil
}

// clean makes every text of a provider one line that can be printed, also as JSON or YAML.
func clean(s v1alpha1.OfferStatus) v1alpha1.OfferStatus {
	s.ClusterID = tidy(s.ClusterID, maxName)
	s.Title, s.URL = tidyAs(s.Title, maxText), tidyAs(s.URL, maxURL)
	s.Currency, s.Period, s.Price = tidyAs(s.Currency, maxText), tidyAs(s.Period, maxText), tidy(s.Price, maxText)
	s.OnExcess, s.Reason, s.Message = tidyAs(s.OnExcess, maxText), tidyAs(s.Reason, maxText), tidy(s.Message, maxMessage)
	s.Labels, s.Prices = tidyMap(s.Labels), tidyMap(s.Prices)
	for _, list := range [][]string{s.StorageClasses, s.IngressClasses, s.LoadBalancerClasses} {
		for i := range list {
			list[i] = tidy(list[i], maxName)
		}
	}
	return s
}

func tidyAs[T ~string](text T, most int) T { return T(tidy(string(text), most)) }

func tidyMap[M ~map[K]V, K, V ~string](m M) M {
	if m == nil {
		return nil
	}
	clean := make(M, len(m))
	for key, value := range m {
		clean[tidyAs(key, maxKey)] = tidyAs(value, maxText)
	}
	return clean
}

// tidy makes a text of a stranger one line that a terminal can show, cut to this many bytes.
func tidy(text string, most int) string { return visible.Escape(kube.Shorten(text, most), "") }
