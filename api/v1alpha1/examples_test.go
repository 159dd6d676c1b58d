package v1alpha1_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"proffer.dev/proffer/test"
)

var (
	samplesDirectory = filepath.Join("..", "..", "config", "samples")
	reference        = filepath.Join("..", "..", "docs", "reference", "amounts.md")
)

func TestEverySampleIsAccepted(t *testing.T) {
	for _, file := range samples(t) {
		t.Run(filepath.Base(file), func(t *testing.T) {
			text := test.Read(t, file)
			create(t, object(t, text))
		})
	}
}

func TestTheSamplesApplyAsAWhole(t *testing.T) {
	if out := kubectl(t, "apply", "--dry-run=server", "--validate=strict", "-k",
		samplesDirectory); len(samples(t)) != strings.Count(out, "created (server dry run)") {
		t.Errorf("got:\n%s", out)
	}
}

func TestTheKustomizationListsEverySample(t *testing.T) {
	text := test.Read(t, filepath.Join(samplesDirectory, "kustomization.yaml"))
	var kustomization struct {
		Resources []string `json:"resources"`
	}
	test.Must(t, yaml.UnmarshalStrict([]byte(text), &kustomization))
	var want []string
	for _, file := range samples(t) {
		want = append(want, filepath.Base(file))
	}
	if diff := cmp.Diff(want, kustomization.Resources); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func samples(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(samplesDirectory, "*_resourcepolicy_*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no samples: %v", err)
	}
	slices.Sort(files)
	return files
}

// pages returns the texts of the pages of docs that have examples.
func pages(t *testing.T) (all []string) {
	t.Helper()
	for _, kind := range []string{"tutorials", "how-to", "explanation", "reference"} {
		files, err := filepath.Glob(filepath.Join("..", "..", "docs", kind, "*.md"))
		test.Must(t, err)
		for _, file := range files {
			all = append(all, test.Read(t, file))
		}
	}
	return all
}

// A block that begins with "spec:" is a part of a policy. The test completes it to a whole object. Blocks in a list are
// indented: test/deploy applies those.
func TestEveryExampleOfAPolicyIsAccepted(t *testing.T) {
	n := 0
	for _, block := range test.Blocks(strings.Join(pages(t), "\n"), "yaml") {
		example := block.Text
		if strings.HasPrefix(example, "spec:") {
			example = "apiVersion: proffer.dev/v1alpha1\nkind: ResourcePolicy\nmetadata: {name: example}\n" + example
			if !strings.Contains(example, "\n  offer:") {
				example += "  " + fixedOffer + "\n"
			}
		}
		if !strings.Contains(example, "kind: ResourcePolicy\n") || strings.Contains(example, "\n---\n") {
			continue
		}
		n++
		if err := api.Create(t.Context(), object(t, example), client.DryRunAll, strict); err != nil {
			t.Errorf("%v:\n%s", err, block.Text)
		}
	}
	if n < 8 {
		t.Errorf("%d examples found, want at least 8", n)
	}
}
