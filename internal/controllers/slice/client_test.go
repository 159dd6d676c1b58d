package slice

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"

	"proffer.dev/proffer/internal/kube/jsonstream"
	"proffer.dev/proffer/test"
	"proffer.dev/proffer/test/kubetest"
)

// inJSON returns a slice as an API server sends it.
func inJSON(t testing.TB, name string) string {
	t.Helper()
	text, err := json.Marshal(kubetest.Unstructured(t, kubetest.Slice(name)).Object)
	test.Must(t, err)
	return string(text)
}

func TestAListOfSlicesIsReadToItsEndOrNotAtAll(t *testing.T) {
	text := `{"kind":"ResourceSliceList","apiVersion":"authentication.liqo.io/v1beta1","metadata":{"resourceVersion":"42","continue":"next"},"items":[` +
		inJSON(t, "a") + "," + inJSON(t, "b") + "]}\n"
	all, err := readSlices(strings.NewReader(text))
	if err != nil || len(all.Items) != 2 || all.GetResourceVersion() != "42" || all.GetContinue() != "next" {
		t.Fatalf("%d slices at %q: %v", len(all.Items), all.GetResourceVersion(), err)
	}
	for i, name := range []string{"a", "b"} {
		if diff := cmp.Diff(parseSlice(kubetest.Unstructured(t, kubetest.Slice(name))), parseSlice(&all.Items[i]), comparing); diff != "" {
			t.Error(diff)
		}
	}
	for n := range len(text) - 2 {
		if all, err := readSlices(strings.NewReader(text[:n])); err == nil {
			t.Fatalf("%q was read as a list of %d slices", text[:n], len(all.Items))
		}
	}
	for _, odd := range []string{`{}`, `[]`, `{"items":null}`, `{"items":{}}`, `7`} {
		if all, err := readSlices(strings.NewReader(odd)); err == nil {
			t.Errorf("%s was read as a list of %d slices", odd, len(all.Items))
		}
	}
}

func TestTheEventsOfSlicesAreDecoded(t *testing.T) {
	event := func(kind, object string) string { return fmt.Sprintf("{\"type\":%q,\"object\":%s}\n", kind, object) }
	gone, err := json.Marshal(apierrors.NewResourceExpired("too old resource version").Status())
	test.Must(t, err)
	text := event("ADDED", inJSON(t, "a")) + event("MODIFIED", inJSON(t, "a")) + event("DELETED", inJSON(t, "a")) +
		event("BOOKMARK", `{"kind":"ResourceSlice","metadata":{"resourceVersion":"43"}}`) + event("ERROR", string(gone))
	events := &sliceEvents{Reader: jsonstream.NewReader(strings.NewReader(text)), body: io.NopCloser(nil)}
	for _, want := range []watch.EventType{watch.Added, watch.Modified, watch.Deleted, watch.Bookmark, watch.Error} {
		kind, object, err := events.Decode()
		if err != nil || kind != want {
			t.Fatalf("event %s, want %s: %v", kind, want, err)
		}
		if status, ok := object.(*metav1.Status); (kind == watch.Error) != ok || ok && !apierrors.IsResourceExpired(apierrors.FromObject(status)) {
			t.Errorf("%s: %+v", kind, object)
		}
		if got, ok := object.(metav1.Object); ok && kind == watch.Bookmark && got.GetResourceVersion() != "43" {
			t.Errorf("a bookmark at %q", got.GetResourceVersion())
		}
	}
	if _, _, err := events.Decode(); !errors.Is(err, io.EOF) {
		t.Errorf("at the end: %v, want io.EOF", err)
	}
	for _, odd := range []string{`{}`, `{"type":"ADDED"}`, `{"type":"HELLO","object":{}}`, `{"object":{},"type":"ADDED"}`, `7`, `{"type":7,"object":{}}`, `{"type":"ERROR","object":7}`} {
		odds := &sliceEvents{Reader: jsonstream.NewReader(strings.NewReader(odd + "\n")), body: io.NopCloser(nil)}
		if kind, object, err := odds.Decode(); err == nil && kind != watch.Error {
			t.Errorf("%s was decoded as %s of %v", odd, kind, object)
		}
	}
}

// A slice of any size harms only its sender: the other slices are still read.
func TestASliceOfAnySizeDoesNotHideTheOthers(t *testing.T) {
	const size = 32 << 20
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"kind":"ResourceSliceList","metadata":{"resourceVersion":"1"},"items":[{"metadata":{"name":"large","namespace":"default"},"spec":{"csr":"`)
		for range size >> 20 {
			_, _ = io.WriteString(w, strings.Repeat("x", 1<<20))
		}
		_, _ = io.WriteString(w, `"}},`+inJSON(t, "other")+`]}`)
	}))
	defer api.Close()
	c, err := NewClients(&rest.Config{Host: api.URL}, api.Client())
	test.Must(t, err)
	var names []string
	before := heapInUse()
	test.Must(t, c.slices.each(t.Context(), func(s slice) { names = append(names, s.key) }))
	if diff := cmp.Diff([]string{"default/large", "default/other"}, names); diff != "" {
		t.Error(diff)
	}
	if after := heapInUse(); after > before+(4<<20) {
		t.Errorf("the heap grew by %.1f MiB", mib(after-before))
	}
}

func TestWhereTheKindIsNotDefinedThereAreNoSlices(t *testing.T) {
	test.Check(t, newTestClients(t).slices.each(t.Context(), func(s slice) { t.Errorf("got the slice %s", s.key) }))
}
