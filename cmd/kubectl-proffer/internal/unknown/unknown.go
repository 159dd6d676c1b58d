// Package unknown reports a consumer that the operator does not know: a misspelt ID gets the default offer,
// as any other ID does.
package unknown

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"proffer.dev/proffer/api/rest"
	"proffer.dev/proffer/cmd/kubectl-proffer/internal/exit"
	"proffer.dev/proffer/cmd/kubectl-proffer/internal/output"
)

// maxNear bounds the names that a notice suggests.
const maxNear = 3

// Flag adds --known to a command.
func Flag(cmd *cobra.Command, known *bool) {
	cmd.Flags().BoolVar(known, "known", false,
		"End with status 3, and show nothing, if the operator does not know the consumer.")
}

// Print prints a notice, unless it is empty.
func Print(notice string, errOut io.Writer) {
	if notice != "" {
		fmt.Fprintln(errOut, output.OneLine(notice))
	}
}

// Check returns the Notice for an answer in this format, of which JSON and YAML have none. With --known it ends the
// command for a consumer that the operator does not know.
func Check(
	ctx context.Context, c *rest.Consumer, list func(context.Context) (*rest.Offers, error), format string, known bool,
	errOut io.Writer,
) (notice string, err error) {
	if !known && output.IsValue(format) {
		return "", nil
	}
	if notice = Notice(ctx, c, list); notice == "" || !known {
		return notice, nil
	}
	fmt.Fprintln(errOut, "error:", output.OneLine(notice))
	return "", exit.StatusError(exit.Failed)
}

// Notice returns one line about a consumer, empty for one that the operator knows. It suggests similar IDs of the
// consumers that list returns, and none if list fails.
func Notice(ctx context.Context, c *rest.Consumer, list func(context.Context) (*rest.Offers, error)) string {
	if c.Known {
		return ""
	}
	notice := c.ClusterID + " is not a known consumer: it gets the default offer."
	all, err := list(ctx)
	if err != nil {
		return notice
	}
	ids := output.Texts(all.Consumers, func(c rest.Consumer) string { return c.ClusterID })
	if names := Similar(c.ClusterID, ids); len(names) > 0 {
		notice += " Did you mean " + strings.Join(names, " or ") + "?"
	}
	return notice
}

// Similar returns the first names that are similar to one by the measure of cobra for misspelt commands, or begin
// with it, but not the name itself. The same name in another case comes first.
func Similar(name string, all []string) []string {
	of := cobra.Command{SuggestionsMinimumDistance: 2}
	for _, other := range all {
		if other != name { // The list may be newer than the answer that did not know it.
			of.AddCommand(&cobra.Command{Use: other, Run: func(*cobra.Command, []string) {}})
		}
	}
	names := of.SuggestionsFor(name)
	slices.SortFunc(names, func(a, b string) int {
		otherCase := func(other string) int {
			if strings.EqualFold(other, name) {
				return 0
			}
			return 1
		}
		return cmp.Or(otherCase(a)-otherCase(b), strings.Compare(a, b))
	})
	return names[:min(len(names), maxNear)]
}
