// Package watchage records when each watch of the API server last showed a sign of life.
//
// It is part of the transport of every client, so it sees the requests of all informers and
// reflectors alike. A sign of life is that the API server accepts the watch, or that bytes of an
// event arrive. Quiet kinds show one too: every watch of client-go requests bookmarks, and the API
// server sends one about every minute.
//
// Over HTTP/2, client-go itself finds a dead connection within 45 s, by pings. SilenceLimit is for
// what pings do not cover: HTTP/1.1, and a proxy that answers pings by itself.
package watchage
