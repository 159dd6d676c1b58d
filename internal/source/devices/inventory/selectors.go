package inventory

import (
	"context"
	"maps"
	"slices"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/cel"
)

// Selectors select devices by the classes of the extended resources.
type Selectors struct{ all []selectorOf }

// selectorOf holds the compiled selectors of one resource's class.
type selectorOf struct {
	resource string
	// programs is empty for a class that selects every device. broken is set if one does not compile.
	programs []cel.CompilationResult
	broken   bool
}

// Compile compiles the selectors of the classes by which resources are served. Each evaluation has the cost limit
// of the scheduler: resource.k8s.io's CELSelectorExpressionMaxCost.
func Compile(resources map[string]Class) *Selectors {
	compiler := cel.GetCompiler(cel.Features{EnableConsumableCapacity: true, EnableListTypeAttributes: true})
	compiled := map[string]cel.CompilationResult{}
	s := &Selectors{}
	for _, resource := range slices.Sorted(maps.Keys(resources)) {
		of := selectorOf{resource: resource}
		for _, text := range resources[resource].Selectors {
			program, known := compiled[text]
			if !known {
				program = compiler.CompileCELExpression(text, cel.Options{DisableCostEstimation: true})
				compiled[text] = program
			}
			of.programs, of.broken = append(of.programs, program), of.broken || program.Error != nil
		}
		s.all = append(s.all, of)
	}
	return s
}

// selecting returns the resources whose class selects a device, and those whose selector fails on it.
func (s *Selectors) selecting(driver string, d *resourcev1.Device) (resources, failed []string) {
	input := cel.Device{
		Driver: driver, AllowMultipleAllocations: d.AllowMultipleAllocations, Attributes: d.Attributes, Capacity: d.Capacity,
	}
	for _, of := range s.all {
		switch selects, fails := of.selects(input); {
		case fails:
			failed = append(failed, of.resource)
		case selects:
			resources = append(resources, of.resource)
		}
	}
	return resources, failed
}

// selects evaluates the selectors in their order, as the scheduler does: the first that does not select decides.
func (of *selectorOf) selects(d cel.Device) (selects, fails bool) {
	if of.broken {
		return false, true
	}
	for _, p := range of.programs {
		ok, _, err := p.DeviceMatches(context.Background(), d)
		if err != nil || !ok {
			return false, err != nil
		}
	}
	return true, false
}
