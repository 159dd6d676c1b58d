package catalog

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/rand"

	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/cmd/kubectl-proffer/internal/operatorclient"
)

const (
	// maxPrefix bounds the readable part of the name of a slice, which also names a Node and is part of
	// the common name of a certificate.
	maxPrefix = 40
	// suffixLength is the length of the suffix of generateName in Kubernetes.
	suffixLength = 5
)

// liqoctl writes commands of liqoctl v1.2.0 for the cluster that the flags lead to.
type liqoctl struct {
	// flags locate the API server, as in --context NAME.
	flags []string
	// suffix makes the name of a slice unique: a slice of the same name would be changed, not added.
	suffix func() string
}

// liqoctlFor returns a liqoctl with those flags of the caller that liqoctl has too.
func liqoctlFor(f *operatorclient.Flags) liqoctl {
	l := liqoctl{suffix: func() string { return rand.String(suffixLength) }}
	for _, flag := range []struct {
		name  string
		value *string
	}{
		{"kubeconfig", f.Config.KubeConfig},
		{"context", f.Config.Context},
		{"cluster", f.Config.ClusterName},
		{"user", f.Config.AuthInfoName},
	} {
		if flag.value != nil && *flag.value != "" {
			l.flags = append(l.flags, "--"+flag.name, *flag.value)
		}
	}
	return l
}

// command returns the line that creates a ResourceSlice with these amounts.
func (l liqoctl) command(provider, class string, amounts v1alpha1.Quantities) string {
	prefix := provider + "-" + class
	prefix = strings.TrimRight(prefix[:min(len(prefix), maxPrefix)], "-")
	words := []string{
		"liqoctl", "create", "resourceslice", prefix + "-" + l.suffix(),
		"--remote-cluster-id", provider, "--class", class,
	}
	for _, name := range required {
		if q, ok := amounts[name]; ok {
			words = append(words, "--"+string(name), q.Text())
		}
	}
	for _, name := range slices.Sorted(maps.Keys(amounts)) {
		if q := amounts[name]; !slices.Contains(required, name) {
			words = append(words, "--resource", string(name)+"="+q.Text())
		}
	}
	words = append(words, l.flags...)
	for i, word := range words {
		words[i] = quoted(word)
	}
	return strings.Join(words, " ")
}

// plain are words that a shell takes as they are.
var plain = regexp.MustCompile(`^[A-Za-z0-9_./:=@%+,-]+$`)

// quoted returns a word for a POSIX shell.
func quoted(word string) string {
	if plain.MatchString(word) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
