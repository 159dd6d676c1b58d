package offered

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"proffer.dev/proffer/test"
)

func TestTheConsumersOfExternalSourcesAreParsedAsTheyWereEncoded(t *testing.T) {
	for _, a := range []askedConsumers{nil, {"plugin.liqo:6001": {"rome", "oslo"}}, {"[::1]:1": {`<"&>`}, "b:2": {"oslo"}}} {
		text := encode(a)
		got, err := parse[askedConsumers](text)
		test.Must(t, err)
		if diff := cmp.Diff(a, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", text, diff)
		}
	}
	for _, text := range []string{"x", "[]", `{"a:1": "rome"}`, `{"a:1": ["oslo"], "b:1": [7]}`} {
		if got, err := parse[askedConsumers](text); err == nil || got != nil {
			t.Errorf("parse(%s) = %v, %v; want an error", text, got, err)
		}
	}
}

func TestTheRecordHasRoomForTheFirstConsumersOfEachExternalSource(t *testing.T) {
	for name, id := range map[string]string{"UUID": "9c12a9d3-4fd5-4b2c-8f9e-0000000%05d", "escaped": strings.Repeat("<", 60) + "%d"} {
		asked := askedConsumers{"small.liqo:6001": {"rome", "oslo"}}
		for _, address := range []string{"a.liqo:6001", "b.liqo:6001"} {
			for i := range 10_000 {
				asked[address] = append(asked[address], fmt.Sprintf(id, i))
			}
		}
		got := boundAsked(asked)
		if text := encode(got); len(text) > maxAskedBytes || len(text) < maxAskedBytes*6/10 {
			t.Errorf("%s: %d bytes; want nearly two of three shares of %d", name, len(text), maxAskedBytes)
		}
		for address, ids := range got {
			if diff := cmp.Diff(asked[address][:len(ids)], ids); diff != "" || len(ids) == 0 {
				t.Errorf("%s: %s (-want +got):\n%s", name, address, diff)
			}
		}
		if diff := cmp.Diff(asked["small.liqo:6001"], got["small.liqo:6001"]); diff != "" {
			t.Error(diff)
		}
	}
}
