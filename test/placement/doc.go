// Package placement tests, with the real kube-scheduler on a real API server, that what Proffer
// shows as free on nodes can be placed there.
package placement
