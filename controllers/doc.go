// Package controllers is all the Kubernetes glue: it watches, turns objects into the plain values of the core once, at the edge,
// has them evaluated and published, and writes statuses.
//
// Objects flow one way. Event handlers bring each object into an account (nodes and pods into the capacity.Ledger, policies and
// consumers into registers of their own) and wake the Evaluator, which works out everything anew and publishes it to the table.
// Every replica does so. Only the leader writes, and only after the table has been published: readers never wait on the API. A leader
// that loses its lease stops writing, and nothing else.
package controllers
