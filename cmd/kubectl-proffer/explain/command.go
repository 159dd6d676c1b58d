// Package explain is the command kubectl proffer explain: why a consumer is offered what it is.
package explain

import (
	"context"
	"errors"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"proffer.dev/proffer/cmd/kubectl-proffer/internal/complete"
	"proffer.dev/proffer/cmd/kubectl-proffer/internal/operatorclient"
	"proffer.dev/proffer/cmd/kubectl-proffer/internal/output"
	"proffer.dev/proffer/cmd/kubectl-proffer/internal/unknown"
)

// NewCommand returns the command.
func NewCommand(flags *operatorclient.Flags, streams genericiooptions.IOStreams) *cobra.Command {
	var format string
	var known bool
	cmd := &cobra.Command{
		Use:   "explain CONSUMER[/CLASS[/RESOURCE]]",
		Short: "Explain why a consumer is offered what it is",
		Long: `Explain why a consumer is offered what it is: every step of the arithmetic, the policies that do not
decide and why, the ResourceSlices, and the pods that count as the consumer's.

An empty class, as in rome/ or rome//cpu, is the class without a name. A consumer that the operator
does not know gets the default offer, also a misspelt one: --known refuses it.

Amounts are rounded down, as in the explanations; -o wide prints them exactly.

It needs Role ` + operatorclient.Reader.Role + ` in the namespace of the operator.`,
		Example: `  # Everything about one consumer
  kubectl proffer explain rome

  # One class
  kubectl proffer explain rome/gold

  # One amount
  kubectl proffer explain rome/gold/cpu`,
		Args:              one,
		ValidArgsFunction: complete.Subjects(flags),
		RunE: func(cmd *cobra.Command, args []string) error {
			what, err := parseSubject(args[0])
			if err != nil {
				return err
			}
			return run(cmd.Context(), flags, streams, what, format, known)
		},
	}
	unknown.Flag(cmd, &known)
	complete.FormatFlag(cmd, &format, output.Wide, output.JSON, output.YAML)
	return cmd
}

// one requires the consumer.
func one(_ *cobra.Command, args []string) error {
	if len(args) != 1 {
		return errors.New("write one consumer, such as: kubectl proffer explain rome")
	}
	return nil
}

func run(
	ctx context.Context, flags *operatorclient.Flags, streams genericiooptions.IOStreams, what subject, format string,
	known bool,
) error {
	client := flags.Client(operatorclient.Reader)
	done := output.Slow(streams.ErrOut, "Waiting for the operator")
	consumer, err := client.Consumer(ctx, what.consumer)
	done()
	if err != nil {
		return err
	}
	notice, err := unknown.Check(ctx, consumer, client.Offers, format, known, streams.ErrOut)
	if err != nil {
		return err
	}
	p := output.For(streams.Out)
	unknown.Print(notice, streams.ErrOut)
	if err := what.narrow(consumer); err != nil {
		return err
	}
	defer unknown.Print(notice, streams.ErrOut)
	return p.Answer(format, consumer, describe(consumer, format, p.Width)...)
}
