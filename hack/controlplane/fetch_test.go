package controlplane

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestOnlyAServerThatAnswersIsReached(t *testing.T) {
	code := http.StatusOK
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }))
	if err := reach(t.Context(), server.URL); err != nil {
		t.Error(err)
	}
	code = http.StatusForbidden
	if err := reach(t.Context(), server.URL); err == nil || !strings.Contains(err.Error(), "403 Forbidden") {
		t.Errorf("a proxy that refuses: %v", err)
	}
	server.Close()
	if err := reach(t.Context(), server.URL); err == nil {
		t.Error("a server that does not listen is reached")
	}
}
