package capacity

import (
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
)

// Quantity returns an amount as Kubernetes writes it. Bytes are written in powers of two or of ten, whichever is shorter, so
// that what an admin wrote as 2Gi or as 2G reads the same.
func Quantity(name string, amount int64) resource.Quantity {
	if name == CPU {
		return *resource.NewMilliQuantity(amount, resource.DecimalSI)
	}
	decimal := resource.NewQuantity(amount, resource.DecimalSI)
	if bytes(name) {
		if binary := resource.NewQuantity(amount, resource.BinarySI); len(binary.String()) <= len(decimal.String()) {
			return *binary
		}
	}
	return *decimal
}

func bytes(name string) bool {
	switch name {
	case Memory, "storage", "ephemeral-storage":
		return true
	}
	return strings.HasPrefix(name, "hugepages-")
}
