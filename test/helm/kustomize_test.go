package helm

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	"proffer.dev/proffer/test"
)

// clusterID is the ID of the cluster in the configuration file of overlays.
const clusterID = "milan"

// generated generates the ConfigMap that the component accounting mounts, as docs/how-to/record-in-a-database.md shows.
// The labels are those of make deploy.
const generated = `configMapGenerator:
- name: proffer-configuration
  namespace: proffer-system
  files: [config.yaml]
  options:
    labels:
      app.kubernetes.io/name: proffer
      app.kubernetes.io/component: configuration
      app.kubernetes.io/part-of: proffer
      app.kubernetes.io/managed-by: kustomize
`

// writeConfiguration writes the configuration file of the component accounting, with an ID of the
// cluster, into an overlay.
func writeConfiguration(t *testing.T, dir string) {
	t.Helper()
	text, err := os.ReadFile(root + "/config/components/accounting/config.yaml")
	test.Must(t, err)
	test.Must(t, os.WriteFile(dir+"/config.yaml", text, 0o600))
	edit(t, dir+"/config.yaml", `clusterID: ""`, "clusterID: "+clusterID)
}

// overlay renders an overlay of parts of config, such as default or components/flat, with the image
// of withImage and these lines in its kustomization.
func overlay(t *testing.T, lines string, parts ...string) objects {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	test.Must(t, err)
	config, err := filepath.Abs(root + "/config")
	test.Must(t, err)
	up, err := filepath.Rel(dir, config)
	test.Must(t, err)
	var resources, components strings.Builder
	for _, part := range parts {
		list := &resources
		if strings.HasPrefix(part, "components/") {
			list = &components
		}
		fmt.Fprintf(list, "- %s/%s\n", up, part)
	}
	text := lines + "resources:\n" + resources.String()
	if components.Len() > 0 {
		text += "components:\n" + components.String()
	}
	if slices.Contains(parts, "components/accounting") {
		writeConfiguration(t, dir)
		text += generated
	}
	if !strings.Contains(lines, "images:") {
		text += "images: [{name: controller, newName: registry.example.com/proffer, newTag: v0.1.0}]\n"
	}
	test.Must(t, os.WriteFile(filepath.Join(dir, "kustomization.yaml"), []byte(text), 0o600))
	rendered, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), dir)
	test.Must(t, err)
	all := objects{}
	for _, resource := range rendered.Resources() {
		// AsYAML would add empty lines to folded text.
		var object map[string]any
		test.Must(t, resource.YNode().Decode(&object))
		text, err := json.Marshal(object)
		test.Must(t, err)
		u := &unstructured.Unstructured{}
		test.Must(t, u.UnmarshalJSON(text))
		all[key(u)] = u
	}
	return all
}
