package nodes

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/client-go/kubernetes/scheme"

	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/kube/liqo"
	"proffer.dev/proffer/internal/source/masked"
	"proffer.dev/proffer/test"
)

// asSent returns a list as the API server encodes it.
func asSent(t *testing.T, l *corev1.PodList) []byte {
	t.Helper()
	l.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "PodList"}
	var out bytes.Buffer
	test.Must(t, protobuf.NewSerializer(scheme.Scheme, scheme.Scheme).Encode(l, &out))
	return out.Bytes()
}

func aList() *corev1.PodList {
	l := &corev1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: "12", Continue: "more"}}
	for _, name := range []string{"a", "b", "c"} {
		l.Items = append(l.Items, *aPod(name, "n", list("cpu", "1"),
			podLabel(liqo.OriginLabel, "rome"), podLabel("note", strings.Repeat("x", 300))))
	}
	return l
}

// readPods reads a list of pods like the operator does.
func readPods(from io.Reader) (*masked.List[*pod], error) {
	return masked.ReadList(from, decoderOf(capacity.NewLedger()).newPod)
}

func keys(l *masked.List[*pod]) []string {
	var all []string
	for _, p := range l.Items {
		all = append(all, p.Key+" of "+p.Consumer)
	}
	return all
}

func TestAListIsReadAsItArrives(t *testing.T) {
	full := aList()
	inJSON, err := json.Marshal(full)
	test.Must(t, err)
	for name, in := range map[string]io.Reader{
		"in one piece": bytes.NewReader(asSent(t, full)),
		"byte by byte": iotest.OneByteReader(bytes.NewReader(asSent(t, full))),
		"as JSON":      bytes.NewReader(inJSON),
	} {
		got, err := readPods(in)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if diff := cmp.Diff([]string{"uid-of-a of rome", "uid-of-b of rome", "uid-of-c of rome"}, keys(got)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		if got.ResourceVersion != "12" || got.Continue != "more" {
			t.Errorf("%s: resource version %q, continue token %q", name, got.ResourceVersion, got.Continue)
		}
	}
	empty, err := readPods(bytes.NewReader(asSent(t, &corev1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: "3"}})))
	if err != nil || len(empty.Items) > 0 || empty.ResourceVersion != "3" {
		t.Errorf("an empty list: %+v, %v", empty, err)
	}
}

// If a truncated list were accepted, the pods that it lacks would count as deleted.
func TestATruncatedListIsAnError(t *testing.T) {
	data := asSent(t, aList())
	for cut := range data {
		// A cut after the list itself is harmless.
		if l, err := readPods(bytes.NewReader(data[:cut])); err == nil && len(l.Items) != 3 {
			t.Fatalf("after %d of %d bytes: accepted as a list of %d items", cut, len(data), len(l.Items))
		}
	}
	broken := errors.New("the connection broke")
	for cut := range data {
		in := io.MultiReader(bytes.NewReader(data[:cut]), iotest.ErrReader(broken))
		if _, err := readPods(in); !errors.Is(err, broken) {
			t.Fatalf("after %d of %d bytes: %v", cut, len(data), err)
		}
	}
}

func TestMalformedListsAreErrors(t *testing.T) {
	for name, in := range map[string]string{
		"nothing":                         "",
		"text":                            "upstream connect error",
		"JSON of another shape":           `{"items": 1}`,
		"JSON without items":              `{"kind": "PodList", "metadata": {"resourceVersion": "1"}}`,
		"JSON that ends too early":        `{"items": [{"metadata": {"uid": "1"}}]`,
		"JSON with a number as an item":   `{"items": [1]}`,
		"a JSON array":                    `[]`,
		"a number instead of a list":      "k8s\x00\x10\x01",
		"an object beyond the size limit": "k8s\x00\x12\x90\x80\x80\x80\x01\x12\x80\x80\x80\x80\x01",
		"a malformed item":                "k8s\x00\x12\x04\x12\x02\x0a\x05",
		"malformed metadata":              "k8s\x00\x12\x04\x0a\x02\x0a\x05",
		"a length beyond uint64":          "k8s\x00\x12\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
		"a length of 2^63":                "k8s\x00\x12\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01",
		"an item of 2^63":                 "k8s\x00\x12\x0c\x12\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01",
		"an item of 2^64-1":               "k8s\x00\x12\x0c\x12\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
		"a length of 2^63-1":              "k8s\x00\x12\xff\xff\xff\xff\xff\xff\xff\xff\x7f",
		"a length of 2^64-1":              "k8s\x00\x12\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
	} {
		if l, err := readPods(strings.NewReader(in)); err == nil {
			t.Errorf("%s was accepted as a list of %d items", name, len(l.Items))
		}
	}
}
