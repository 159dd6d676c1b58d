// Package complete completes arguments and flags in the shell with what the operator and the API server know.
package complete

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/metadata"

	"proffer.dev/proffer/api/rest"
	"proffer.dev/proffer/cmd/kubectl-proffer/internal/operatorclient"
	"proffer.dev/proffer/cmd/kubectl-proffer/internal/output"
)

// timeout bounds a shell's wait for completions.
const timeout = 3 * time.Second

// Flag sets how the values of a flag are completed.
func Flag(cmd *cobra.Command, name string, with cobra.CompletionFunc) {
	if err := cmd.RegisterFlagCompletionFunc(name, with); err != nil {
		panic(err) // The command has no such flag.
	}
}

// FormatFlag adds the flag --output to a command, which refuses a format that is not one of these.
func FormatFlag(cmd *cobra.Command, format *string, formats ...string) {
	cmd.Flags().StringVarP(format, "output", "o", *format, "The output format: "+output.OrdersText(formats)+".")
	Flag(cmd, "output", Words(formats...))
	cmd.PreRunE = func(*cobra.Command, []string) error { return output.CheckFormat(*format, formats...) }
}

// Words completes one of these words.
func Words(words ...string) cobra.CompletionFunc {
	return cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp)
}

// Consumers completes the ID of a consumer, as the only argument.
func Consumers(flags *operatorclient.Flags) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		return Subjects(flags)(cmd, args, "")
	}
}

// Subjects completes CONSUMER[/CLASS[/RESOURCE]], as the only argument.
func Subjects(flags *operatorclient.Flags) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return offers(flags, func(all *rest.Offers) []string { return subjects(all.Consumers, word) })(cmd, args, word)
	}
}

// subjects returns the subjects with as many parts as the word has: consumers, their classes, or the resources
// in these.
func subjects(consumers []rest.Consumer, word string) (all []string) {
	parts := strings.SplitN(word, "/", 3)
	for i := range consumers {
		c := &consumers[i]
		switch {
		case len(parts) == 1:
			all = append(all, c.ClusterID)
			continue
		case parts[0] != c.ClusterID:
			continue
		}
		for _, o := range c.Offers {
			class := c.ClusterID + "/" + o.Class
			switch {
			case len(parts) == 2:
				all = append(all, class)
			case parts[1] == o.Class:
				for _, resource := range slices.Sorted(maps.Keys(o.Resources)) {
					all = append(all, class+"/"+resource)
				}
			}
		}
	}
	return all
}

// Nodes completes the name of a node, with the caller's own right to list nodes.
func Nodes(flags *operatorclient.Flags) cobra.CompletionFunc {
	return Read(func(ctx context.Context) ([]string, error) {
		config, err := flags.RESTConfig()
		if err != nil {
			return nil, err
		}
		client, err := metadata.NewForConfig(config)
		if err != nil {
			return nil, err
		}
		list, err := client.Resource(corev1.SchemeGroupVersion.WithResource("nodes")).List(ctx, metav1.ListOptions{})
		if err != nil {
			return nil, err
		}
		return output.Texts(list.Items, func(n metav1.PartialObjectMetadata) string { return n.Name }), nil
	})
}

// Classes completes the name of a class that policies offer.
func Classes(flags *operatorclient.Flags) cobra.CompletionFunc {
	return offers(flags, func(all *rest.Offers) []string {
		classes := sets.New(output.Texts(all.Policies, func(p rest.Policy) string { return p.Class })...)
		return sets.List(classes.Delete(""))
	})
}

// Policies completes the name of a ResourcePolicy.
func Policies(flags *operatorclient.Flags) cobra.CompletionFunc {
	return offers(flags, func(all *rest.Offers) []string {
		return output.Texts(all.Policies, func(p rest.Policy) string { return p.Name })
	})
}

// offers completes with words from the operator's offers, nothing if it does not answer.
func offers(flags *operatorclient.Flags, words func(*rest.Offers) []string) cobra.CompletionFunc {
	return Read(func(ctx context.Context) ([]string, error) {
		all, err := flags.Client(operatorclient.Reader).Offers(ctx)
		if err != nil {
			return nil, err
		}
		return words(all), nil
	})
}

// Read completes with the words that read returns in time, also beside an error.
func Read(read func(ctx context.Context) ([]string, error)) cobra.CompletionFunc {
	return func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		ctx, cancel := context.WithTimeout(cmd.Context(), timeout)
		defer cancel()
		words, err := read(ctx)
		if err != nil {
			cobra.CompDebugln(err.Error(), true)
		}
		return words, cobra.ShellCompDirectiveNoFileComp
	}
}
