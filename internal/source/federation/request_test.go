package federation

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"proffer.dev/proffer/api/rest"
	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/test"
	"proffer.dev/proffer/test/operatortest"
)

// amounts returns amounts as they are written, as in cpu=2,memory=4Gi, sorted by resource.
func amounts(of v1alpha1.Quantities) string {
	var texts []string
	for _, name := range slices.Sorted(maps.Keys(of)) {
		texts = append(texts, string(name)+"="+new(of[name]).Text())
	}
	return strings.Join(texts, ",")
}

func quantities(t *testing.T, text string) v1alpha1.Quantities {
	t.Helper()
	all := v1alpha1.Quantities{}
	for item := range strings.SplitSeq(text, ",") {
		if name, zero := strings.CutSuffix(item, "=0"); zero { // --fits takes no 0.
			all[corev1.ResourceName(name)] = v1alpha1.Quantity{}
			continue
		}
		one, err := ParseAmounts(item)
		test.Must(t, err)
		maps.Copy(all, one)
	}
	return all
}

func TestARequestIsGrantedInFullOrNotMade(t *testing.T) {
	const some = "cpu=4,memory=8Gi,pods=20,nvidia.com/gpu=0"
	for name, tc := range map[string]struct {
		available, defaults, fits string
		modify                    func(*rest.FederationOffer)
		want                      string
	}{
		"all that is available, without what is not": {available: some, want: "cpu=4,memory=8Gi,pods=20"},
		"a part, with all pods":                      {available: some, fits: "cpu=2,memory=4Gi", want: "cpu=2,memory=4Gi,pods=20"},
		"exactly what is available":                  {available: some, fits: "cpu=4,memory=8Gi,pods=20", want: "cpu=4,memory=8Gi,pods=20"},
		"parts that are not granted":                 {available: "cpu=1500m,memory=1.1Gi,pods=20", want: "cpu=1500m,memory=1181116006,pods=20"},
		"no more than is granted":                    {available: "cpu=2,memory=1.1Gi,pods=20", fits: "memory=1.1Gi"},
		"a bit more":                                 {available: some, fits: "cpu=4001m"},
		"the same amount in another form":            {available: some, fits: "cpu=4000m,memory=8589934592", want: "cpu=4000m,memory=8589934592,pods=20"},
		"a resource that there is none of":           {available: some, fits: "nvidia.com/gpu=1"},
		"a resource that the class does not have":    {available: some, fits: "example.com/fpga=1"},
		"only a device":                              {available: "cpu=4,memory=8Gi,pods=20,nvidia.com/gpu=2", fits: "nvidia.com/gpu=1", want: "cpu=4,memory=8Gi,nvidia.com/gpu=1,pods=20"},
		"a default that is there is left to the class": {
			available: some, defaults: "pods=10", fits: "cpu=2,memory=4Gi", want: "cpu=2,memory=4Gi",
		},
		"a default that is not there is replaced": {
			available: some, defaults: "pods=110", fits: "cpu=2,memory=4Gi", want: "cpu=2,memory=4Gi,pods=20",
		},
		"a default that the node does without is left to the class": {
			available: some, defaults: "nvidia.com/gpu=1", want: "cpu=4,memory=8Gi,pods=20",
		},
		"no cpu":                         {available: "cpu=0,memory=8Gi,pods=20"},
		"no cpu, but a part":             {available: "cpu=0,memory=8Gi,pods=20", fits: "memory=1Gi"},
		"no pods":                        {available: "cpu=4,memory=8Gi"},
		"a default of 0 pods":            {available: some, defaults: "pods=0", fits: "cpu=2,memory=4Gi"},
		"an Offer that expired":          {available: some, modify: func(e *rest.FederationOffer) { e.Expired = true }},
		"a consumer that is cordoned":    {available: some, modify: func(e *rest.FederationOffer) { e.Reason = v1alpha1.CatalogCordoned }},
		"a reason that nobody has heard": {available: some, modify: func(e *rest.FederationOffer) { e.Reason = "Sure" }},
	} {
		t.Run(name, func(t *testing.T) {
			e := rest.FederationOffer{OfferStatus: v1alpha1.OfferStatus{Available: quantities(t, tc.available), Reason: v1alpha1.CatalogAvailable}}
			if tc.defaults != "" {
				e.Defaults = quantities(t, tc.defaults)
			}
			if tc.modify != nil {
				tc.modify(&e)
			}
			fits, err := ParseAmounts(tc.fits)
			test.Must(t, err)
			asked := amounts(fits)
			got, ok := request(&e, fits, 1)
			if ok != (tc.want != "") || ok && amounts(got) != tc.want {
				t.Errorf("got %v, %s; want %s", ok, amounts(got), tc.want)
			}
			if amounts(fits) != asked || amounts(e.Available) != amounts(quantities(t, tc.available)) {
				t.Error("it changes its arguments")
			}
		})
	}
}

// A provider may leave every field out.
func TestAnOfferWithoutAmountsHasNoCommand(t *testing.T) {
	read, err := readFrom(t, object(t, "gold", func(s map[string]any) { delete(s, "available"); delete(s, "defaults") }))
	test.Must(t, err)
	providers := []rest.FederationProvider{{ClusterID: "milan", Offers: read.Offers}}
	new(Query).Select(providers)
	if offers := providers[0].Offers; len(offers) != 1 || offers[0].Command != "" {
		t.Errorf("got %+v", offers)
	}
}

func TestAmountsThatNoSliceCouldAskForAreRefused(t *testing.T) {
	for text, want := range map[string]string{
		"cpu":              `"cpu" is not an amount`,
		"cpu=":             `"" is not an amount of cpu above 0`,
		"cpu=0":            `"0" is not an amount of cpu above 0`,
		"cpu=-1":           `"-1" is not an amount of cpu above 0`,
		"cpu=4,cpu=2":      "cpu is there twice",
		"memory=1.5":       `"1.5" is not an amount of memory above 0`,
		"cpu=1e999999999":  `"1e999999999" is not an amount of cpu above 0`,
		"mem=8Gi":          "write memory",
		"=4":               `"" is not the name of a resource`,
		"cpu=4,":           `"" is not an amount`,
		"cpu=4;memory=8Gi": `"4;memory=8Gi" is not an amount of cpu above 0`,
		"a b/c=1":          `"a b/c" is not the name of a resource`,
	} {
		_, err := ParseAmounts(text)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", text, err, want)
		}
	}
}

func TestOnlyWhatFitsIsKept(t *testing.T) {
	var items []any
	for _, o := range operatortest.ProviderOffers(noon) {
		items = append(items, o)
	}
	for fits, want := range map[string]string{"": "gold silver spot ", "cpu=2": "gold silver ", "cpu=3": "gold ", "cpu=8": ""} {
		read, err := readFrom(t, items...)
		test.Must(t, err)
		providers := []rest.FederationProvider{{ClusterID: "milan", Offers: read.Offers}}
		wanted, err := ParseAmounts(fits)
		test.Must(t, err)
		found := Fit(providers, wanted, 0, Liqoctl{})
		got := ""
		for _, o := range providers[0].Offers {
			got += o.Class + " "
		}
		if got != want || found != (want != "") {
			t.Errorf("%s: got %s, %v; want %s", fits, got, found, want)
		}
	}
}

func TestTheNodesAreCountedThatHaveRoomForOnePod(t *testing.T) {
	shapes := []v1alpha1.NodeShape{
		{Nodes: 2, Free: quantities(t, "cpu=20,memory=192Gi,nvidia.com/gpu=4")}, {Nodes: 7, Free: quantities(t, "cpu=28,memory=64Gi")},
		{Nodes: 1, Free: quantities(t, "cpu=8,memory=64Gi,nvidia.com/gpu=1")},
	}
	largest := quantities(t, "cpu=23500m,memory=200Gi,nvidia.com/gpu=4,pods=90")
	for fits, want := range map[string]*int{
		"":                         nil,
		"cpu=8,memory=64Gi":        new(10),
		"cpu=8,pods=500":           new(10),
		"nvidia.com/gpu=1":         new(3),
		"nvidia.com/gpu=4,cpu=20":  new(2),
		"nvidia.com/gpu=4,cpu=23":  new(1), // The largest pod is not rounded.
		"nvidia.com/gpu=4,cpu=24":  new(0),
		"nvidia.com/gpu=1,cpu=28":  new(0),
		"cpu=1,example.com/none=1": new(0),
	} {
		wanted, err := ParseAmounts(fits)
		test.Must(t, err)
		e := rest.FederationOffer{OfferStatus: v1alpha1.OfferStatus{Shapes: shapes, LargestPod: largest}}
		if diff := cmp.Diff(want, fitNodes(&e, wanted)); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", fits, diff)
		}
		e.Shapes = nil
		if got := fitNodes(&e, wanted); got != nil {
			t.Errorf("%s: without shapes %d nodes", fits, *got)
		}
	}
}

// Of what is not asked for, the first of several slices leaves enough for the others.
func TestSeveralSlicesShareWhatTheyDoNotAskFor(t *testing.T) {
	for name, tc := range map[string]struct {
		modify func(*rest.FederationOffer)
		want   string
	}{
		"a pool":                             {func(*rest.FederationOffer) {}, "cpu=2500m,nvidia.com/gpu=1,pods=5"},
		"a default that leaves enough":       {func(o *rest.FederationOffer) { o.Defaults = quantities(t, "pods=5") }, "cpu=2500m,nvidia.com/gpu=1"},
		"a default that leaves not enough":   {func(o *rest.FederationOffer) { o.Defaults = quantities(t, "pods=6") }, "cpu=2500m,nvidia.com/gpu=1,pods=5"},
		"single nodes":                       {func(o *rest.FederationOffer) { o.Fit = v1alpha1.FitNode }, "cpu=10,nvidia.com/gpu=1,pods=20"},
		"single nodes, and a ceiling of all": {func(o *rest.FederationOffer) { o.Fit, o.Ceiling = v1alpha1.FitNode, quantities(t, "cpu=18,pods=400") }, "cpu=4,nvidia.com/gpu=1,pods=20"},
		"a ceiling below what is held":       {func(o *rest.FederationOffer) { o.Fit, o.Ceiling = v1alpha1.FitNode, quantities(t, "cpu=1") }, "cpu=2500m,nvidia.com/gpu=1,pods=20"},
		"less than a share for each":         {func(o *rest.FederationOffer) { o.Available["pods"] = quantities(t, "pods=3")["pods"] }, ""},
	} {
		e := rest.FederationOffer{OfferStatus: v1alpha1.OfferStatus{
			Available: quantities(t, "cpu=10,memory=8Gi,pods=20,nvidia.com/gpu=8"), Held: quantities(t, "cpu=2"), Defaults: quantities(t, "memory=1Gi"),
			Reason: v1alpha1.CatalogAvailable,
		}}
		defaults := e.Defaults
		tc.modify(&e)
		maps.Copy(e.Defaults, defaults)
		got, ok := request(&e, quantities(t, "nvidia.com/gpu=1"), 4)
		if ok != (tc.want != "") || ok && amounts(got) != tc.want {
			t.Errorf("%s: got %v, %s; want %s", name, ok, amounts(got), tc.want)
		}
	}
}

func TestThePoolOrTheCeilingBoundsHowManySlicesAreGrantedTogether(t *testing.T) {
	e := rest.FederationOffer{OfferStatus: v1alpha1.OfferStatus{
		Available: quantities(t, "cpu=10,nvidia.com/gpu=8"), Ceiling: quantities(t, "cpu=64,nvidia.com/gpu=16"), Held: quantities(t, "nvidia.com/gpu=3"),
	}}
	for fits, want := range map[string][2]int64{
		"nvidia.com/gpu=4": {2, 3}, "nvidia.com/gpu=1,cpu=3": {3, 13}, "cpu=11": {0, 5},
	} {
		for i, fit := range []v1alpha1.SliceFit{"", v1alpha1.FitNode} {
			e.Fit = fit
			if got := Together(&e, quantities(t, fits)); got != want[i] {
				t.Errorf("%s of fit %q: %d, want %d", fits, fit, got, want[i])
			}
		}
	}
}

func TestSeveralNodesHaveACommandEach(t *testing.T) {
	read, err := readFrom(t, operatortest.ProviderOffers(noon)[0])
	test.Must(t, err)
	one, several := slices.Clone(read.Offers), slices.Clone(read.Offers)
	Fit([]rest.FederationProvider{{ClusterID: "milan", Offers: one}}, quantities(t, "cpu=1,memory=1Gi,pods=1"), 0, Liqoctl{})
	several[0].Command = one[0].Command // As the operator answers.
	Fit([]rest.FederationProvider{{ClusterID: "milan", Offers: several}}, quantities(t, "cpu=1,memory=1Gi,pods=1"), 3, Liqoctl{})
	if got := several[0]; got.Command != "" || len(got.Commands) != 3 || got.Commands[0] != one[0].Command {
		t.Errorf("got %q and %q, want three of which the first is %q", got.Command, got.Commands, one[0].Command)
	}
}
