package federation

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"proffer.dev/proffer/api/rest"
	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/internal/kube"
	"proffer.dev/proffer/internal/kube/jsonstream"
	"proffer.dev/proffer/internal/quantity"
	"proffer.dev/proffer/internal/visible"
)

// The bounds of what one provider can take.
const (
	// maxOffers bounds the Offers of a provider that are read.
	maxOffers = 200
	// maxAnswer bounds an answer, and maxOffer one Offer in it, in bytes of JSON.
	maxAnswer = 4 << 20
	maxOffer  = 128 << 10
	// maxKept bounds what is kept of all Offers of a provider, in bytes of memory.
	maxKept = 512 << 10
	// maxRefusal bounds what is read of an answer that is an error, in bytes.
	maxRefusal = 64 << 10
	// maxProblem bounds what is shown of a provider's error, in bytes, and maxNamed the Offers with a line of
	// their own.
	maxProblem = 300
	maxNamed   = 8
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

	// at is the connection that it was read over, and version the version that changes follow, empty if the
	// answer has none.
	at      *Connection
	version string
}

// Problem adds what is wrong, in one line. A part of it may be the provider's.
func (r *Reading) Problem(err error) { r.Problems = append(r.Problems, tidy(err.Error(), maxProblem)) }

// Ask reads what the provider of an identity publishes to this cluster, within the limit. The error is about all
// of it. One of the API server about the Secret is wrapped.
func Ask(
	ctx context.Context, id Identity, secrets corev1client.SecretsGetter, limit time.Duration, now func() time.Time,
) (r Reading, err error) {
	r.Offers = []rest.FederationOffer{}
	err = within(ctx, limit, func(ctx context.Context) (err error) {
		if r.at, err = id.Connect(ctx, secrets); err == nil {
			err = r.at.read(ctx, &r, now)
		}
		return err
	})
	return r, err
}

// within bounds what a provider is asked for.
func within(ctx context.Context, limit time.Duration, ask func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	err := ask(ctx)
	if err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return fmt.Errorf("it does not answer within %s", limit)
	}
	return err
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
	left, err := r.items(jsonstream.NewReader(limited), now())
	slices.SortFunc(r.Offers, func(a, b rest.FederationOffer) int { return cmp.Compare(a.Class, b.Class) })
	expired := 0
	for i := range r.Offers {
		o := &r.Offers[i]
		if !o.Expired {
			continue
		}
		if expired++; expired <= maxNamed {
			r.Problem(fmt.Errorf("its Offer %s is not kept up to date: it was valid until %s", o.Class,
				o.ValidUntil.UTC().Format(time.RFC3339)))
		}
	}
	if more := expired - maxNamed; more > 0 {
		r.Problem(fmt.Errorf("it has more Offers that are not kept up to date: %d", more))
	}
	if left.number > 0 {
		r.Problem(fmt.Errorf("it has Offers that are left out: %d; the first: %w", left.number, left.first))
	}
	switch {
	case errors.Is(err, errTooMany):
		r.Problem(fmt.Errorf("it has more than %d Offers, and the others are left out", maxOffers))
	case err != nil && limited.N <= 0 && len(r.Offers) > 0:
		r.Problem(fmt.Errorf("its answer has more than %d MiB, and the rest is left out", maxAnswer>>20))
	case err != nil && limited.N <= 0:
		return fmt.Errorf("its answer has more than %d MiB before the first Offer that can be read", maxAnswer>>20)
	case err != nil:
		return fmt.Errorf("its answer is not a list of Offers: %w", err)
	}
	return nil
}

var errTooMany = errors.New("too many items")

// leftOut counts the Offers that are left out, and says why the first one is.
type leftOut struct {
	number int
	first  error
}

func (l *leftOut) add(err error) {
	l.number++
	l.first = cmp.Or(l.first, err)
}

// items reads the version and the items of a list. It keeps the text of one item at a time.
func (r *Reading) items(in *jsonstream.Reader, now time.Time) (left leftOut, _ error) {
	found, size := false, 0
	err := in.Object(func(key string) error {
		switch key {
		case "metadata":
			_, err := in.Members(func(key string) (err error) {
				if key == "resourceVersion" {
					r.version, _, err = in.String(maxName)
				}
				return err
			})
			return err
		case "items":
			found = true
			if err := in.Expect(jsonstream.Array); err != nil {
				return err
			}
			_, err := in.Elements(func() error {
				if left.number+len(r.Offers) >= maxOffers {
					return errTooMany
				}
				text, whole, err := in.Text(maxOffer)
				if err != nil {
					return err
				}
				if err := r.add(text, whole, &size, now); err != nil {
					left.add(err)
				}
				return nil
			})
			return err
		}
		return nil
	})
	if err == nil && !found {
		err = errors.New("it has no items")
	}
	return left, err
}

// add adds an Offer unless its class is there, or all take more than maxKept bytes together.
func (r *Reading) add(text []byte, whole bool, size *int, now time.Time) error {
	if !whole {
		return fmt.Errorf("one has more than %d KiB", maxOffer>>10)
	}
	o, err := parse(text, now)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(r.Offers, func(other rest.FederationOffer) bool { return other.Class == o.Class }) {
		return fmt.Errorf("%s is there twice", o.Class)
	}
	kept, err := sizeInMemory(&o.OfferStatus)
	if err != nil {
		return err
	}
	if *size+kept > maxKept {
		return fmt.Errorf("with %s, its Offers take more than %d KiB", o.Class, maxKept>>10)
	}
	*size += kept
	r.Offers = append(r.Offers, o)
	return nil
}

// sizeInMemory estimates the bytes that an Offer takes: its texts, and the room for each map and item. For many short
// items that is many times their JSON.
func sizeInMemory(s *v1alpha1.OfferStatus) (int, error) {
	const (
		offer             = 512
		amounts, amount   = 600, 128
		words, word, name = 256, 80, 16
	)
	text, err := json.Marshal(s)
	size := offer + len(text) + 2*words + word*(len(s.Labels)+len(s.Prices)) +
		name*(len(s.StorageClasses)+len(s.IngressClasses)+len(s.LoadBalancerClasses))
	for _, of := range []v1alpha1.Quantities{s.Available, s.Held, s.Ceiling, s.LargestPod, s.Defaults} {
		if len(of) > 0 {
			size += amounts + amount*len(of)
		}
	}
	for i := range s.Shapes {
		size += amounts + amount*len(s.Shapes[i].Free)
	}
	for i := range s.Providers {
		size += offer/2 + 2*words + word*(len(s.Providers[i].Labels)+len(s.Providers[i].Prices))
	}
	return size, err
}

// parse turns an Offer of a stranger into an entry: its class and the names of resources have the
// characters that names have, its amounts can be computed with, and its texts can be printed.
func parse(text []byte, now time.Time) (rest.FederationOffer, error) {
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
	if err := checkShapes(s.Shapes); err != nil {
		return rest.FederationOffer{}, fmt.Errorf("%s: %w", s.Class, err)
	}
	if s.ObservedTime.IsZero() || s.ValidUntil.IsZero() {
		return rest.FederationOffer{}, fmt.Errorf("%s does not say how old it is", s.Class)
	}
	if len(s.Labels) > maxItems || len(s.Providers) > maxItems || len(s.Prices) > maxItems ||
		max(len(s.StorageClasses), len(s.IngressClasses), len(s.LoadBalancerClasses)) > maxStorageClasses {
		return rest.FederationOffer{}, fmt.Errorf("%s has a list that is too long", s.Class)
	}
	offer := rest.FederationOffer{OfferStatus: clean(s), Expired: !now.Before(s.ValidUntil.Time)}
	if strings.Contains(offer.Message, rest.FromOneNode) {
		offer.Fit = v1alpha1.FitNode
	}
	return offer, nil
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

// checkShapes refuses more shapes, and larger ones, than the CRD allows, and shapes of no node.
func checkShapes(shapes []v1alpha1.NodeShape) error {
	if len(shapes) > v1alpha1.MaxOfferShapes {
		return fmt.Errorf("it has more than %d shapes", v1alpha1.MaxOfferShapes)
	}
	for _, shape := range shapes {
		if shape.Nodes < 1 || len(shape.Free) > v1alpha1.MaxShapeResources {
			return fmt.Errorf("a shape is of %d nodes and %d resources: at least one and at most %d can be",
				shape.Nodes, len(shape.Free), v1alpha1.MaxShapeResources)
		}
		if err := checkAmounts(shape.Free); err != nil {
			return err
		}
	}
	return nil
}

// The characters that the CRD allows in an address and in a currency.
var (
	address  = regexp.MustCompile(`^https?://[A-Za-z0-9]([-A-Za-z0-9.]*[A-Za-z0-9])?(:[0-9]{1,5})?([/?#][!-~]*)?$`)
	currency = regexp.MustCompile(`^[A-Z]{3}$`)
)

// clean makes every text of a provider one line that can be printed, also as JSON or YAML. It drops an address, a
// currency, a period and prices that no policy could have: programs compare them, and browsers follow addresses.
// The line of prices is written anew from those that stay.
func clean(s v1alpha1.OfferStatus) v1alpha1.OfferStatus {
	s.ClusterID = tidy(s.ClusterID, maxName)
	s.Title = tidyAs(s.Title, maxText)
	if !address.MatchString(string(s.URL)) || len(s.URL) > maxURL {
		s.URL = ""
	}
	s.OnExcess, s.Reason, s.Message = tidyAs(s.OnExcess, maxText), tidyAs(s.Reason, maxText), tidy(s.Message, maxMessage)
	s.Labels, s.Prices = tidyLabels(s.Labels), maps.Clone(s.Prices)
	maps.DeleteFunc(s.Prices, func(name corev1.ResourceName, p v1alpha1.Price) bool {
		return len(validation.IsQualifiedName(string(name))) > 0 || rat(p) == nil
	})
	if !currency.MatchString(string(s.Currency)) || len(s.Prices) == 0 {
		s.Prices, s.Currency, s.Period = nil, "", ""
	} else if s.Period != v1alpha1.PeriodMonth {
		s.Period = v1alpha1.PeriodHour
	}
	s.Price = quantity.PriceLine(s.Prices, string(s.Currency), string(s.Period))
	behind := s.Providers[:0]
	for _, p := range s.Providers {
		if cleanProvider(&p) {
			behind = append(behind, p)
		}
	}
	s.Providers = behind
	for _, list := range [][]string{s.StorageClasses, s.IngressClasses, s.LoadBalancerClasses} {
		for i := range list {
			list[i] = tidy(list[i], maxName)
		}
	}
	return s
}

// cleanProvider does for a provider behind an Offer what clean does for the Offer, and reports whether it can be one.
func cleanProvider(p *v1alpha1.OfferProvider) bool {
	if len(validation.IsDNS1123Label(p.ClusterID)) > 0 || len(validation.IsDNS1123Label(p.Class)) > 0 ||
		max(len(p.Labels), len(p.Prices)) > maxItems {
		return false
	}
	words := v1alpha1.OfferStatus{CatalogWords: v1alpha1.CatalogWords{
		Title: v1alpha1.Title(p.Title), Currency: v1alpha1.Currency(p.Currency), Period: p.Period,
		Labels: convert[string, v1alpha1.ShownText, v1alpha1.LabelValue](p.Labels),
		Prices: convert[corev1.ResourceName, v1alpha1.ShownText, v1alpha1.Price](p.Prices),
	}}
	words = clean(words)
	p.Title, p.Currency, p.Period = v1alpha1.ShownText(words.Title), string(words.Currency), words.Period
	p.Labels = convert[string, v1alpha1.LabelValue, v1alpha1.ShownText](words.Labels)
	p.Prices = convert[corev1.ResourceName, v1alpha1.Price, v1alpha1.ShownText](words.Prices)
	return true
}

// convert converts the texts of a map, nil to nil.
func convert[K comparable, A, B ~string](texts map[K]A) map[K]B {
	if texts == nil {
		return nil
	}
	out := make(map[K]B, len(texts))
	for key, text := range texts {
		out[key] = B(text)
	}
	return out
}

func tidyAs[T ~string](text T, most int) T { return T(tidy(string(text), most)) }

func tidyLabels(labels v1alpha1.Labels) v1alpha1.Labels {
	if labels == nil {
		return nil
	}
	clean := make(v1alpha1.Labels, len(labels))
	for key, value := range labels {
		clean[tidy(key, maxKey)] = tidyAs(value, maxText)
	}
	return clean
}

// tidy makes a text of a stranger one line that a terminal can show, cut to this many bytes.
func tidy(text string, most int) string { return visible.Escape(kube.Shorten(text, most), "") }
