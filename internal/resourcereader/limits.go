package resourcereader

import "time"

// The bounds on the resources that callers can take. They are not flags, because Liqo needs only
// one connection with one stream and a few reads.
const (
	// maxConnections bounds the connections of all listeners together. The server accepts one more
	// and closes another one for it.
	maxConnections = 64
	// maxCallsPerConnection bounds the concurrent calls of one connection, streams included. HTTP/2
	// announces the bound, and clients wait with further calls until one has ended.
	maxCallsPerConnection = 128
	// maxCalls bounds the concurrent calls of all connections together. The server accepts one more
	// and closes a connection for it.
	maxCalls = 2048
	// maxOtherStreams bounds the streams of the health and reflection services on all connections.
	// Their clients can be refused. Liqo cannot: it would retry immediately.
	maxOtherStreams = 8
	// maxUnwritten bounds the notifications of one stream that gRPC has accepted and not yet
	// written to the connection. See sendWindow.
	maxUnwritten = 4

	// maxRequest bounds the bytes of a request; a valid one has less than 300. A request that
	// arrives byte by byte takes fifty times its size until it is complete.
	maxRequest = 1 << 10
	// maxHeaders bounds the bytes of a call's headers; gRPC's default is 16 MiB.
	maxHeaders = 8 << 10
	// maxIDLength is the length of the longest name of a Kubernetes object.
	maxIDLength = 253
	// sendBuffer is the size in bytes of the kernel's buffer for a connection that does not read.
	sendBuffer = 64 << 10

	// writeTimeout is the longest time without progress of a write to a connection before the
	// connection is closed.
	writeTimeout = 20 * time.Second
	// handshakeTimeout bounds the handshake of a connection. A shutdown waits for handshakes, so
	// half of Options.ShutdownTimeout is a bound too.
	handshakeTimeout = 5 * time.Second
	// pingAfter is the silence of a connection after which the server pings it, and pingTimeout the
	// time for the client's answer. Together they free the streams of a lost client within 40 s.
	pingAfter, pingTimeout = 30 * time.Second, 10 * time.Second
	// maxIdle is the longest time for which a connection may stay open without a call.
	maxIdle = 15 * time.Minute
	// minPingInterval is the minimum time between two pings of a client. gRPC clients ping at most
	// every 10 s, so half of that identifies a flood.
	minPingInterval = 5 * time.Second
)
