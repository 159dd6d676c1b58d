package unknown

import (
	"context"
	"errors"
	"testing"

	"proffer.dev/proffer/api/rest"
)

func TestANoticeSuggestsSimilarIDs(t *testing.T) {
	known := func(ids ...string) func(context.Context) (*rest.Offers, error) {
		all := &rest.Offers{}
		for _, id := range ids {
			all.Consumers = append(all.Consumers, rest.Consumer{ClusterID: id, Known: true})
		}
		return func(context.Context) (*rest.Offers, error) { return all, nil }
	}
	for _, tc := range []struct {
		name string
		of   rest.Consumer
		list func(context.Context) (*rest.Offers, error)
		want string
	}{
		{"known", rest.Consumer{ClusterID: "rome", Known: true}, nil, ""},
		{"another case", rest.Consumer{ClusterID: "Rome"}, known("oslo", "rome"), "Rome is not a known consumer: it gets the default offer. Did you mean rome?"},
		{"a letter", rest.Consumer{ClusterID: "roma"}, known("oslo", "rome"), "roma is not a known consumer: it gets the default offer. Did you mean rome?"},
		{"the beginning", rest.Consumer{ClusterID: "32f0b45b"}, known("32f0b45b-5c06-4cc4-84b6-03a323ffc93d"),
			"32f0b45b is not a known consumer: it gets the default offer. Did you mean 32f0b45b-5c06-4cc4-84b6-03a323ffc93d?"},
		{"several", rest.Consumer{ClusterID: "edge"}, known("edge-4", "edge-3", "edge-2", "edge-1"),
			"edge is not a known consumer: it gets the default offer. Did you mean edge-1 or edge-2 or edge-3?"},
		{"another case comes first", rest.Consumer{ClusterID: "Rome"}, known("come", "home", "lome", "rome"),
			"Rome is not a known consumer: it gets the default offer. Did you mean rome or come or home?"},
		{"known since", rest.Consumer{ClusterID: "roma"}, known("oslo", "roma", "rome"),
			"roma is not a known consumer: it gets the default offer. Did you mean rome?"},
		{"nothing like it", rest.Consumer{ClusterID: "milan"}, known("oslo", "rome"), "milan is not a known consumer: it gets the default offer."},
		{"no list", rest.Consumer{ClusterID: "roma"}, func(context.Context) (*rest.Offers, error) { return nil, errors.New("busy") },
			"roma is not a known consumer: it gets the default offer."},
	} {
		if got := Notice(t.Context(), &tc.of, tc.list); got != tc.want {
			t.Errorf("%s: got %q, want %q", tc.name, got, tc.want)
		}
	}
}
