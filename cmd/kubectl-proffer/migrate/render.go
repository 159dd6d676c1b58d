package migrate

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"text/template"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	"sigs.k8s.io/yaml"

	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/cmd/kubectl-proffer/internal/output"
)

// commentWidth is the width of comments, in columns.
const commentWidth = 100

// kept describes the default of reclaim.
const kept = "An offer does not fall below what the consumer's pods request until they end, " +
	"unless you add `reclaim: Evict`."

// differences describes how the policy's offers differ, for each plugin.
var differences = map[plugin][]string{
	fixedResources: {
		kept,
	},
	nodeLabelsResources: {
		"What the pods of a consumer request is part of its own offer. " +
			"The plugin subtracts it, so the consumer's node shrinks as it fills.",
		"Pods that run are subtracted from `pods`. The plugin never subtracts them.",
		"Pods that ended are no longer subtracted. A plugin that has run for a while may offer less.",
		kept,
		"Without free capacity the offer is 0. The plugin may offer a negative amount.",
	},
}

// manifest is the policy of a plugin's settings, with comments.
var manifest = template.Must(template.New("").
	Funcs(template.FuncMap{"comment": comment, "scalar": scalar, "oneLine": oneLine}).
	Parse(`{{comment "" .Offers}}
{{- range .Lists}}{{if .Items}}#
# {{.Title}}
{{range .Items}}{{comment "- " .}}{{end}}{{end}}{{end -}}
apiVersion: {{.APIVersion}}
kind: ResourcePolicy
metadata:
  name: {{scalar .Name}}
spec:
  offer:
{{- if .OfNodes}}
    nodes:
      # For a build of the plugin that does not subtract pods, add ` + "`count: Allocatable`" + `.
      selector:
        matchLabels:
{{- range $name, $value := .Values}}
          {{scalar $name}}: {{scalar $value}} # {{oneLine (index $.From $name)}}
{{- end}}
      # The plugin counts nodes whatever their taints. To count only nodes that consumers' pods can
      # use, list the taints that these pods tolerate.
      tolerations:
      - operator: Exists
  # The plugin reports each change. The default, 5, saves most updates of consumers.
  updateThresholdPercent: 0
{{- else}}
    fixed:
{{- range $name, $value := .Values}}
      {{scalar $name}}: {{scalar $value}} # {{oneLine (index $.From $name)}}
{{- end}}
{{- end}}
`))

// list is a list in a comment.
type list struct {
	Title string
	Items []string
}

// render writes the policy of the plugin's settings.
func render(
	d *appsv1.Deployment, container *corev1.Container, p plugin, s *settings, name string, warnings []string,
) ([]byte, error) {
	var out bytes.Buffer
	err := manifest.Execute(&out, map[string]any{
		"Offers": fmt.Sprintf("What %s offers as Deployment %s, container %s%s.",
			p, klog.KObj(d), container.Name, imageOf(container)),
		"Lists":      []list{{"Warnings:", warnings}, {"What is different:", differences[p]}},
		"APIVersion": v1alpha1.GroupVersion, "Name": name,
		"OfNodes": p == nodeLabelsResources, "Values": s.pairs.values, "From": s.pairs.from,
	})
	return out.Bytes(), err
}

// comment returns sentences as the lines of a comment, wrapped behind the bullet.
func comment(bullet, text string) string {
	return "# " + strings.Join(output.Hanging(bullet, text, commentWidth-len("# ")), "\n# ") + "\n"
}

func imageOf(c *corev1.Container) string {
	if c.Image == "" {
		return ", without an image"
	}
	return ", image " + oneLine(c.Image)
}

// scalar returns a string as YAML that is a string again when it is read.
func scalar(text string) string {
	out, err := yaml.Marshal(text)
	plain := strings.TrimSuffix(string(out), "\n")
	if err != nil || strings.Contains(plain, "\n") {
		return strconv.QuoteToASCII(text)
	}
	return plain
}

// oneLine returns a text that cannot end a comment.
func oneLine(text string) string {
	return strings.Join(strings.Fields(text), " ")
}
