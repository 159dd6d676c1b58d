package temperature

import (
	"encoding/json"
	"testing"

	"proffer.dev/proffer/plugin"
)

func TestHotNodesAreLeftOut(t *testing.T) {
	f, err := New(json.RawMessage(`{"most": 70}`), plugin.Handle{})
	if err != nil {
		t.Fatal(err)
	}
	for degrees, want := range map[string]bool{"": true, "warm": true, "69": true, "70": false} {
		n := &plugin.Node{Labels: map[string]string{label: degrees}}
		if ok, why := f.Filter(&plugin.Policy{}, n); ok != want || ok == (why != "") {
			t.Errorf("%q: %v, %q", degrees, ok, why)
		}
	}
}

func TestWrongArgumentsAreRefused(t *testing.T) {
	for _, text := range []string{"", "{}", `{"most": "hot"}`, `{"least": 1}`} {
		if _, err := New(json.RawMessage(text), plugin.Handle{}); err == nil {
			t.Errorf("%s is accepted", text)
		}
	}
}
