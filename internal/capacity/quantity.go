package capacity

import (
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
)

// Quantity returns an amount as Kubernetes writes it, in the form that Kubernetes itself prefers for the resource: bytes in
// powers of two where they are whole, everything else in powers of ten.
func Quantity(name string, amount int64) resource.Quantity {
	switch {
	case name == CPU:
		return *resource.NewMilliQuantity(amount, resource.DecimalSI)
	case bytes(name):
		return *resource.NewQuantity(amount, resource.BinarySI)
	}
	return *resource.NewQuantity(amount, resource.DecimalSI)
}

func bytes(name string) bool {
	switch name {
	case Memory, "storage", "ephemeral-storage":
		return true
	}
	return strings.HasPrefix(name, "hugepages-")
}
