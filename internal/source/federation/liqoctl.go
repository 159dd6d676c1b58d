package federation

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/rand"

	"proffer.dev/proffer/api/v1alpha1"
)

const (
	// maxPrefix bounds the readable part of the name of a slice, which also names a Node and is part of
	// the common name of a certificate.
	maxPrefix = 40
	// suffixLength is the length of the suffix of generateName in Kubernetes.
	suffixLength = 5
)

// Liqoctl writes commands of liqoctl v1.2.0.
type Liqoctl struct {
	// Flags locate the API server of this cluster, as in --context NAME.
	Flags []string
	// Suffix makes the name of a slice unique: a slice of the same name would be changed, not added.
	Suffix func() string
}

// NewLiqoctl returns a Liqoctl whose names end like those of generateName in Kubernetes.
func NewLiqoctl(flags ...string) Liqoctl {
	return Liqoctl{flags, func() string { return rand.String(suffixLength) }}
}

// CreateSlice returns the line that creates a ResourceSlice with these amounts.
func (l Liqoctl) CreateSlice(provider, class string, amounts v1alpha1.Quantities) string {
	prefix := provider + "-" + class
	prefix = strings.TrimRight(prefix[:min(len(prefix), maxPrefix)], "-")
	words := []string{
		"liqoctl", "create", "resourceslice", prefix + "-" + l.Suffix(),
		"--remote-cluster-id", provider, "--class", class,
	}
	for _, name := range Required {
		if q, ok := amounts[name]; ok {
			words = append(words, "--"+string(name), q.Text())
		}
	}
	for _, name := range slices.Sorted(maps.Keys(amounts)) {
		if q := amounts[name]; !slices.Contains(Required, name) {
			words = append(words, "--resource", string(name)+"="+q.Text())
		}
	}
	words = append(words, l.Flags...)
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
