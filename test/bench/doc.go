// Package bench measures what Proffer costs, with Benchmark functions. Those that need processes start
// the operator, and the small programs serve and follow, with which it is compared. README.md has the
// goals and the figures.
package bench
