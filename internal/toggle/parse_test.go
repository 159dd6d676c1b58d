package toggle

import (
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"proffer.dev/proffer/api/rest"
	"proffer.dev/proffer/test"
)

func TestAChangeIsReadFromItsParameters(t *testing.T) {
	long := strings.Repeat("a", 64)
	for query, tc := range map[string]struct {
		want  rest.Toggle
		error string
	}{
		"id=oslo&enable=true":                     {rest.Toggle{ID: "oslo", Enable: true}, ""},
		"id=oslo&enable=false&consumer=":          {rest.Toggle{ID: "oslo"}, ""},
		"id=oslo&enable=false&consumer=rome":      {rest.Toggle{ID: "oslo", Consumer: "rome"}, ""},
		"id=o-1&enable=true&orchestration=a.gold": {rest.Toggle{ID: "o-1", Enable: true, Orchestration: "a.gold"}, ""},

		"":                                    {error: "write enable=true or enable=false"},
		"id=oslo":                             {error: "write enable=true or enable=false"},
		"id=oslo&enable=1":                    {error: `enable="1": write enable=true`},
		"enable=true":                         {error: `id="" is not a cluster ID`},
		"id=Oslo&enable=true":                 {error: `id="Oslo" is not a cluster ID`},
		"id=" + long + "&enable=true":         {error: "is not a cluster ID"},
		"id=%1b&enable=true":                  {error: `id="\x1b" is not`},
		"id=oslo&enable=true&consumer=Rome":   {error: `consumer="Rome" is not a cluster ID`},
		"id=oslo&enable=true&orchestration=":  {error: "orchestration is empty"},
		"id=oslo&enable=true&orchestration=A": {error: `orchestration="A" is not a name`},
		"id=oslo&id=milan&enable=true":        {error: "id is written 2 times"},
		"id=oslo&enable=true&enable=false":    {error: "enable is written 2 times"},
		"id=oslo&enable=true&cluster=rome":    {error: `there is no parameter "cluster"`},
	} {
		values, err := url.ParseQuery(query)
		test.Must(t, err)
		got, err := Parse(values)
		if (err == nil) != (tc.error == "") || err != nil && !strings.Contains(err.Error(), tc.error) {
			t.Errorf("%s: %v, want %q", query, err, tc.error)
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s: %s", query, diff)
		}
	}
}
