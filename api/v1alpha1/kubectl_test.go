package v1alpha1_test

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"proffer.dev/proffer/test"
)

// refusedInOtherWords matches a row of the table of values that Kubernetes refuses before it
// evaluates any rule: the value, the message of kubectl, and the correct value.
var refusedInOtherWords = regexp.MustCompile("(?m)^\\| `([a-z]+: \\{.*)` \\| `(.*)` \\| `([a-z]+: \\{.*)` \\|$")

func TestTheReferenceQuotesTheMessagesOfKubectl(t *testing.T) {
	text := test.Read(t, reference)
	rows := refusedInOtherWords.FindAllStringSubmatch(text, -1)
	if len(rows) < 5 {
		t.Fatalf("only %d rows found", len(rows))
	}
	kubeconfig := cluster.KubeconfigFile(t)
	for _, row := range rows {
		written, said, right := row[1], strings.ReplaceAll(row[2], `\|`, "|"), row[3]
		manifest := "apiVersion: proffer.dev/v1alpha1\nkind: ResourcePolicy\nmetadata: {name: standard}\nspec: {offer: {" + written + "}}\n"
		_, err := test.Kubectl(t.Context(), filepath.Join(cluster.Assets, "kubectl"), kubeconfig, manifest,
			"apply", "--dry-run=server", "-f", "-")
		if err == nil || !strings.Contains(err.Error(), said) {
			t.Errorf("%s: the reference says %s, and kubectl: %v", written, said, err)
		}
		if err := api.Create(t.Context(), policy(t, "standard", "offer: {"+right+"}"), client.DryRunAll,
			strict); err != nil {
			t.Errorf("%s, as the reference advises: %v", right, err)
		}
	}
}
