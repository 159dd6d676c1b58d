package check

import (
	"fmt"
	"slices"

	"proffer.dev/proffer/cmd/kubectl-proffer/internal/output"
)

// Status is the result of one check. A later one outweighs the earlier ones.
type Status string

const (
	// OK is a check that passed.
	OK Status = "ok"
	// Skipped is a check that could not be made.
	Skipped Status = "skipped"
	// Warning is a state that works, but not as an admin may expect.
	Warning Status = "warning"
	// Wrong is a state in which something does not work.
	Wrong Status = "wrong"
)

// exitStatus is the exit status of the process for the weightiest finding.
var exitStatus = map[Status]int{OK: 0, Skipped: 1, Warning: 1, Wrong: 2}

// ExitStatus returns the exit status of a process that reports this. A status that is not known counts as wrong.
func (s Status) ExitStatus() int {
	if status, known := exitStatus[s]; known {
		return status
	}
	return exitStatus[Wrong]
}

// Check is the name of a check.
type Check string

func (c Check) ok(format string, args ...any) Finding { return c.finding(OK, format, args...) }

func (c Check) skipped(format string, args ...any) Finding {
	return c.finding(Skipped, format, args...)
}

func (c Check) warning(format string, args ...any) Finding {
	return c.finding(Warning, format, args...)
}

func (c Check) wrong(format string, args ...any) Finding { return c.finding(Wrong, format, args...) }

func (c Check) finding(s Status, format string, args ...any) Finding {
	return Finding{Check: c, Status: s, Message: fmt.Sprintf(format, args...)}
}

// Finding is the result of one check. A check has one finding, or one for each object that is not as it
// should be.
type Finding struct {
	// Check is the check.
	Check Check `json:"check"`
	// Status is ok, skipped, warning or wrong.
	Status Status `json:"status"`
	// Message describes the finding.
	Message string `json:"message"`
	// Do names the remedy. It is absent if nothing is to be done.
	Do string `json:"do,omitempty"`
}

// do returns the finding with its remedy.
func (f Finding) do(remedy string) Finding {
	f.Do = remedy
	return f
}

// Report is all that was found: the JSON of kubectl proffer check -o json.
type Report struct {
	// Status is the weightiest of Findings.
	Status Status `json:"status"`
	// Findings are in the order of the checks.
	Findings []Finding `json:"findings"`
}

func newReport(findings []Finding) Report {
	weight := func(f Finding) int { return slices.Index([]Status{OK, Skipped, Warning, Wrong}, f.Status) }
	worst := slices.MaxFunc(append([]Finding{{Status: OK}}, findings...), func(a, b Finding) int {
		return weight(a) - weight(b)
	})
	return Report{Status: worst.Status, Findings: findings}
}

// table has a row for each finding, with what to do on the next line.
func (r Report) table() *output.Table {
	t := &output.Table{Header: []string{"CHECK", "STATUS", "FINDING"}, Text: true}
	for _, f := range r.Findings {
		row := output.Row{Cells: []string{string(f.Check), string(f.Status), f.Message}, Red: f.Status == Wrong}
		if f.Do != "" {
			row.Cells[2] += "\n-> " + f.Do
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}
