// Command custom-operator is Proffer's operator with filters and a reconciler of its own.
package main

import (
	"proffer.dev/proffer/operator"

	"example.com/custom-operator/audit"
	"example.com/custom-operator/project"
	"example.com/custom-operator/temperature"
)

func main() {
	operator.Main(
		operator.WithNodeFilter(temperature.Name, temperature.New),
		operator.WithSliceFilter(project.Name, project.New),
		operator.WithReconciler(audit.Name, audit.New),
	)
}
