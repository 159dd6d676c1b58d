package resourcereader

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/testing/protocmp"

	"proffer.dev/proffer/internal/offer"
	"proffer.dev/proffer/internal/table"
	wire "proffer.dev/proffer/proto/resourcereader"
	"proffer.dev/proffer/proto/resourcereader/flat"
	"proffer.dev/proffer/test"
)

// rome is an entry with an unnamed pool and one of class gold.
func rome() *offer.Entry {
	return entryOf(
		pool("", offer.Amount{Resource: "cpu", Value: 1500}, offer.Amount{Resource: "memory", Value: 2_000_000_000}),
		pool("gold", offer.Amount{Resource: "nvidia.com/gpu", Value: 0}),
	)
}

func text(s string) *wire.Quantity { return &wire.Quantity{String_: new(s)} }

func TestPoolsAreTheClassesOfAConsumer(t *testing.T) {
	r := start(t, published(map[string]*offer.Entry{"rome": rome()}))
	got, err := read(timeout(t), r.client(t), "rome")
	test.Must(t, err)
	want := &wire.PoolResourceList{ResourceLists: []*wire.ResourceList{
		{Resources: map[string]*wire.Quantity{"cpu": text("1500m"), "memory": text("2G")}},
		{Resources: map[string]*wire.Quantity{"nvidia.com/gpu": text("0")}, PoolPrefix: "gold"},
	}}
	if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// readFlat reads like a client of the flat form.
func readFlat(t *testing.T, on *grpc.ClientConn, id string) (*flat.ResourceList, error) {
	t.Helper()
	list := &flat.ResourceList{}
	err := on.Invoke(timeout(t), "/resource_reader/ReadResources", &wire.ClusterIdentity{ClusterID: id}, list)
	return list, err
}

func TestTheFlatFormServesTheUnnamedClassOrTheOnlyOne(t *testing.T) {
	cpu := func(n int64) offer.Amount { return offer.Amount{Resource: "cpu", Value: n * 1000} }
	r := start(t, published(map[string]*offer.Entry{
		"unnamed": entryOf(pool("", cpu(1))),
		"both":    entryOf(pool("", cpu(1)), pool("gold", cpu(2))),
		"gold":    entryOf(pool("gold", cpu(2))),
		"two":     entryOf(pool("gold", cpu(2)), pool("silver", cpu(3))),
	}), form(Flat))
	for id, want := range map[string]string{"unnamed": "1", "both": "1", "gold": "2", "nobody": ""} {
		list, err := readFlat(t, r.dial(t), id)
		if err != nil {
			t.Errorf("%s: %v", id, err)
		}
		if got := list.GetResources()["cpu"].GetString_(); got != want {
			t.Errorf("%s is offered %q cpu, want %q", id, got, want)
		}
	}
	_, err := readFlat(t, r.dial(t), "two")
	wantCode(t, err, codes.FailedPrecondition)
}

func TestTheFlatFormFollowsAChangeOfClass(t *testing.T) {
	of := func(resource string, n int64) offer.Amount { return offer.Amount{Resource: resource, Value: n} }
	cpu := func(n int64) offer.Amount { return of("cpu", n*1000) }
	for name, tc := range map[string]struct {
		offers []*offer.Offer
		want   map[string]string
	}{
		"unnamed to gold": {[]*offer.Offer{withdrawn("", cpu(0)), pool("gold", cpu(2))}, map[string]string{"cpu": "2"}},
		"gold to silver":  {[]*offer.Offer{withdrawn("gold", cpu(0)), pool("silver", cpu(3))}, map[string]string{"cpu": "3"}},
		"gold to unnamed": {[]*offer.Offer{pool("", cpu(1)), withdrawn("gold", cpu(0))}, map[string]string{"cpu": "1"}},
		"the first is in force": {[]*offer.Offer{pool("gold", cpu(2)), withdrawn("silver", cpu(0))},
			map[string]string{"cpu": "2"}},
		"a resource that the new class lacks": {
			[]*offer.Offer{withdrawn("", cpu(0), of("nvidia.com/gpu", 0)), pool("gold", cpu(2))},
			map[string]string{"cpu": "2", "nvidia.com/gpu": "0"},
		},
		"withdrawn offers that hold more than the new class": {
			[]*offer.Offer{
				withdrawn("", cpu(9), of("nvidia.com/gpu", 1)), withdrawn("gold", of("nvidia.com/gpu", 2)),
				pool("silver", cpu(3)),
			},
			map[string]string{"cpu": "9", "nvidia.com/gpu": "2"},
		},
		"one withdrawn": {[]*offer.Offer{withdrawn("gold", cpu(0))}, map[string]string{"cpu": "0"}},
		"the unnamed and another withdrawn": {
			[]*offer.Offer{withdrawn("", cpu(1)), withdrawn("gold", cpu(2), of("pods", 4))},
			map[string]string{"cpu": "2", "pods": "4"},
		},
		"gold to silver, while the policy of gold is awaited": {
			[]*offer.Offer{kept("gold", cpu(2), of("pods", 4)), pool("silver", cpu(3))},
			map[string]string{"cpu": "3", "pods": "4"},
		},
		"gold to unnamed, while the policy of gold is awaited": {
			[]*offer.Offer{pool("", cpu(1)), kept("gold", cpu(2))}, map[string]string{"cpu": "1"},
		},
		"unnamed to gold, while the unnamed policy is awaited": {
			[]*offer.Offer{kept("", cpu(1)), pool("gold", cpu(2)), pool("silver", cpu(3))}, map[string]string{"cpu": "1"},
		},
		"all awaited": {
			[]*offer.Offer{kept("gold", cpu(2)), kept("silver", cpu(3)), withdrawn("bronze", of("pods", 0))},
			map[string]string{"cpu": "3", "pods": "0"},
		},
		"all withdrawn and none unnamed": {
			[]*offer.Offer{
				withdrawn("gold", cpu(0), of("memory", 7), of("pods", 3)), withdrawn("silver", cpu(2), of("pods", 1)),
			},
			map[string]string{"cpu": "2", "memory": "7", "pods": "3"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := start(t, published(map[string]*offer.Entry{"rome": entryOf(tc.offers...)}), form(Flat))
			list, err := readFlat(t, r.dial(t), "rome")
			test.Must(t, err)
			got := map[string]string{}
			for resource, q := range list.GetResources() {
				got[resource] = q.GetString_()
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	two := entryOf(withdrawn("", cpu(0)), pool("gold", cpu(2)), pool("silver", cpu(3)))
	r := start(t, published(map[string]*offer.Entry{"rome": two}), form(Flat))
	_, err := readFlat(t, r.dial(t), "rome")
	wantCode(t, err, codes.FailedPrecondition)
}

// This test builds messages by hand from the field numbers of Liqo's contract, and calls the paths
// that Liqo calls.
func TestTheWireFormatIsThatOfLiqo(t *testing.T) {
	str := func(field protowire.Number, s string) []byte {
		return protowire.AppendString(protowire.AppendTag(nil, field, protowire.BytesType), s)
	}
	message := func(field protowire.Number, parts ...[]byte) []byte {
		var body []byte
		for _, p := range parts {
			body = append(body, p...)
		}
		return protowire.AppendBytes(protowire.AppendTag(nil, field, protowire.BytesType), body)
	}
	amount := func(name, quantity string) []byte { return message(1, str(1, name), message(2, str(1, quantity))) }
	lists := map[Form][]byte{
		Pools: append(
			message(1, amount("cpu", "1500m"), amount("memory", "2G")),
			message(1, amount("nvidia.com/gpu", "0"), str(3, "gold"))...),
		Flat: append(amount("cpu", "1500m"), amount("memory", "2G")...),
	}
	for f, want := range lists {
		t.Run(f.String(), func(t *testing.T) {
			r := start(t, published(map[string]*offer.Entry{"rome": rome()}), form(f))
			conn := r.dial(t, grpc.WithDefaultCallOptions(grpc.ForceCodecV2(rawCodec{})))
			request, nothing := str(1, "rome"), []byte{}
			for path, want := range map[string][]byte{
				"/resource_reader/ReadResources": want,
				"/resource_reader/RemoveCluster": {},
			} {
				got := []byte("left over")
				if err := conn.Invoke(timeout(t), path, &request, &got); err != nil {
					t.Fatalf("%s: %v", path, err)
				}
				if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
					t.Errorf("%s (-want +got):\n%s", path, diff)
				}
			}
			stream, err := conn.NewStream(timeout(t), &grpc.StreamDesc{ServerStreams: true}, "/resource_reader/Subscribe")
			test.Must(t, err)
			test.Must(t, stream.SendMsg(&nothing))
			test.Must(t, stream.CloseSend())
			got := []byte("left over")
			if err := stream.RecvMsg(&got); err != nil || len(got) != 0 {
				t.Errorf("the first notification is %q, %v; want an empty message", got, err)
			}
			// Read again, so that the stream is notified of the change.
			test.Must(t, conn.Invoke(timeout(t), "/resource_reader/ReadResources", &request, &got))
			publish(r.table, map[string]*offer.Entry{"rome": cpus(9)})
			test.Must(t, stream.RecvMsg(&got))
			if diff := cmp.Diff(request, got); diff != "" {
				t.Errorf("the notification of rome (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAnInvalidIDIsRefusedAndNotRemembered(t *testing.T) {
	r := start(t, published(nil))
	c := r.client(t)
	for name, id := range map[string]string{
		"is empty":              "",
		"254 bytes":             strings.Repeat("x", 254),
		"control character U+0": "rome\n",
		"U+0000":                "\x00",
		"U+0085":                "rome\u0085",
	} {
		_, err := read(timeout(t), c, id)
		wantCode(t, err, codes.InvalidArgument)
		if !strings.Contains(status.Convert(err).Message(), name) {
			t.Errorf("the message %q does not contain %q", status.Convert(err).Message(), name)
		}
	}
	bad := protowire.AppendString(protowire.AppendTag(nil, 1, protowire.BytesType), "\xff\xfe")
	conn := r.dial(t, grpc.WithDefaultCallOptions(grpc.ForceCodecV2(rawCodec{})))
	var answer []byte
	for _, request := range [][]byte{bad, []byte("garbage"), {0x0a, 0xff}} {
		for _, path := range []string{"/resource_reader/ReadResources", "/resource_reader/RemoveCluster"} {
			err := conn.Invoke(timeout(t), path, &request, &answer)
			wantCode(t, err, codes.Internal) // gRPC's status for a request that cannot be parsed
		}
	}
	if got := r.table.Stats().UnknownReads; got != 0 {
		t.Errorf("%d reads of invalid IDs counted, want 0", got)
	}
	if _, err := read(timeout(t), c, strings.Repeat("x", 253)); err != nil {
		t.Errorf("an ID of the maximum length: %v", err)
	}
}

func TestRemoveClusterIsAHintThatChangesNoOffer(t *testing.T) {
	r := start(t, published(map[string]*offer.Entry{"rome": cpus(2)}))
	c := r.client(t)
	stream := subscribed(t, c)
	for _, id := range []string{"rome", "oslo"} {
		if _, err := read(timeout(t), c, id); err != nil {
			t.Fatal(err)
		}
	}
	for _, id := range []string{"rome", "", "nobody knows", strings.Repeat("x", 1000)} {
		if _, err := c.RemoveCluster(timeout(t), &wire.ClusterIdentity{ClusterID: id}); err != nil {
			t.Errorf("RemoveCluster(%.20q): %v", id, err)
		}
	}
	// The stream is not notified of rome until rome is read again. The offer of rome stays.
	publish(r.table, map[string]*offer.Entry{"rome": cpus(3), "oslo": cpus(1)})
	if got := next(t, stream); got != "oslo" {
		t.Errorf("notified of %q, want oslo only", got)
	}
	got, err := read(timeout(t), c, "rome")
	if got := cpusOf(t, got, err); got != "3" {
		t.Errorf("rome is offered %s, want 3", got)
	}
}

func TestAnEarlyReadWaitsForTheFirstOffers(t *testing.T) {
	r := start(t, table.New())
	c := r.client(t)
	type answer struct {
		list *wire.PoolResourceList
		err  error
	}
	answers := make(chan answer, 1)
	go func() {
		list, err := read(timeout(t), c, "rome")
		answers <- answer{list, err}
	}()
	readUntilUnavailable(t, c) // It uses the same connection, so the first call has arrived.
	select {
	case a := <-answers:
		t.Fatalf("answered before there were offers: %v, %v", a.list, a.err)
	default:
	}
	publish(r.table, map[string]*offer.Entry{"rome": cpus(2)})
	a := <-answers
	if got := cpusOf(t, a.list, a.err); got != "2" {
		t.Errorf("rome is offered %s, want 2", got)
	}
}

func TestAnEarlyReadWithoutADeadlineWaitsForABoundedTime(t *testing.T) {
	r := start(t, table.New(), func(o *Options) { o.MaxWait = 50 * time.Millisecond })
	_, err := read(context.WithoutCancel(t.Context()), r.client(t), "rome")
	wantCode(t, err, codes.Unavailable)
	if got := status.Convert(err).Message(); !strings.Contains(got, table.ErrNotReady.Error()) {
		t.Errorf("message %q", got)
	}
}

func TestTheSameQuantityIsNotSharedBetweenCalls(t *testing.T) {
	// The plugin fixed-resources shared quantities. Quantity.String writes a cache, so this is a
	// data race, which this test finds under -race.
	r := start(t, published(map[string]*offer.Entry{"rome": rome()}))
	c := r.client(t)
	done := make(chan error)
	for range 8 {
		go func() {
			var err error
			for range 50 {
				if _, e := read(timeout(t), c, "rome"); e != nil {
					err = e
				}
			}
			done <- err
		}()
	}
	for range 8 {
		test.Check(t, <-done)
	}
}

func TestNoAnswerLacksAQuantity(t *testing.T) {
	// Liqo panics on a nil or empty Quantity.
	r := start(t, published(map[string]*offer.Entry{"rome": rome()}))
	got, err := read(timeout(t), r.client(t), "rome")
	test.Must(t, err)
	for _, l := range got.GetResourceLists() {
		for name, q := range l.GetResources() {
			if q.GetString_() == "" {
				t.Errorf("%s has no quantity", name)
			}
		}
	}
}
