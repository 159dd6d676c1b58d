package project

import (
	"encoding/json"
	"testing"

	"proffer.dev/proffer/plugin"
)

func TestProjectsThatHaveEndedAreRefused(t *testing.T) {
	f, err := New(json.RawMessage(`{"ended": ["apollo"]}`), plugin.Handle{})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{"": true, "artemis": true, "apollo": false} {
		r := &plugin.Request{Labels: map[string]string{label: name}}
		if ok, why := f.Filter(&plugin.Policy{}, r); ok != want || ok == (why != "") {
			t.Errorf("%q: %v, %q", name, ok, why)
		}
	}
	if _, err := New(json.RawMessage(`{"begun": []}`), plugin.Handle{}); err == nil {
		t.Error("wrong arguments are accepted")
	}
}
