package rest_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"proffer.dev/proffer/api/rest"
)

func TestAmountsThatTakeHoursToParseAreRefused(t *testing.T) {
	for _, text := range []string{"1e9999999", "1e-9999999", "1e999999999", "many", "1 2", "99999999999999999999999999999999999"} {
		var amounts rest.Amounts
		if err := json.Unmarshal([]byte(`{"cpu":"`+text+`"}`), &amounts); err == nil {
			t.Errorf("%s is read as %v", text, amounts)
		}
	}
}

func TestAmountsAreReadAsTheyAreWritten(t *testing.T) {
	for _, text := range []string{
		"null", "{}", `{"cpu":"1500m","memory":"64Gi","nvidia.com/gpu":"2","pods":"110"}`,
		`{"cpu":"9223372036854775807m","memory":"9223372036854775807"}`,
	} {
		var amounts rest.Amounts
		if err := json.Unmarshal([]byte(text), &amounts); err != nil {
			t.Errorf("%s: %v", text, err)
		}
		again, err := json.Marshal(amounts)
		if diff := cmp.Diff(text, string(again)); diff != "" || err != nil {
			t.Errorf("%v\n-want +got:\n%s", err, diff)
		}
	}
}
