// Command proffer runs the operator.
package main

import "proffer.dev/proffer/operator"

// version is set by the linker.
var version string

func main() { operator.Main(operator.WithVersion(version)) }
