// Command bench measures the costs of Proffer that need separate processes. It prints every figure,
// and at the end the ratios of costs that were measured in the same rounds.
//
//	go run .                     everything, run in this directory
//	go run . -only reads,push    some of it
//	go run . -short              everything, with inputs so small that the figures mean nothing
//	go run . -only soak          an hour's worth of churn, which runs only on request
//	go run . -hold               nothing: keep a filled cluster, which -held uses for two parts
//
// The Benchmark functions in the tests measure the rest. README.md has the goals and the figures.
package main
