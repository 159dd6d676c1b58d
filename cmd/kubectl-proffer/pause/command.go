// Package pause has the commands kubectl proffer pause and kubectl proffer resume. They set and remove
// spec.mode and spec.pausedUntil of ResourcePolicies, and nothing else.
package pause

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/dynamic"

	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/cmd/kubectl-proffer/internal/complete"
	"proffer.dev/proffer/cmd/kubectl-proffer/internal/operatorclient"
	"proffer.dev/proffer/cmd/kubectl-proffer/internal/output"
)

// FieldManager owns the fields that a pause sets.
const FieldManager = "kubectl-proffer-pause"

// timeout bounds a command.
const timeout = 30 * time.Second

const pauseLong = `Pause policies: what their consumers have stays as it is.

A paused policy decides as before, and no other takes over. Offers neither rise nor fall,
ResourceSlices are granted nothing more, and nothing is taken back, also if nodes fail. A consumer
that has nothing is offered 0. The catalog says Paused.

The command sets spec.mode and, with --until, spec.pausedUntil by server-side apply as the field
manager ` + FieldManager + `, and prints this edit. kubectl proffer resume removes exactly
these fields. A file that sets spec.mode, and is applied again, ends the pause: leave mode out of
files.

It needs the rights to get, list and patch resourcepolicies, as in ClusterRole
proffer-resourcepolicy-editor.`

const pauseExamples = `  # Until somebody resumes it
  kubectl proffer pause gold

  # Every policy of a class, until six in the morning
  kubectl proffer pause --class gold --until 06:00

  # For two hours
  kubectl proffer pause gold --until 2h`

const resumeLong = `End the pause of policies: remove what kubectl proffer pause has set.

Only the fields of the field manager ` + FieldManager + ` are removed. A policy that is paused
by somebody else, such as by a file, stays paused, and the error says by whom.

It needs the rights to get, list and patch resourcepolicies, as in ClusterRole
proffer-resourcepolicy-editor.`

const resumeExamples = `  # One policy
  kubectl proffer resume gold

  # Every policy of a class
  kubectl proffer resume --class gold`

type options struct {
	flags   *operatorclient.Flags
	streams genericiooptions.IOStreams
	now     func() time.Time

	class string
	// anyClass is set if no class was named.
	anyClass bool
	until    string
}

// NewPauseCommand returns the command pause.
func NewPauseCommand(flags *operatorclient.Flags, streams genericiooptions.IOStreams) *cobra.Command {
	o := &options{flags: flags, streams: streams, now: time.Now}
	cmd := o.command((*options).pause)
	cmd.Use, cmd.Short = "pause POLICY... | --class CLASS", "Keep what the consumers of policies have as it is"
	cmd.Long, cmd.Example = pauseLong, pauseExamples
	cmd.Flags().StringVar(&o.until, "until", "",
		"End the pause at this time: a time of day such as 06:00, a duration such as 2h, or 2026-12-01T06:00:00Z.")
	complete.Flag(cmd, "until", cobra.NoFileCompletions)
	return cmd
}

// NewResumeCommand returns the command resume.
func NewResumeCommand(flags *operatorclient.Flags, streams genericiooptions.IOStreams) *cobra.Command {
	cmd := (&options{flags: flags, streams: streams, now: time.Now}).command((*options).resume)
	cmd.Use, cmd.Short = "resume POLICY... | --class CLASS", "End the pause of policies"
	cmd.Long, cmd.Example = resumeLong, resumeExamples
	return cmd
}

// editor edits one policy, and returns the lines that say what it has done.
type editor func(
	o *options, ctx context.Context, in dynamic.ResourceInterface, p *unstructured.Unstructured,
) ([]string, error)

// command returns a command that edits the selected policies.
func (o *options) command(edit editor) *cobra.Command {
	cmd := &cobra.Command{
		ValidArgsFunction: complete.Policies(o.flags),
		RunE: func(cmd *cobra.Command, names []string) error {
			o.anyClass = !cmd.Flags().Changed("class")
			if (len(names) > 0) != o.anyClass {
				return fmt.Errorf("name policies, or a class with --class, but not both: see %s --help", cmd.CommandPath())
			}
			return o.run(cmd.Context(), names, edit)
		},
	}
	cmd.Flags().StringVar(&o.class, "class", "", `All policies of this class. "": those of the unnamed pool.`)
	complete.Flag(cmd, "class", complete.Classes(o.flags))
	return cmd
}

// run edits each selected policy, and goes on after an error.
func (o *options) run(ctx context.Context, names []string, edit editor) error {
	in, err := policies(o.flags)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	defer output.Slow(o.streams.ErrOut, "Waiting for the API server")()
	selected, err := o.selected(ctx, in, names)
	if err != nil {
		return err
	}
	var errs []error
	for i := range selected {
		p := &selected[i]
		lines, err := edit(o, ctx, in, p)
		if err != nil {
			errs = append(errs, fmt.Errorf("ResourcePolicy %s: %w", p.GetName(), explain(err)))
			continue
		}
		if err := output.For(o.streams.Out).Lines(lines...); err != nil {
			return err
		}
	}
	return errors.Join(errs...)
}

// policies returns the ResourcePolicies of the cluster that the flags name.
func policies(flags *operatorclient.Flags) (dynamic.ResourceInterface, error) {
	config, err := flags.RESTConfig()
	if err != nil {
		return nil, err
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("connecting to the API server: %w", err)
	}
	return client.Resource(v1alpha1.GroupVersion.WithResource("resourcepolicies")), nil
}

// selected returns the policies of these names or, without names, those of the class.
func (o *options) selected(
	ctx context.Context, in dynamic.ResourceInterface, names []string,
) (selected []unstructured.Unstructured, err error) {
	if o.anyClass {
		for _, name := range names {
			p, err := in.Get(ctx, name, metav1.GetOptions{})
			if err != nil {
				return nil, explain(err)
			}
			selected = append(selected, *p)
		}
		return selected, nil
	}
	all, err := in.List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, explain(err)
	}
	selected = slices.DeleteFunc(all.Items, func(p unstructured.Unstructured) bool {
		class, _, _ := unstructured.NestedString(p.Object, "spec", "class")
		return class != o.class
	})
	if len(selected) == 0 {
		return nil, fmt.Errorf("no ResourcePolicy is of the class %q: see kubectl get resourcepolicies", o.class)
	}
	return selected, nil
}

// pause pauses a policy.
func (o *options) pause(
	ctx context.Context, in dynamic.ResourceInterface, p *unstructured.Unstructured,
) ([]string, error) {
	switch owners := modeOwners(p); {
	case mode(p) == v1alpha1.ModeDryRun:
		return nil, errors.New("it is a dry run, which decides nothing: there is nothing to pause")
	case mode(p) == v1alpha1.ModePaused && !slices.Contains(owners, FieldManager):
		return nil, fmt.Errorf("it is paused already, by %s: change it there", strings.Join(owners, " and "))
	}
	spec, until := map[string]any{"mode": string(v1alpha1.ModePaused)}, "until it is resumed"
	edit := []string{"  spec:", "    mode: " + string(v1alpha1.ModePaused)}
	if o.until != "" {
		end, err := parseUntil(o.until, o.now())
		if err != nil {
			return nil, err
		}
		text := end.UTC().Format(time.RFC3339)
		spec["pausedUntil"], until = text, "until "+end.Format(time.RFC3339)
		edit = append(edit, fmt.Sprintf("    pausedUntil: %q", text))
	}
	// Force: a file may have set the mode to Active, which is also the default that resume leaves.
	if _, err := apply(ctx, in, p, map[string]any{"spec": spec}); err != nil {
		return nil, err
	}
	name := p.GetName()
	lines := append([]string{fmt.Sprintf("ResourcePolicy %s is paused %s. The edit, by the field manager %s:",
		name, until, FieldManager)}, edit...)
	return append(lines, "It ends with: kubectl proffer resume "+name), nil
}

// resume ends the pause of a policy.
func (o *options) resume(
	ctx context.Context, in dynamic.ResourceInterface, p *unstructured.Unstructured,
) ([]string, error) {
	owners := modeOwners(p)
	if mode(p) != v1alpha1.ModePaused {
		return []string{fmt.Sprintf("ResourcePolicy %s is not paused.", p.GetName())}, nil
	}
	after := p
	if slices.Contains(owners, FieldManager) {
		var err error
		if after, err = apply(ctx, in, p, nil); err != nil {
			return nil, err
		}
		owners = modeOwners(after)
	}
	if mode(after) == v1alpha1.ModePaused {
		return nil, fmt.Errorf("it is paused by %s: set spec.mode to Active there", strings.Join(owners, " and "))
	}
	return []string{fmt.Sprintf("ResourcePolicy %s is %s again.", p.GetName(), mode(after))}, nil
}

// apply makes these fields, and no others, the ones that FieldManager owns of a policy.
func apply(
	ctx context.Context, in dynamic.ResourceInterface, p *unstructured.Unstructured, fields map[string]any,
) (*unstructured.Unstructured, error) {
	u := &unstructured.Unstructured{Object: fields}
	if fields == nil {
		u.Object = map[string]any{}
	}
	u.SetGroupVersionKind(p.GroupVersionKind())
	u.SetName(p.GetName())
	u.SetUID(p.GetUID()) // Of a policy that was deleted meanwhile, none is created.
	return in.Apply(ctx, p.GetName(), u, metav1.ApplyOptions{FieldManager: FieldManager, Force: true})
}

// mode returns the mode in the spec.
func mode(p *unstructured.Unstructured) v1alpha1.Mode {
	text, _, _ := unstructured.NestedString(p.Object, "spec", "mode")
	return v1alpha1.Mode(text)
}

// modeOwners returns the field managers of spec.mode.
func modeOwners(p *unstructured.Unstructured) (managers []string) {
	for _, entry := range p.GetManagedFields() {
		var fields struct {
			Spec map[string]any `json:"f:spec"`
		}
		if entry.FieldsV1 == nil || json.Unmarshal(entry.FieldsV1.GetRawBytes(), &fields) != nil {
			continue
		}
		if _, owns := fields.Spec["f:mode"]; owns && !slices.Contains(managers, entry.Manager) {
			managers = append(managers, entry.Manager)
		}
	}
	return managers
}

// explain says what to do about an error of the API server.
func explain(err error) error {
	switch {
	case apierrors.IsNotFound(err):
		return fmt.Errorf("%w: see kubectl get resourcepolicies", err)
	case apierrors.IsForbidden(err):
		return fmt.Errorf("%w: ask for the ClusterRole proffer-resourcepolicy-editor", err)
	}
	if _, failed := errors.AsType[*url.Error](err); failed {
		return operatorclient.Explain(err)
	}
	return err
}
