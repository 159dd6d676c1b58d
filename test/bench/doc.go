// Command bench measures what Proffer costs. It prints every figure, and at the end those that mean something on any machine:
// ratios of two costs that were measured in the same rounds.
//
//	go run ./test/bench                     everything
//	go run ./test/bench -only reads,push    some of it
//	go run ./test/bench -short              everything, so small that the figures say nothing
//	go run ./test/bench -only soak          an hour's worth of churn, which has to be asked for
//	go run ./test/bench -hold               nothing, but a filled cluster to look at; -held measures startup and idle there
//
// README.md beside this file says how each figure comes about and what bounds it.
package main
