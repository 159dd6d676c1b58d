package resourcereader

import "time"

// The bounds on what callers can have open. Nobody needs a flag for them: a Liqo has one connection, on which it has one stream
// and a handful of reads.
const (
	// maxConnections bounds the connections of all listeners together. One more is let in, and another one is closed for it.
	maxConnections = 64
	// maxCallsPerConnection bounds the calls under way on one connection, streams included. Clients are told of it, and wait
	// with one more call until another one has ended.
	maxCallsPerConnection = 128
	// maxCalls bounds the calls under way on all connections together. One more is let in, and a connection is closed for it.
	maxCalls = 2048
	// writeTimeout is how long a connection may take nothing of what is written to it before it is closed.
	writeTimeout = 20 * time.Second
	// sendBuffer is how many bytes the kernel keeps for a connection that does not read them.
	sendBuffer = 64 << 10
)

const (
	// maxRequest bounds a request; the largest one that makes sense has less than 300 bytes. A request that arrives byte by byte
	// takes fifty times its size until it is whole.
	maxRequest = 1 << 10
	// maxHeaders bounds the headers of a call; gRPC's own bound is 16 MiB.
	maxHeaders = 8 << 10
	// maxOtherStreams bounds the streams of the health and reflection services on all connections. Their clients can be refused,
	// Liqo's cannot: it would try again at once.
	maxOtherStreams = 8
	// handshakeTimeout bounds how long a connection may take to begin. A shutdown waits for it, so there it is half of that at most.
	handshakeTimeout = 5 * time.Second
)

// maxIDLength is that of the longest name of a Kubernetes object.
const maxIDLength = 253

// maxInFlight is how many notifications of a stream may be on their way to a connection that does not take them. gRPC itself
// counts bytes: it queues 64 KiB for a stream whose client opens no window, which are 1,500 notifications, and these take ten
// times as much memory as they have bytes.
const maxInFlight = 4
