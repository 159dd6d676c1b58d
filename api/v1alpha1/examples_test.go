package v1alpha1_test

import (
	"os"
	"path/filepath"
	"regexp"
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
	reference        = filepath.Join("..", "..", "docs", "resourcepolicy.md")
)

func TestEverySampleIsAccepted(t *testing.T) {
	for _, file := range samples(t) {
		t.Run(filepath.Base(file), func(t *testing.T) {
			text, err := os.ReadFile(file)
			test.Must(t, err)
			create(t, object(t, string(text)))
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
	text, err := os.ReadFile(filepath.Join(samplesDirectory, "kustomization.yaml"))
	test.Must(t, err)
	var kustomization struct {
		Resources []string `json:"resources"`
	}
	test.Must(t, yaml.UnmarshalStrict(text, &kustomization))
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

var yamlBlock = regexp.MustCompile("(?ms)^```yaml\n(.*?)^```$")

// A block that begins with "spec:" is a part of a policy. The test completes it to a whole object.
func TestEveryExampleOfTheReferenceIsAccepted(t *testing.T) {
	text, err := os.ReadFile(reference)
	test.Must(t, err)
	blocks := yamlBlock.FindAllStringSubmatch(string(text), -1)
	if len(blocks) < 10 {
		t.Fatalf("only %d examples found", len(blocks))
	}
	for _, block := range blocks {
		example := block[1]
		if strings.HasPrefix(example, "spec:") {
			example = "apiVersion: proffer.dev/v1alpha1\nkind: ResourcePolicy\nmetadata: {name: example}\n" + example
			if !strings.Contains(example, "\n  offer:") {
				example += "  " + fixedOffer + "\n"
			}
		}
		if err := api.Create(t.Context(), object(t, example), client.DryRunAll, strict); err != nil {
			t.Errorf("%v:\n%s", err, block[1])
		}
	}
}

func TestTheReferenceNamesEveryFieldAndReason(t *testing.T) {
	text, err := os.ReadFile(reference)
	test.Must(t, err)
	for _, name := range append(fieldNames(t), reasons...) {
		if !strings.Contains(string(text), "`"+name+"`") {
			t.Errorf("%s is not in %s", name, reference)
		}
	}
}
