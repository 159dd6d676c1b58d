package slices

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"proffer.dev/proffer/test/slices/lab"
)

// TestWhatTheCatalogAsksForIsGranted runs the plugin on consumers, and creates the ResourceSlices that
// its commands create.
func TestWhatTheCatalogAsksForIsGranted(t *testing.T) {
	all := amounts{"cpu": "8", "memory": "16Gi", "pods": "40"}
	newPolicy(t, "cataloged", `{class: gold, offer: {fixed: {cpu: "8", memory: 16Gi, pods: "40"}}, catalog: {title: Gold nodes}}`)
	published := publish(t, "gold", all, rome, oslo)

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
			if published {
				awaitAvailable(t, tc.consumer, all)
			}
			e := awaitEntry(t, tc.consumer, tc.args...)
			if err := differ("available", all, e.Available); err != nil {
				t.Fatal(err)
			}
			s, class, request := parseCommand(t, tc.consumer, e.Command)
			t.Cleanup(func() { s.remove(t) })
			if err := s.create(t.Context(), class, request); err != nil {
				t.Fatal(err)
			}
			s.awaitGrant(t, granted("cataloged", tc.want))
			if published && len(tc.args) == 0 {
				awaitAvailable(t, tc.consumer, amounts{"cpu": "0", "memory": "0", "pods": "0"})
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
	eventually(t, consumer.ID+" reads its catalog", func(ctx context.Context) (err error) {
		e, err = readEntry(ctx, consumer, args...)
		return err
	})
	return e
}

// awaitAvailable waits until the operator has published these amounts.
func awaitAvailable(t *testing.T, consumer *lab.Cluster, want amounts) {
	t.Helper()
	eventually(t, "the Offer to "+consumer.ID+" is written again", func(ctx context.Context) error {
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
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range regexp.MustCompile(pattern).FindAllStringSubmatch(text, -1) {
			all[match[1]] = true
		}
	}
	return slices.Sorted(maps.Keys(all))
}

// publish has Offers of a class published to consumers until the end of the test: by the operator if
// it can, which is the result, and else by hand.
func publish(t *testing.T, class string, available amounts, to ...*lab.Cluster) (byOperator bool) {
	t.Helper()
	if _, can := provider.Manifest("components/catalog/kustomization.yaml"); can {
		t.Cleanup(func() {
			ctx := context.WithoutCancel(t.Context())
			_, err := provider.Kubectl(ctx, "", "delete", "--ignore-not-found", "customresourcedefinition/offers.proffer.dev",
				"clusterrolebinding/proffer-catalog", "clusterrole/proffer-catalog", "clusterrole/proffer-catalog-reader")
			if err := errors.Join(err, clusters.Install(ctx), stopOperator(ctx), startOperator(ctx)); err != nil {
				t.Error(err)
			}
		})
		if err := errors.Join(clusters.Install(t.Context(), "catalog"), stopOperator(t.Context()), startOperator(t.Context())); err != nil {
			t.Fatal(err)
		}
		return true
	}
	crd, _ := provider.Manifest("crd/bases/proffer.dev_offers.yaml")
	kubectl(t, "", "apply", "-f", crd)
	kubectl(t, "", "wait", "--for=condition=Established", "-f", crd)
	for _, consumer := range to {
		object := fmt.Sprintf(byHand, lab.TenantNamespace(consumer.ID), consumer.ID, class,
			time.Now().UTC().Format(time.RFC3339), time.Now().Add(15*time.Minute).UTC().Format(time.RFC3339),
			available["cpu"], available["memory"], available["pods"])
		kubectl(t, object, "apply", "-f", "-")
		t.Cleanup(func() { kubectl(t, object, "delete", "-f", "-") })
	}
	return false
}

// byHand is what the operator would write.
const byHand = `
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {namespace: %[1]s, name: offers-reader}
rules:
- {apiGroups: [proffer.dev], resources: [offers], verbs: [get, list, watch]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {namespace: %[1]s, name: offers-reader}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: offers-reader}
subjects:
- {apiGroup: rbac.authorization.k8s.io, kind: User, name: %[2]s}
---
apiVersion: proffer.dev/v1alpha1
kind: Offer
metadata: {namespace: %[1]s, name: %[3]s}
status:
  clusterID: %[2]s
  class: %[3]s
  title: Gold nodes
  available: {cpu: "%[6]s", memory: %[7]s, pods: "%[8]s"}
  onExcess: Cap
  reason: Available
  observedTime: "%[4]s"
  validUntil: "%[5]s"
`

// kubectl runs kubectl on the provider.
func kubectl(t *testing.T, input string, args ...string) {
	t.Helper()
	if _, err := provider.Kubectl(context.WithoutCancel(t.Context()), input, args...); err != nil {
		t.Error(err)
	}
}
