package catalog

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

const (
	// DefaultSubject is the user of the identity that Liqo v1 gives a consumer.
	DefaultSubject = "User:" + clusterIDVariable
	// MaxSubjects bounds the subjects of one consumer, and maxSubject the length of each, in bytes.
	MaxSubjects = 8
	maxSubject  = 512
	// clusterIDVariable stands for the cluster ID of the consumer.
	clusterIDVariable = "{clusterID}"
	// reservedPrefix is the prefix of users and groups of Kubernetes itself.
	reservedPrefix = "system:"
)

// subjectName matches the names that a template may have. Identity providers use printable ASCII, and
// every tool shows it unchanged.
var subjectName = regexp.MustCompile(`^[!-z|~]+$`)

// Subject is a template of a subject of RBAC, one for each consumer.
type Subject struct {
	kind string
	// before and after the cluster ID stand these parts of the name.
	before, after string
}

// ParseSubject reads a template such as User:{clusterID} or Group:liqo:{clusterID}. Its error says
// what to write.
func ParseSubject(text string) (Subject, error) {
	if len(text) > maxSubject {
		return Subject{}, fmt.Errorf("it has %d characters: write at most %d", len(text), maxSubject)
	}
	kind, name, _ := strings.Cut(text, ":")
	if kind != rbacv1.UserKind && kind != rbacv1.GroupKind {
		return Subject{}, errors.New("write User:NAME or Group:NAME, where NAME contains {clusterID}, " +
			"such as User:{clusterID}")
	}
	before, after, found := strings.Cut(name, clusterIDVariable)
	switch {
	case !found:
		return Subject{}, errors.New("the name must contain {clusterID}: " +
			"without it, every consumer could read the offers of all others")
	case strings.HasPrefix(strings.ToLower(name), reservedPrefix):
		return Subject{}, errors.New("names that begin with system: belong to Kubernetes: " +
			"write the name of a user or group of consumers")
	case strings.ContainsAny(before+after, "{}"):
		return Subject{}, errors.New("write {clusterID} exactly once, and no other braces")
	case before+after != "" && !subjectName.MatchString(before+after):
		return Subject{}, errors.New("write printable ASCII without spaces")
	}
	return Subject{kind: kind, before: before, after: after}, nil
}

// Of returns the subject of a consumer.
func (s Subject) forCluster(clusterID string) rbacv1.Subject {
	return rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: s.kind, Name: s.before + clusterID + s.after}
}

// Overlaps reports whether both templates can name the same subject for two different consumers. One
// that chooses its cluster ID could then read the Offers of another.
func (s Subject) Overlaps(with Subject) bool {
	if s.kind != with.kind || s == with {
		return false
	}
	if len(s.before) < len(with.before) {
		s, with = with, s
	}
	begin, begins := strings.CutPrefix(s.before, with.before)
	if !begins {
		return false
	}
	if end, ends := strings.CutSuffix(s.after, with.after); ends {
		// The name has the ID of one consumer between begin and end, and all three are the other ID.
		return inID(begin) && inID(end)
	}
	end, ends := strings.CutSuffix(with.after, s.after)
	if !ends {
		return false
	}
	// One ID follows begin, the other is followed by end: the two IDs have a part in common, or begin
	// and end have.
	if inID(begin) && inID(end) {
		return true
	}
	for i := 1; i < len(begin); i++ {
		if rest, ok := strings.CutPrefix(end, begin[i:]); ok && inID(begin[:i]) && inID(rest) {
			return true
		}
	}
	return false
}

// inID reports whether a cluster ID may have all of these characters.
func inID(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool {
		return r != '-' && (r < '0' || r > '9') && (r < 'a' || r > 'z')
	})
}

// validClusterID reports whether a cluster ID is safe in the name of a subject. It is Liqo v1's own
// rule, which its CRD checks too. It excludes the names of Kubernetes' own users and groups, which
// contain a colon, and the characters of a template.
func validClusterID(id string) bool { return len(validation.IsDNS1123Label(id)) == 0 }
