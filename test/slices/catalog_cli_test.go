package slices

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"proffer.dev/proffer/test/slices/lab"
)

// TestWhatTheCatalogAsksForIsGranted runs the plugin on consumers, and creates the ResourceSlices that
// its commands create.
func TestWhatTheCatalogAsksForIsGranted(t *testing.T) {
	all := amounts{"cpu": "8", "memory": "16Gi", "pods": "40"}
	newPolicy(t, "cataloged", `{class: gold, offer: {fixed: {cpu: "8", memory: 16Gi, pods: "40"}}, catalog: {title: Gold nodes}}`)
	withCatalog(t)

	for _, tc := range []struct {
		consumer *lab.Cluster
		args     []string
		want     amounts
	}{
		{rome, nil, all},
		{oslo, []string{"--fits=cpu=2,memory=4Gi"}, amounts{"cpu": "2", "memory": "4Gi", "pods": "40"}},
		{oslo, []string{"--fits=cpu=1,memory=1Gi,pods=3", "--provider=" + provider.ID}, amounts{"cpu": "1", "memory": "1Gi", "pods": "3"}},
	} {
		t.Run(tc.consumer.ID+" asks with "+strings.Join(tc.args, " "), func(t *testing.T) {
			awaitShown(t, tc.consumer, all)
			e := awaitEntry(t, tc.consumer, tc.args...)
			lab.Must(t, differ("available", all, e.Available))
			s, class, request := parseCommand(t, tc.consumer, e.Command)
			t.Cleanup(func() { s.remove(t) })
			lab.Must(t, s.create(t.Context(), class, request))
			s.awaitGrant(t, granted("cataloged", tc.want))
			if len(tc.args) == 0 {
				awaitShown(t, tc.consumer, amounts{"cpu": "0", "memory": "0", "pods": "0"})
			}
		})
	}
	stdout, stderr, status, err := rome.Proffer(t.Context(), "catalog", "--fits=cpu=9")
	if want := "Nothing fits cpu=9.\n"; err != nil || status != 2 || stdout != "" || stderr != want {
		t.Errorf("%v %d %s%s", err, status, stdout, stderr)
	}
}

// An entry is what the plugin shows of an Offer.
type entry struct {
	Class     string
	Title     string
	Available amounts
	Command   string
}

// awaitEntry waits until the catalog has one entry, and returns it.
func awaitEntry(t *testing.T, consumer *lab.Cluster, args ...string) (e entry) {
	t.Helper()
	lab.Eventually(t, consumer.ID+" reads its catalog", func(ctx context.Context) (err error) {
		e, err = readEntry(ctx, consumer, args...)
		return err
	})
	return e
}

// awaitShown waits until the plugin shows these amounts.
func awaitShown(t *testing.T, consumer *lab.Cluster, want amounts) {
	t.Helper()
	lab.Eventually(t, "the Offer to "+consumer.ID+" is written again", func(ctx context.Context) error {
		e, err := readEntry(ctx, consumer)
		if err != nil {
			return err
		}
		if asks := e.Command != ""; asks != (want["cpu"] != "0") {
			return fmt.Errorf("the command is %q", e.Command)
		}
		return differ("available", want, e.Available)
	})
}

func readEntry(ctx context.Context, consumer *lab.Cluster, args ...string) (entry, error) {
	stdout, stderr, status, err := consumer.Proffer(ctx, append([]string{"catalog", "-o", "json"}, args...)...)
	if err != nil || status != 0 {
		return entry{}, fmt.Errorf("%w: exit status %d: %s", err, status, stderr)
	}
	var catalog struct {
		Providers []struct {
			ClusterID string
			Offers    []entry
		}
	}
	if err := json.Unmarshal([]byte(stdout), &catalog); err != nil {
		return entry{}, err
	}
	if len(catalog.Providers) != 1 || catalog.Providers[0].ClusterID != provider.ID || len(catalog.Providers[0].Offers) != 1 {
		return entry{}, fmt.Errorf("the catalog is %s", stdout)
	}
	e := catalog.Providers[0].Offers[0]
	if e.Class != "gold" || e.Title != "Gold nodes" {
		return e, fmt.Errorf("the entry is %+v", e)
	}
	return e, nil
}

// parseCommand returns the slice that a command of liqoctl creates. Each flag has to be one of
// liqoctl's, by its source; what liqoctl makes of the flags is what slice.create does.
func parseCommand(t *testing.T, consumer *lab.Cluster, command string) (s slice, class string, request amounts) {
	t.Helper()
	words := strings.Fields(command)
	if len(words)%2 != 0 || len(words) < 4 || !slices.Equal(words[:3], []string{"liqoctl", "create", "resourceslice"}) || strings.ContainsAny(command, `'"\`) {
		t.Fatalf("%s is no command that creates a slice", command)
	}
	s, request = slice{consumer, words[3]}, amounts{}
	flags := liqoctlFlags(t)
	for i := 4; i < len(words); i += 2 {
		flag, value := strings.TrimPrefix(words[i], "--"), words[i+1]
		if !slices.Contains(flags, flag) {
			t.Errorf("liqoctl has no flag %s", words[i])
		}
		switch flag {
		case "remote-cluster-id":
			if value != provider.ID {
				t.Errorf("the slice is for %s", value)
			}
		case "class":
			class = value
		case "cpu", "memory", "pods":
			request[flag] = value
		case "kubeconfig":
		default:
			t.Errorf("%s is not needed", words[i])
		}
	}
	return s, class, request
}

// liqoctlFlags returns the flags of liqoctl create resourceslice.
func liqoctlFlags(t *testing.T) []string {
	t.Helper()
	all := map[string]bool{}
	for file, pattern := range map[string]string{
		"pkg/liqoctl/rest/resourceslice/create.go": `&o\.\w+, "([a-z-]+)"`,
		"pkg/liqoctl/factory/factory.go":           `flag\.Name != "([a-z]+)"`,
	} {
		text, err := provider.Source(file)
		lab.Must(t, err)
		for _, match := range regexp.MustCompile(pattern).FindAllStringSubmatch(text, -1) {
			all[match[1]] = true
		}
	}
	return slices.Sorted(maps.Keys(all))
}
