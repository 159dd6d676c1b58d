package toggle

import (
	"errors"
	"fmt"
	"net/url"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation"

	"proffer.dev/proffer/api/rest"
)

// Parse reads a change from the parameters of a request. Its error says what to write.
func Parse(values url.Values) (rest.Toggle, error) {
	known := []string{rest.ToggleID, rest.ToggleEnable, rest.ToggleConsumer, rest.ToggleOrchestration}
	for name, all := range values {
		switch {
		case !slices.Contains(known, name):
			return rest.Toggle{}, fmt.Errorf(
				"there is no parameter %.64q: write id, enable, consumer and orchestration only", name)
		case len(all) != 1:
			return rest.Toggle{}, fmt.Errorf("%s is written %d times: write it once", name, len(all))
		}
	}
	change := rest.Toggle{
		ID: values.Get(rest.ToggleID), Consumer: values.Get(rest.ToggleConsumer),
		Orchestration: values.Get(rest.ToggleOrchestration),
	}
	switch enable := values.Get(rest.ToggleEnable); {
	case enable != "true" && enable != "false":
		return rest.Toggle{}, fmt.Errorf("enable=%.64q: write enable=true or enable=false", enable)
	case len(validation.IsDNS1123Label(change.ID)) > 0:
		return rest.Toggle{}, fmt.Errorf(
			"id=%.64q is not a cluster ID: write that of the provider as Liqo shows it, such as oslo", change.ID)
	case change.Consumer != "" && len(validation.IsDNS1123Label(change.Consumer)) > 0:
		return rest.Toggle{}, fmt.Errorf("consumer=%.64q is not a cluster ID: "+
			"write it as Liqo shows it, such as rome, or leave it out for every consumer", change.Consumer)
	// An empty name may be a variable that a script has not set.
	case values.Has(rest.ToggleOrchestration) && change.Orchestration == "":
		return rest.Toggle{}, errors.New("orchestration is empty: write a name, or leave it out for all Orchestrations")
	case change.Orchestration != "" && len(validation.IsDNS1123Subdomain(change.Orchestration)) > 0:
		return rest.Toggle{}, fmt.Errorf(
			"orchestration=%.64q is not a name: write that of an Orchestration", change.Orchestration)
	default:
		change.Enable = enable == "true"
		return change, nil
	}
}
