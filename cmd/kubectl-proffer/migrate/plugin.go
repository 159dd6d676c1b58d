package migrate

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// plugin is the name of a resource plugin: the name of its image, without registry and tag.
type plugin string

const (
	fixedResources      plugin = "fixed-resources"
	nodeLabelsResources plugin = "node-labels-resources"
	// perNodeResources is recognised in order to say that it cannot be converted.
	perNodeResources plugin = "per-node-resources"
)

// ownFlags are the flags that only one of the plugins has.
var ownFlags = map[string]plugin{
	"resource":    fixedResources,
	"node-label":  nodeLabelsResources,
	"ignore-node": perNodeResources,
}

// findPlugin returns the container that runs a plugin, by its image, or else by its arguments,
// because the plugins are also built and pushed under other names. If name is not empty, only the
// container of this name is looked at.
func findPlugin(pod *corev1.PodSpec, name string) (found plugin, in *corev1.Container, err error) {
	var names []string
	for i := range pod.Containers {
		c := &pod.Containers[i]
		names = append(names, c.Name)
		if name != "" && c.Name != name {
			continue
		}
		p := recognise(c)
		if p == "" {
			continue
		}
		if in != nil {
			return "", nil, fmt.Errorf("the containers %s and %s both run a plugin: name one with --container", in.Name, c.Name)
		}
		found, in = p, c
	}
	switch {
	case in != nil && found == perNodeResources:
		return "", nil, errors.New("the plugin per-node-resources cannot be converted: " +
			"it offers each node as a pool of its own; write one ResourcePolicy with a class for each node")
	case in != nil:
		return found, in, nil
	case name != "" && !slices.Contains(names, name):
		return "", nil, fmt.Errorf("there is no container %s: name one of %s", name, strings.Join(names, ", "))
	}
	return "", nil, fmt.Errorf("no container runs %s or %s: "+
		"neither the images nor the arguments are those of a plugin", fixedResources, nodeLabelsResources)
}

// recognise returns the plugin that a container runs, and "" for none.
func recognise(c *corev1.Container) plugin {
	switch p := plugin(imageName(c.Image)); p {
	case fixedResources, nodeLabelsResources, perNodeResources:
		return p
	}
	for _, argument := range arguments(c) {
		name, _, _ := strings.Cut(argument, "=")
		if name, isFlag := strings.CutPrefix(name, "--"); isFlag {
			if p := ownFlags[name]; p != "" {
				return p
			}
		}
	}
	return ""
}

// imageName returns the last part of the path of an image, without tag and digest.
func imageName(image string) string {
	image, _, _ = strings.Cut(image, "@")
	image = image[strings.LastIndex(image, "/")+1:]
	image, _, _ = strings.Cut(image, ":")
	return image
}

// arguments returns what the program of the container is started with. A command replaces the
// entrypoint of the image, and its first word is the program.
func arguments(c *corev1.Container) []string {
	return slices.Concat(c.Command[min(1, len(c.Command)):], c.Args)
}
