package migrate

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

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

// manifest writes YAML with comments, line by line.
type manifest struct{ bytes.Buffer }

// line writes a line at a depth of so many fields.
func (m *manifest) line(depth int, text string) {
	m.WriteString(strings.Repeat("  ", depth) + text + "\n")
}

// comment writes sentences as one comment, wrapped behind the bullet.
func (m *manifest) comment(depth int, bullet, text string) {
	for _, line := range output.Hanging(bullet, text, commentWidth-2*depth-len("# ")) {
		m.line(depth, "# "+line)
	}
}

func (m *manifest) list(title string, items []string) {
	if len(items) == 0 {
		return
	}
	m.line(0, "#")
	m.line(0, "# "+title)
	for _, item := range items {
		m.comment(0, "- ", item)
	}
}

// render writes the policy of the plugin's settings.
func render(
	d *appsv1.Deployment, container *corev1.Container, p plugin, s *settings, name string, warnings []string,
) []byte {
	m := &manifest{}
	m.comment(0, "", fmt.Sprintf("What %s offers as Deployment %s, container %s%s.",
		p, klog.KObj(d), container.Name, imageOf(container)))
	m.list("Warnings:", warnings)
	m.list("What is different:", differences[p])
	m.line(0, "apiVersion: "+v1alpha1.GroupVersion.String())
	m.line(0, "kind: ResourcePolicy")
	m.line(0, "metadata:")
	m.line(1, "name: "+scalar(name))
	m.line(0, "spec:")
	m.line(1, "offer:")
	switch p {
	case nodeLabelsResources:
		m.nodes(s)
	default:
		m.line(2, "fixed:")
		m.pairs(3, s.pairs)
	}
	return m.Bytes()
}

// nodes writes the offer of node-labels-resources, with all of what the plugin leaves to defaults.
func (m *manifest) nodes(s *settings) {
	m.line(2, "nodes:")
	m.comment(3, "", "For a build of the plugin that does not subtract pods, add `count: Allocatable`.")
	m.line(3, "selector:")
	m.line(4, "matchLabels:")
	m.pairs(5, s.pairs)
	m.comment(3, "", "The plugin counts nodes whatever their taints. "+
		"To count only nodes that consumers' pods can use, list the taints that these pods tolerate.")
	m.line(3, "tolerations:")
	m.line(3, "- operator: Exists")
	m.comment(1, "", "The plugin reports each change. The default, 5, saves most updates of consumers.")
	m.line(1, "updateThresholdPercent: 0")
}

func (m *manifest) pairs(depth int, p *pairs) {
	for _, name := range slices.Sorted(maps.Keys(p.values)) {
		m.line(depth, fmt.Sprintf("%s: %s # %s", scalar(name), scalar(p.values[name]), oneLine(p.from[name])))
	}
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
