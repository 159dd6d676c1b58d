// Package temperature has a filter that leaves out hot nodes.
package temperature

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"proffer.dev/proffer/plugin"
)

// Name is the name of the filter in the configuration file.
const Name = "Temperature"

// label is the label of nodes with their temperature in degrees Celsius.
const label = "example.com/temperature"

// args are the arguments in the configuration file.
type args struct {
	// Most is the temperature from which on a node is left out.
	Most int `json:"most"`
}

type filter struct{ args }

// New returns the filter.
func New(text json.RawMessage, _ plugin.Handle) (plugin.NodeFilter, error) {
	f := &filter{}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if len(text) > 0 {
		if err := d.Decode(&f.args); err != nil {
			return nil, fmt.Errorf("its arguments are wrong: %w", err)
		}
	}
	if f.Most <= 0 {
		return nil, errors.New("its argument most is missing: write a temperature above 0, such as most: 70")
	}
	return f, nil
}

// Name implements plugin.NodeFilter.
func (f *filter) Name() string { return Name }

// Filter implements plugin.NodeFilter. A node without a readable temperature is not left out.
func (f *filter) Filter(_ *plugin.Policy, n *plugin.Node) (ok bool, why string) {
	degrees, err := strconv.Atoi(n.Labels[label])
	if err != nil || degrees < f.Most {
		return true, ""
	}
	return false, fmt.Sprintf("%d degrees, and %d are too hot", degrees, f.Most)
}
