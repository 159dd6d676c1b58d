package main

import (
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	clientrest "k8s.io/client-go/rest"

	"proffer.dev/proffer/cmd/kubectl-proffer/catalog"
	"proffer.dev/proffer/cmd/kubectl-proffer/check"
	"proffer.dev/proffer/cmd/kubectl-proffer/dashboard"
	"proffer.dev/proffer/cmd/kubectl-proffer/explain"
	"proffer.dev/proffer/cmd/kubectl-proffer/internal/operatorclient"
	"proffer.dev/proffer/cmd/kubectl-proffer/migrate"
	"proffer.dev/proffer/cmd/kubectl-proffer/offers"
	"proffer.dev/proffer/cmd/kubectl-proffer/pause"
	"proffer.dev/proffer/cmd/kubectl-proffer/providers"
	"proffer.dev/proffer/cmd/kubectl-proffer/simulate"
	"proffer.dev/proffer/cmd/kubectl-proffer/snapshot"
	"proffer.dev/proffer/cmd/kubectl-proffer/status"
	"proffer.dev/proffer/cmd/kubectl-proffer/top"
	versioncmd "proffer.dev/proffer/cmd/kubectl-proffer/version"
	"proffer.dev/proffer/internal/command"
)

// newRootCommand returns kubectl proffer with all its commands.
func newRootCommand(streams genericiooptions.IOStreams) *cobra.Command {
	config := genericclioptions.NewConfigFlags(true).WithWrapConfigFn(func(c *clientrest.Config) *clientrest.Config {
		c.WarningHandler = clientrest.NewWarningWriter(streams.ErrOut, clientrest.WarningWriterOptions{Deduplicate: true})
		return c
	})
	root := &cobra.Command{
		Use:   "kubectl-proffer",
		Short: "Ask Proffer what this cluster offers to its consumers, and why",
		Long: `Ask Proffer what this cluster offers to its consumers and why, and rehearse changes.

The plugin reaches the operator through the API server, with your own rights. The commands catalog
and providers are for consumers: they ask the providers of the cluster that they run against.`,
		Annotations:   map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl proffer"},
		SilenceErrors: true,
		SilenceUsage:  true,
		// kubectl completes plugins itself, with kubectl_complete-proffer.
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
	}
	root.SetIn(streams.In)
	root.SetOut(streams.Out)
	root.SetErr(streams.ErrOut)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return fmt.Errorf("%w: see %s --help", err, cmd.CommandPath())
	})
	flags := operatorclient.NewFlags(config)
	config.AddFlags(root.PersistentFlags())
	flags.AddFlags(root.PersistentFlags())
	root.AddCommand(
		status.NewCommand(flags, streams),
		offers.NewCommand(flags, streams),
		explain.NewCommand(flags, streams),
		simulate.NewCommand(flags, streams),
		pause.NewPauseCommand(flags, streams),
		pause.NewStopCommand(flags, streams),
		pause.NewResumeCommand(flags, streams),
		snapshot.NewCommand(flags, streams),
		top.NewCommand(flags, streams),
		dashboard.NewCommand(flags, streams),
		migrate.NewCommand(flags, streams),
		check.NewCommand(flags, streams),
		catalog.NewCommand(flags, streams),
		providers.NewCommand(flags, streams),
		versioncmd.NewCommand(flags, streams, command.VersionOf(version)),
	)
	return root
}
