package nodes

import (
	"bytes"
	"encoding/binary"
	"math"
	"math/rand/v2"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"

	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/kube/liqo"
	"proffer.dev/proffer/test"
)

// As an int64 each of these lengths is negative, which no buffer can have.
func TestALengthBeyondInt64InAListIsAnError(t *testing.T) {
	for _, length := range []uint64{1 << 63, 1<<63 + 1, math.MaxUint64} {
		long := binary.AppendUvarint([]byte{0x12}, length)
		inEnvelope := append([]byte("k8s\x00"), long...)
		inList := append([]byte("k8s\x00"), protowire.AppendBytes([]byte{0x12}, long)...)
		for place, data := range map[string][]byte{"the envelope": inEnvelope, "the list": inList} {
			if _, err := readPods(bytes.NewReader(data)); err == nil {
				t.Errorf("a field of %d bytes in %s was accepted", length, place)
			}
		}
	}
}

// corrupt damages a message: it flips bits, replaces and removes bytes, inserts huge lengths or
// cuts the end.
func corrupt(r *rand.Rand, message []byte) []byte {
	out := bytes.Clone(message)
	for range 1 + r.IntN(4) {
		at := r.IntN(len(out))
		switch r.IntN(5) {
		case 0:
			out[at] ^= 1 << r.IntN(8)
		case 1:
			out[at] = byte(r.Uint32())
		case 2:
			lengths := []uint64{0, 127, 128, math.MaxUint32, math.MaxInt64, math.MaxInt64 + 1, math.MaxUint64, r.Uint64()}
			out = append(binary.AppendUvarint(bytes.Clone(out[:at]), lengths[r.IntN(len(lengths))]), out[at:]...)
		case 3:
			out = append(bytes.Clone(out[:at]), out[min(len(out), at+1+r.IntN(16)):]...)
		case 4:
			out = out[:at+1]
		}
		if len(out) == 0 {
			return []byte{0}
		}
	}
	return out
}

func TestCorruptedBytesNeverPanic(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	inProtobuf := asSent(t, aList())
	inJSON := []byte(`{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"12"},"items":[` +
		`{"metadata":{"uid":"a"},"spec":{"nodeName":"n",` +
		`"containers":[{"name":"main","resources":{"requests":{"cpu":"1"}}}]}}]}`)
	pod, err := aPod("p", "n", list("cpu", "1"), podLabel(liqo.OriginLabel, "rome")).Marshal()
	test.Must(t, err)
	ledger := capacity.NewLedger()
	for range 3_000 {
		_, _ = readPods(bytes.NewReader(corrupt(r, inProtobuf)))
		_, _ = readPods(bytes.NewReader(corrupt(r, inJSON)))
		broken := corrupt(r, pod)
		_ = new(node).Unmarshal(broken)
		_ = decoderOf(ledger).newPod().Unmarshal(broken)
	}
}

func FuzzAList(f *testing.F) {
	f.Add([]byte("k8s\x00\x12\x04\x12\x02\x0a\x05"))
	f.Add([]byte("k8s\x00\x12\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01"))
	f.Add([]byte(`{"items": [{"metadata": {"uid": "1"}}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		if l, err := readPods(bytes.NewReader(data)); err == nil && l == nil {
			t.Error("readPods returned neither a list nor an error")
		}
	})
}
