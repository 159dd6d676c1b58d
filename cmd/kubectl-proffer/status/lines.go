package status

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"proffer.dev/proffer/api/rest"
	"proffer.dev/proffer/cmd/kubectl-proffer/internal/output"
	"proffer.dev/proffer/internal/overview"
)

// arrow begins the line of a command.
const arrow = "\n-> "

// lines returns an overview for a terminal: a row for each finding with its command on the next line, and when
// that was evaluated.
func lines(all *rest.Overview, width int, color bool) []string {
	out := []string{"Nothing needs you."}
	if len(all.Findings) > 0 {
		out = append(table(all).Lines(width, color), "")
	}
	out = append(out, output.Wrap(evaluated(all), width)...)
	for _, unknown := range all.Unknown {
		out = append(out, output.Wrap("Not known to the replica that answered: "+output.OneLine(unknown)+".", width)...)
	}
	return out
}

func table(all *rest.Overview) *output.Table {
	t := &output.Table{Header: []string{"KIND", "STATUS", "AGE", "FINDING"}, Text: true}
	for _, f := range all.Findings {
		age := ""
		if f.Since != nil {
			age = duration.HumanDuration(all.Now.Sub(*f.Since))
		}
		// The message may repeat what a consumer wrote, and breaks into lines anywhere: only a command has an arrow.
		text := strings.ReplaceAll(output.OneLine(f.Message), "->", ">") + arrow + output.OneLine(f.Do)
		t.Rows = append(t.Rows, output.Row{Cells: []string{f.Kind, f.Status, age, text}, Red: f.Status == rest.StatusWrong})
	}
	return t
}

func evaluated(all *rest.Overview) string {
	text := fmt.Sprintf("Evaluated at %s, revision %d", all.Time.UTC().Format(time.RFC3339), all.Revision)
	if quiet := overview.Quiet(all); quiet != "" {
		text += ", " + quiet + " ago: nothing has changed since"
	}
	return text + "."
}
