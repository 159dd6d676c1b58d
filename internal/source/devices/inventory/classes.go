package inventory

import (
	"cmp"
	"slices"
	"strings"
	"time"

	resourcev1 "k8s.io/api/resource/v1"
)

// Class is a DeviceClass.
type Class struct {
	Name string
	// Resource is its extendedResourceName, empty for none.
	Resource string
	Created  time.Time
	// Selectors are CEL expressions, all of which must select a device.
	Selectors []string
}

// Resources maps the extended resources to the classes that serve them. Of classes with the same
// extendedResourceName the newest serves it, then the first by name, as in the scheduler
// (k8s.io/dynamic-resource-allocation/deviceclass/extendedresourcecache). At most MaxClasses classes count, the
// oldest ones.
func Resources(classes []Class) map[string]Class {
	all := slices.SortedFunc(slices.Values(classes), func(a, b Class) int {
		return cmp.Or(a.Created.Compare(b.Created), strings.Compare(b.Name, a.Name))
	})
	resources := map[string]Class{}
	for _, c := range all[:min(len(all), MaxClasses)] {
		resources[cmp.Or(c.Resource, resourcev1.ResourceDeviceClassPrefix+c.Name)] = c
	}
	return resources
}
