package catalog

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
)

func TestATemplateNamesOneSubjectForEachConsumer(t *testing.T) {
	for text, want := range map[string]rbacv1.Subject{
		DefaultSubject:                         {APIGroup: rbacv1.GroupName, Kind: "User", Name: "rome"},
		"Group:liqo:{clusterID}":               {APIGroup: rbacv1.GroupName, Kind: "Group", Name: "liqo:rome"},
		"User:arn:aws:iam::1:role/{clusterID}": {APIGroup: rbacv1.GroupName, Kind: "User", Name: "arn:aws:iam::1:role/rome"},
		"User:{clusterID}@example.com":         {APIGroup: rbacv1.GroupName, Kind: "User", Name: "rome@example.com"},
	} {
		s, err := ParseSubject(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if diff := cmp.Diff(want, s.forCluster("rome")); diff != "" {
			t.Errorf("%s: %s", text, diff)
		}
	}
}

func TestATemplateThatCouldShowOffersToOthersIsRefused(t *testing.T) {
	for text, want := range map[string]string{
		"":                            "write User:NAME or Group:NAME",
		"rome":                        "write User:NAME or Group:NAME",
		"ServiceAccount:{clusterID}":  "write User:NAME or Group:NAME",
		"Group:everybody":             "every consumer could read the offers of all others",
		"User:":                       "every consumer could read the offers of all others",
		"Group:system:{clusterID}":    "belong to Kubernetes",
		"User:System:{clusterID}":     "belong to Kubernetes",
		"User:{clusterID}{clusterID}": "exactly once",
		"User:{name}-{clusterID}":     "exactly once",
		"User:a {clusterID}":          "printable ASCII",
		"User:{clusterID}\n":          "printable ASCII",
		"User:\u202e{clusterID}":      "printable ASCII",
		"User:{clusterID}" + strings.Repeat("x", maxSubject): "at most 512",
	} {
		if _, err := ParseSubject(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q: got %v, want %q", text, err, want)
		}
	}
}

func TestTemplatesThatNameOneSubjectForTwoConsumersOverlap(t *testing.T) {
	parts := []string{"", "a", "a-", "-a", ":", "a:", ":a", "a:a", "::", "a::a"}
	ids := []string{"a", "aa", "aaa", "a-a", "a-aa", "aa-a", "a-a-a"}
	var all []Subject
	for _, before := range parts {
		for _, after := range parts {
			all = append(all, Subject{kind: "User", before: before, after: after})
		}
	}
	met := 0
	for _, s := range all {
		for _, with := range all {
			for _, x := range ids {
				for _, y := range ids {
					if x == y || s.forCluster(x) != with.forCluster(y) {
						continue
					}
					met++
					if !s.Overlaps(with) {
						t.Fatalf("%+v of %s and %+v of %s are %s", s, x, with, y, s.forCluster(x).Name)
					}
				}
			}
		}
	}
	if met < 100 {
		t.Errorf("only %d pairs have the same name", met)
	}
	for _, tc := range [][2]string{
		{"User:{clusterID}", "Group:a-{clusterID}"},
		{"Group:{clusterID}", "Group:liqo:{clusterID}"},
		{"User:arn:aws:iam::1:role/{clusterID}", "User:{clusterID}@example.com"},
		{"User:{clusterID}", "User:{clusterID}"},
	} {
		s, err := ParseSubject(tc[0])
		with, err2 := ParseSubject(tc[1])
		if err != nil || err2 != nil || s.Overlaps(with) || with.Overlaps(s) {
			t.Errorf("%s: %v, %v", tc, err, err2)
		}
	}
}

func TestOnlyNamesThatLiqoAllowsAreClusterIDs(t *testing.T) {
	for id, want := range map[string]bool{
		"rome": true, "32f0b45b-5c06-4cc4-84b6-03a323ffc93d": true, "masters": true,
		"": false, "system:masters": false, "system:anonymous": false, "{clusterID}": false, "Rome": false, "rome.example": false,
		"*": false, "a b": false, strings.Repeat("x", 64): false,
	} {
		if got := validClusterID(id); got != want {
			t.Errorf("%q: got %v, want %v", id, got, want)
		}
	}
}
