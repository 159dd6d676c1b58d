// Package resourcereader serves the published offers to Liqo v0.6 to v0.10: the gRPC protocol that their controller-manager speaks
// to an external resource monitor.
//
// The protocol is Liqo's, and much of it is not in the .proto files but in what the client does. The rules kept here, each with the place
// in Liqo v0.9.4 below pkg/liqo-controller-manager/resource-request-controller that makes it one:
//
//   - A stream begins with the empty ID, which stands for all consumers: after a reconnect the client reads nothing again unless it is
//     told to (resource-monitors/external-monitor.go, Register; offerUpdater.go, NotifyChange).
//   - A stream ends only when its context does, or on shutdown: after an error at Recv the client subscribes again at once,
//     without a pause (Register). A server that has nothing to say yet says nothing.
//   - Only consumers that were read are named, if possible: a notification for another one makes the client look for it in
//     vain (offerUpdater.go, NotifyChange takes the zero identity from its cache) and ends in RemoveCluster("").
//   - RemoveCluster is a hint, sent once a queued consumer has no ResourceRequest any more (CreateOrUpdateOffer): late, for
//     the empty ID, or never. It always succeeds, changes no offer, and silences the streams of its own connection alone.
//   - Reads are answered from memory: they share a deadline of 5 s with calls to the API server (CreateOrUpdateOffer, shouldUpdate).
//   - The client connects with WithBlock and gives up soon (NewExternalMonitor), so the server accepts connections before there are
//     offers, and early reads wait for them.
//   - A read always names a consumer, one that has a ResourceRequest (CreateOrUpdateOffer) or had one (shouldUpdate). The empty ID
//     means all consumers, whose offers are not one answer, so a read of it is refused.
//   - Which of the two forms a client speaks cannot be told from its requests, and a client of one form takes the other's answer
//     for nonsense without an error. So the form belongs to the listener.
//
// # Callers without credentials
//
// That client has no credentials, so anybody may call. What a caller can do is bounded, and concerns its own connection:
//
//   - What it reads and forgets is kept by connection (table.Caller).
//   - Connections and calls are bounded in all (maxConnections, maxCalls) and calls by connection (maxCallsPerConnection).
//     Nobody is refused, since the client would try again at once: at the bound on one connection HTTP/2 has it wait, and at
//     those in all the connection is closed that takes most, or that least resembles Liqo's (connections).
//   - A stream has at most maxInFlight notifications that gRPC has not written yet, and at most table.MaxWaiting that wait.
//   - A connection that takes nothing is closed (writeTimeout), and so is one that does not answer pings.
package resourcereader
