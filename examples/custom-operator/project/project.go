// Package project has a filter that refuses the requests of projects that have ended.
package project

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"proffer.dev/proffer/plugin"
)

// Name is the name of the filter in the configuration file.
const Name = "Project"

// label is the label of ResourceSlices with the name of their project.
const label = "example.com/project"

// args are the arguments in the configuration file.
type args struct {
	// Ended lists the projects that have ended.
	Ended []string `json:"ended"`
}

type filter struct{ args }

// New returns the filter.
func New(text json.RawMessage, _ plugin.Handle) (plugin.SliceFilter, error) {
	f := &filter{}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if len(text) > 0 {
		if err := d.Decode(&f.args); err != nil {
			return nil, fmt.Errorf("its arguments are wrong: %w", err)
		}
	}
	return f, nil
}

// Name implements plugin.SliceFilter.
func (f *filter) Name() string { return Name }

// Filter implements plugin.SliceFilter.
func (f *filter) Filter(_ *plugin.Policy, r *plugin.Request) (ok bool, why string) {
	if project := r.Labels[label]; slices.Contains(f.Ended, project) {
		return false, fmt.Sprintf("the project %s has ended", project)
	}
	return true, ""
}
