// Package resourcereader serves the published offers to Liqo v0.6 to v0.10. It implements the gRPC
// protocol that Liqo's controller-manager speaks to an external resource monitor.
//
// The .proto files hold only a part of that protocol; the rest is the behaviour of the client. The
// rules below follow from it. Each names its place in Liqo v0.9.4, relative to
// pkg/liqo-controller-manager/resource-request-controller:
//
//   - A stream begins with the empty ID, which stands for all consumers: after a reconnect the
//     client reads an offer again only when it is notified (resource-monitors/external-monitor.go,
//     Register; offerUpdater.go, NotifyChange).
//   - A stream ends only with its context, or on shutdown: after an error from Recv the client
//     subscribes again without a pause (Register). A server without news sends nothing.
//   - If possible, only consumers that were read are named. The client does not find another
//     consumer in its cache (offerUpdater.go, NotifyChange takes the zero identity), so that a
//     notification about it ends in RemoveCluster("").
//   - RemoveCluster is a hint that a queued consumer no longer has a ResourceRequest
//     (CreateOrUpdateOffer). It may come late, for the empty ID, or never. It always succeeds,
//     changes no offer, and affects only the streams of its own connection.
//   - Reads are answered from memory: they share a deadline of 5 s with calls to the API server
//     (CreateOrUpdateOffer, shouldUpdate).
//   - The client connects with WithBlock and gives up soon (NewExternalMonitor). So the server
//     accepts connections before there are offers, and early reads wait for the first ones.
//   - A read always names a consumer that has a ResourceRequest (CreateOrUpdateOffer) or had one
//     (shouldUpdate). The empty ID means all consumers, whose offers do not fit into one answer, so
//     reading it is an error.
//   - Requests do not tell which of the two forms the client speaks, and a client misreads an
//     answer in the other form without an error. So each listener serves one form.
//
// # Callers without credentials
//
// Liqo has no credentials, so any client may call. What a caller can take is bounded (limits.go),
// and a caller affects only its own connection:
//
//   - The consumers that it read and forgot are kept per connection (table.Caller).
//   - Connections and calls are bounded in total, calls also per connection. No Liqo call is
//     refused, because the client would retry immediately. At the bound of one connection, HTTP/2
//     makes the client wait. At the total bounds, the server closes the connection that takes most,
//     or that behaves least like Liqo (eviction.go).
//   - Few notifications of a stream wait inside gRPC (window.go), and at most table.MaxWaiting in
//     its subscription.
//   - A connection that reads nothing, or does not answer pings, is closed.
package resourcereader
