package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"google.golang.org/grpc"

	"proffer.dev/proffer/api/rest"
	wire "proffer.dev/proffer/proto/resourcereader"
)

// attempts bounds the readings of an offer and its explanation until the two agree.
const attempts = 10

// subscribe opens a stream of notifications. An error ends it.
func (o *operator) subscribe(ctx context.Context) (<-chan string, <-chan error, error) {
	stream, err := o.liqo.Subscribe(ctx, &wire.Empty{}, grpc.WaitForReady(true))
	if err != nil {
		return nil, nil, fmt.Errorf("subscribing: %w", err)
	}
	notifications := make(chan string)
	failed := make(chan error, 1)
	go func() {
		for {
			notification, err := stream.Recv()
			if err != nil {
				failed <- err
				return
			}
			select {
			case notifications <- notification.GetClusterID():
			case <-ctx.Done():
				return
			}
		}
	}()
	return notifications, failed, nil
}

// offersTo reads a consumer's offer over gRPC, as Liqo does, and its explanation, as an admin does.
// If a change is published between the two, they differ and are read again.
func (o *operator) offersTo(ctx context.Context, id string) (consumer, error) {
	for attempt := 1; ; attempt++ {
		read, err := o.liqo.ReadResources(ctx, &wire.ClusterIdentity{ClusterID: id})
		if err != nil {
			return consumer{}, err
		}
		why, err := o.explain(ctx, id)
		if err != nil {
			return consumer{}, err
		}
		if offers, agree := combine(read, why); agree || attempt == attempts {
			return consumer{id: id, offers: offers}, nil
		}
	}
}

// combine joins an offer with its explanation, and reports whether both have the same amounts.
func combine(read *wire.PoolResourceList, why rest.Consumer) (all []offered, agree bool) {
	agree = len(read.GetResourceLists()) == len(why.Offers)
	for _, pool := range read.GetResourceLists() {
		o := offered{class: pool.GetPoolPrefix(), amounts: map[string]string{}}
		for name, quantity := range pool.GetResources() {
			o.amounts[name] = quantity.GetString_()
		}
		same := false
		for _, x := range why.Offers {
			if x.Class != o.class {
				continue
			}
			o.policy, o.because, same = x.Policy, x.Because, len(x.Resources) == len(o.amounts)
			if x.Override != nil {
				o.policy = fmt.Sprintf("%s[%d]", x.Policy, *x.Override)
			}
			for name, quantity := range x.Resources {
				same = same && o.amounts[name] == quantity.String()
			}
		}
		all, agree = append(all, o), agree && same
	}
	return all, agree
}

// explainAll reads the explanations for all known consumers.
func (o *operator) explainAll(ctx context.Context) (all rest.Offers, err error) {
	return all, o.get(ctx, rest.OffersPath, &all)
}

// explain reads the explanation for one consumer.
func (o *operator) explain(ctx context.Context, id string) (one rest.Consumer, err error) {
	return one, o.get(ctx, rest.OffersPath+"/"+url.PathEscape(id), &one)
}

func (o *operator) get(ctx context.Context, path string, into any) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, o.url+path, http.NoBody)
	if err != nil {
		return err
	}
	request.Header.Set("Authorization", "Bearer "+o.token)
	response, err := o.admin.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(response.Body, 1024))
		return fmt.Errorf("asking for explanations: %s: %s", response.Status, text)
	}
	return json.NewDecoder(response.Body).Decode(into)
}
