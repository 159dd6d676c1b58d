package federation

import (
	"crypto/sha256"
	"encoding/base32"
	"maps"
	"regexp"
	"slices"
	"strings"

	"proffer.dev/proffer/api/rest"
	"proffer.dev/proffer/api/v1alpha1"
)

const (
	// maxPrefix bounds the readable part of the name of a slice, which also names a Node and is part of
	// the common name of a certificate.
	maxPrefix = 40
	// suffixLength is the length of the suffix, as of generateName in Kubernetes.
	suffixLength = 5
)

// Liqoctl writes commands of liqoctl v1.2.0.
type Liqoctl struct {
	// Flags locate the API server of this cluster, as in --context NAME.
	Flags []string
}

// CreateSlice returns the line that creates a ResourceSlice with these amounts of an Offer. liqoctl changes a slice
// whose name exists. So the name ends in a digest of the command and of when the amounts were worked out: the same
// line again asks for nothing more, and a line that is written after the grant asks for another slice.
func (l Liqoctl) CreateSlice(provider string, o *rest.FederationOffer, amounts v1alpha1.Quantities) string {
	const nameAt = 3
	words := []string{
		"liqoctl", "create", "resourceslice", "", "--remote-cluster-id", provider, "--class", o.Class,
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
	prefix := provider + "-" + o.Class
	prefix = strings.TrimRight(prefix[:min(len(prefix), maxPrefix)], "-")
	digest := sha256.Sum256([]byte(strings.Join(words, " ") + o.ObservedTime.UTC().String()))
	suffix := base32.HexEncoding.EncodeToString(digest[:])[:suffixLength]
	words[nameAt] = prefix + "-" + strings.ToLower(suffix)
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
