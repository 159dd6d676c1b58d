// Package snapshot is the command kubectl proffer snapshot: what the operator has evaluated, as a
// file.
package snapshot

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"proffer.dev/proffer/cmd/kubectl-proffer/internal/operatorclient"
	"proffer.dev/proffer/cmd/kubectl-proffer/internal/output"
)

// NewCommand returns the command.
func NewCommand(flags *operatorclient.Flags, streams genericiooptions.IOStreams) *cobra.Command {
	var anonymise bool
	cmd := &cobra.Command{
		Use:   "snapshot",
		Short: "Print everything that the operator has evaluated, as JSON",
		Long: `Print everything that the operator has evaluated, as JSON: policies, consumers, offers,
ResourceSlices, nodes and pods. The JSON is copied as it arrives, whatever its size.

With --anonymise, IDs of consumers, names of nodes and namespaces, values of labels and taints, and
names of ResourceSlices and pods become names such as consumer-1, each always the same one.
Annotations and messages are left out. Names of policies and resources, names of classes (also those
of storage, ingresses and load balancers), and keys of labels and taints stay.

It needs Role ` + operatorclient.Simulator.Role + ` in the namespace of the operator.`,
		Example: `  # Write the snapshot to a file
  kubectl proffer snapshot > world.json

  # Without names of consumers and nodes
  kubectl proffer snapshot --anonymise > world.json`,
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return run(cmd.Context(), flags, streams, anonymise)
		},
	}
	cmd.Flags().BoolVar(&anonymise, "anonymise", false,
		"Replace what names consumers, nodes, namespaces, ResourceSlices and pods, and values of labels.")
	return cmd
}

func run(
	ctx context.Context, flags *operatorclient.Flags, streams genericiooptions.IOStreams, anonymise bool,
) (err error) {
	defer output.Slow(streams.ErrOut, "Reading the snapshot")()
	snapshot, err := flags.Client(operatorclient.Simulator).Snapshot(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, snapshot.Close()) }()
	if !anonymise {
		if _, err := io.Copy(streams.Out, snapshot); err != nil {
			return fmt.Errorf("copying the snapshot, which is not complete: %w", err)
		}
		return nil
	}
	out := bufio.NewWriter(streams.Out)
	if err := Anonymise(out, snapshot); err != nil {
		return fmt.Errorf("anonymising the snapshot, which is not complete: %w", err)
	}
	return out.Flush()
}
