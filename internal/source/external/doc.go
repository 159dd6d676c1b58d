// Package external reads what external resource monitors of Liqo v0.6 to v0.10 answer: gRPC servers
// such as the old resource plugins. To a monitor it is Liqo. It subscribes, reads what each consumer
// may use, and reads again when it is notified, and at least every 20 seconds.
//
// # Whom to ask about
//
// Manager.Follow says which monitors policies use, and which consumers each is asked about. Every
// monitor is also asked about the empty ID: its answer is for consumers without one of their own. The
// old plugins answer the same whatever the ID.
//
// # Who is gone
//
// A monitor may keep something for each consumer, so it is told by RemoveCluster when one is gone for
// RemoveAfter. Every replica notes who is gone, and the leader alone calls: see Manager.Depart. What
// is noted is lost with the process, and a new leader repeats calls of the minute before.
//
// # What is not believed
//
// A monitor is a program of somebody else, and may answer anything at any speed. What it can do is
// bounded by the constants of this package: the size of a message, the names and the different answers
// that are kept, the notifications that are taken in a second, the calls that are made at a time. An
// answer is used as a whole or not at all: see parse and choose. A monitor that cannot be read loses
// its connection and is tried again with a pause. Nobody waits for a monitor, except the first
// evaluation of a process for Settled.
//
// There are no pings. A gRPC server in Go with its defaults closes connections that ping more often
// than every five minutes, and so would the old plugins. The reading every 20 seconds finds a dead
// connection instead, within its timeout of at most 30 seconds.
//
// # Who runs what
//
// Manager.Start owns a goroutine for each monitor (source.run), which owns one that takes
// notifications and up to maxReads that read, and one that removes consumers (Manager.remove). A
// monitor that is followed no longer is ended without waiting for it, and Start returns when all have
// ended.
package external
