package federation

import (
	"crypto/sha256"
	"encoding/base32"
	"encoding/binary"
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
	return l.createSlice(provider, o, amounts, 0)
}

// CreateSlices returns the lines that create this number of such ResourceSlices, each with a name of its own. The first
// line is that of CreateSlice.
func (l Liqoctl) CreateSlices(
	provider string, o *rest.FederationOffer, amounts v1alpha1.Quantities, number int,
) []string {
	lines := make([]string, number)
	for i := range lines {
		lines[i] = l.createSlice(provider, o, amounts, i)
	}
	return lines
}

func (l Liqoctl) createSlice(
	provider string, o *rest.FederationOffer, amounts v1alpha1.Quantities, index int,
) string {
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
	words[nameAt] = prefix + "-" + suffixOf(digest, index)
	words = append(words, l.Flags...)
	for i, word := range words {
		words[i] = quoted(word)
	}
	return strings.Join(words, " ")
}

// suffixOf returns the suffix of a name: the first digits of the digest, with the index added. So the names of one
// digest differ.
func suffixOf(digest [sha256.Size]byte, index int) string {
	const unused = 32 - 5*suffixLength // A digit has 5 bits.
	first := binary.BigEndian.Uint32(digest[:])>>unused + uint32(index)
	var text [4]byte
	binary.BigEndian.PutUint32(text[:], first<<unused)
	return strings.ToLower(base32.HexEncoding.EncodeToString(text[:])[:suffixLength])
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
