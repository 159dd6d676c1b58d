// Package pause has the commands kubectl proffer pause, stop and resume. They set and remove spec.mode,
// spec.pausedUntil and spec.pausedConsumers of ResourcePolicies, and nothing else.
package pause

import (
	"context"
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
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/yaml"

	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/cmd/kubectl-proffer/internal/complete"
	"proffer.dev/proffer/cmd/kubectl-proffer/internal/operatorclient"
	"proffer.dev/proffer/cmd/kubectl-proffer/internal/output"
	"proffer.dev/proffer/cmd/kubectl-proffer/internal/unknown"
	"proffer.dev/proffer/internal/kube"
)

// FieldManager owns the fields that pause and stop set.
const FieldManager = "kubectl-proffer-pause"

// timeout bounds a command.
const timeout = 30 * time.Second

// noticeTimeout bounds what a pause waits to hear whether the operator knows the consumer.
const noticeTimeout = 5 * time.Second

const pauseLong = `Pause policies: what their consumers have stays as it is.

A paused policy decides as before, and no other takes over. Offers neither rise nor fall,
ResourceSlices are granted nothing more, and nothing is taken back, also if nodes fail. A consumer
that has nothing is offered 0. The catalog says Paused.

With --class, dry runs are left out. With --consumer, the policies are paused for this consumer
alone: those that are named, or all but those that are for other consumers by ID. If the operator
can be asked, and does not know the consumer, a line says so.

The command sets spec.mode and spec.pausedUntil, or spec.pausedConsumers, by server-side apply as
the field manager ` + FieldManager + `, and prints this edit. kubectl proffer resume removes
exactly these fields. A file that sets spec.mode, and is applied again, ends the pause: leave mode
out of files.

It needs the rights to get, list and patch resourcepolicies, as in ClusterRole
proffer-resourcepolicy-editor.`

const pauseExamples = `  # Until somebody resumes it
  kubectl proffer pause gold

  # Every policy of a class, until six in the morning
  kubectl proffer pause --class gold --until 06:00

  # For two hours
  kubectl proffer pause gold --until 2h

  # For one consumer, in every class
  kubectl proffer pause --consumer rome`

const resumeLong = `Put policies back in force: remove what kubectl proffer pause or stop has set.

Only the fields of the field manager ` + FieldManager + ` are removed. A policy that is paused
or stopped by somebody else, such as by a file, stays as it is, and the error says by whom.

It needs the rights to get, list and patch resourcepolicies, as in ClusterRole
proffer-resourcepolicy-editor.`

const resumeExamples = `  # One policy
  kubectl proffer resume gold

  # Every policy of a class
  kubectl proffer resume --class gold

  # For one consumer
  kubectl proffer resume --consumer rome`

type options struct {
	flags   *operatorclient.Flags
	streams genericiooptions.IOStreams
	now     func() time.Time
	// policies are read and edited.
	policies dynamic.ResourceInterface

	class string
	// anyClass is set if no class was named.
	anyClass bool
	until    string
	// consumer is empty for all of them.
	consumer string
	// ends is set if the command ends a pause or a stop.
	ends bool
	// yes is set if stop does not ask.
	yes bool
}

// NewPauseCommand returns the command pause.
func NewPauseCommand(flags *operatorclient.Flags, streams genericiooptions.IOStreams) *cobra.Command {
	o := &options{flags: flags, streams: streams, now: time.Now}
	cmd := o.command(o.pauseEach)
	cmd.Use = "pause POLICY... | --class CLASS | --consumer CONSUMER"
	cmd.Short = "Keep what the consumers of policies have as it is"
	cmd.Long, cmd.Example = pauseLong, pauseExamples
	cmd.Flags().StringVar(&o.until, "until", "",
		"End the pause at this time: a time of day such as 06:00, a duration such as 2h, or 2026-12-01T06:00:00Z.")
	complete.Flag(cmd, "until", cobra.NoFileCompletions)
	o.consumerFlag(cmd, "Pause the policies for this consumer alone.")
	return cmd
}

// NewResumeCommand returns the command resume.
func NewResumeCommand(flags *operatorclient.Flags, streams genericiooptions.IOStreams) *cobra.Command {
	o := &options{flags: flags, streams: streams, now: time.Now, ends: true}
	cmd := o.command(func(ctx context.Context, selected []unstructured.Unstructured) error {
		return o.each(ctx, selected, o.resume)
	})
	cmd.Use = "resume POLICY... | --class CLASS | --consumer CONSUMER"
	cmd.Short = "End the pause or the stop of policies"
	cmd.Long, cmd.Example = resumeLong, resumeExamples
	o.consumerFlag(cmd, "End what pauses the policies for this consumer alone.")
	return cmd
}

// editor edits one policy, and returns the lines that say what it has done.
type editor func(ctx context.Context, p *unstructured.Unstructured) ([]string, error)

// command returns a command that edits the policies that its arguments select.
func (o *options) command(edit func(context.Context, []unstructured.Unstructured) error) *cobra.Command {
	cmd := &cobra.Command{
		ValidArgsFunction: complete.Policies(o.flags),
		RunE: func(cmd *cobra.Command, names []string) error {
			o.class, o.anyClass = output.ClassOf(o.class), !cmd.Flags().Changed("class")
			orConsumer := ""
			if f := cmd.Flags().Lookup("consumer"); f != nil {
				if f.Changed && o.consumer == "" {
					return errors.New("--consumer is empty: write the ID of a consumer")
				}
				orConsumer = ", or a consumer with --consumer"
			}
			if len(names) > 0 && !o.anyClass || len(names) == 0 && o.anyClass && o.consumer == "" {
				return fmt.Errorf("name policies, or a class with --class, but not both%s: see %s --help",
					orConsumer, cmd.CommandPath())
			}
			var err error
			if o.policies, err = o.flags.Policies(); err != nil {
				return err
			}
			selected, err := o.selected(cmd.Context(), names)
			if err != nil {
				return explain(err)
			}
			return edit(cmd.Context(), selected)
		},
	}
	cmd.Flags().StringVar(&o.class, "class", "", `All policies of this class. "": those of the unnamed pool.`)
	complete.Flag(cmd, "class", complete.Classes(o.flags))
	return cmd
}

func (o *options) consumerFlag(cmd *cobra.Command, usage string) {
	cmd.Flags().StringVar(&o.consumer, "consumer", "", usage)
	complete.Flag(cmd, "consumer", complete.Consumers(o.flags))
}

// pauseEach pauses policies, and says so if the consumer was not known, as a misspelt one is not: a pause may also
// be for one that is still to come. It asks first, since a policy that names a consumer makes it known.
func (o *options) pauseEach(ctx context.Context, selected []unstructured.Unstructured) error {
	if o.consumer != "" {
		defer unknown.Print(o.notice(ctx), o.streams.ErrOut)
	}
	return o.each(ctx, selected, o.pause)
}

// notice returns a line about a consumer that the operator does not know, empty if the operator cannot be asked.
func (o *options) notice(ctx context.Context) string {
	client := o.flags.Client(operatorclient.Reader)
	ctx, cancel := context.WithTimeout(ctx, noticeTimeout)
	defer cancel()
	consumer, err := client.Consumer(ctx, o.consumer)
	if err != nil {
		return ""
	}
	return unknown.Notice(ctx, consumer, client.Offers)
}

// each edits one policy after the other, and goes on after an error.
func (o *options) each(ctx context.Context, selected []unstructured.Unstructured, edit editor) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	defer output.Slow(o.streams.ErrOut, "Waiting for the API server")()
	var errs []error
	for i := range selected {
		lines, err := o.edit(ctx, &selected[i], edit)
		if err != nil {
			errs = append(errs, fmt.Errorf("ResourcePolicy %s: %w", selected[i].GetName(), explain(err)))
			continue
		}
		if err := output.For(o.streams.Out).Lines(lines...); err != nil {
			return err
		}
	}
	return errors.Join(errs...)
}

// edit edits a policy as it is now: others may have changed it since it was read.
func (o *options) edit(
	ctx context.Context, read *unstructured.Unstructured, edit editor,
) (lines []string, err error) {
	p := read
	err = retry.OnError(retry.DefaultBackoff, apierrors.IsConflict, func() error {
		if p == nil {
			if p, err = o.policies.Get(ctx, read.GetName(), metav1.GetOptions{}); err != nil {
				return err
			}
		}
		lines, err = edit(ctx, p)
		p = nil
		return err
	})
	return lines, err
}

// selected returns the policies of these names or, without names, those of the class that the command affects.
func (o *options) selected(ctx context.Context, names []string) (selected []unstructured.Unstructured, err error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	defer output.Slow(o.streams.ErrOut, "Waiting for the API server")()
	if len(names) > 0 {
		for _, name := range names {
			p, err := o.policies.Get(ctx, name, metav1.GetOptions{})
			if err != nil {
				return nil, err
			}
			selected = append(selected, *p)
		}
		return selected, nil
	}
	all, err := o.policies.List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	selected = slices.DeleteFunc(all.Items, func(p unstructured.Unstructured) bool {
		class, _, _ := unstructured.NestedString(p.Object, "spec", "class")
		return !o.anyClass && class != o.class || !o.affects(&p)
	})
	if len(selected) > 0 {
		return selected, nil
	}
	which := "no ResourcePolicy"
	if !o.anyClass {
		which += fmt.Sprintf(" of the class %q", o.class)
	}
	return nil, fmt.Errorf("%s is %s: see kubectl get resourcepolicies", which, o.wanted())
}

// mayBeFor reports whether a policy is in force, and not for other consumers by ID.
func (o *options) mayBeFor(p *unstructured.Unstructured) bool {
	ids, named, _ := unstructured.NestedStringSlice(p.Object, "spec", "consumers", "clusterIDs")
	return mode(p) != v1alpha1.ModeDryRun && (o.consumer == "" || !named || slices.Contains(ids, o.consumer))
}

// wanted says what none of the policies is.
func (o *options) wanted() string {
	switch {
	case o.consumer == "":
		return "in force"
	case o.ends:
		return "paused for " + o.consumer
	}
	return "for " + o.consumer
}

// affects reports whether a command without names is for a policy of the class: whether there is something to pause
// or to stop, or may be something to resume.
func (o *options) affects(p *unstructured.Unstructured) bool {
	if !o.ends {
		return o.mayBeFor(p)
	}
	all := fieldsOf(p)
	return o.consumer == "" || all.without(o.consumer)
}

// pause pauses a policy, or pauses it for one consumer.
func (o *options) pause(ctx context.Context, p *unstructured.Unstructured) ([]string, error) {
	end, until, err := o.end()
	if err != nil {
		return nil, err
	}
	own := ownedBy(p)
	own.dropEnded(o.now())
	var edit fields
	var what string
	if o.consumer == "" {
		if err := editable(p, "pause"); err != nil {
			return nil, err
		}
		edit = fields{Mode: v1alpha1.ModePaused, PausedUntil: end}
		own.Mode, own.PausedUntil, what = edit.Mode, end, "paused "+until
	} else {
		if err := o.editableFor(p); err != nil {
			return nil, err
		}
		edit.PausedConsumers = []v1alpha1.PausedConsumer{{ClusterID: v1alpha1.ClusterID(o.consumer), Until: end}}
		own.without(o.consumer)
		own.PausedConsumers = append(own.PausedConsumers, edit.PausedConsumers...)
		what = fmt.Sprintf("paused for %s %s", o.consumer, until)
	}
	// Force: a file may have set the mode to Active, which is also the default that resume leaves.
	if _, err := apply(ctx, o.policies, p, own); err != nil {
		return nil, err
	}
	return o.edited(p, what, edit)
}

// editableFor returns an error for a policy whose pause for the consumer is not the command's to set, or would have no
// effect.
func (o *options) editableFor(p *unstructured.Unstructured) error {
	if !o.mayBeFor(p) {
		return fmt.Errorf("it is a dry run, or for other consumers than %s: there is nothing to pause", o.consumer)
	}
	if by := others(p, "f:pausedConsumers", keyOf(o.consumer)); by != "" {
		return fmt.Errorf("it is paused for %s already, by %s: change it there", o.consumer, by)
	}
	return nil
}

// end returns when the pause ends, nil for never, with the words for it.
func (o *options) end() (*metav1.Time, string, error) {
	if o.until == "" {
		return nil, "until it is resumed", nil
	}
	end, err := parseUntil(o.until, o.now())
	if err != nil {
		return nil, "", err
	}
	return &metav1.Time{Time: end}, "until " + end.Format(time.RFC3339), nil
}

// editable returns an error for a policy whose mode is not the command's to set.
func editable(p *unstructured.Unstructured, command string) error {
	by := owners(p, "f:mode")
	switch {
	case mode(p) == v1alpha1.ModeDryRun:
		return fmt.Errorf("it is a dry run, which decides nothing: there is nothing to %s", command)
	case words[mode(p)] != "" && !slices.Contains(by, FieldManager):
		return fmt.Errorf("it is %s already, by %s: change it there", words[mode(p)], strings.Join(by, " and "))
	}
	return endIsOurs(p)
}

// endIsOurs returns an error for a policy of which somebody else has set the end of the pause: it would stay.
func endIsOurs(p *unstructured.Unstructured) error {
	if by := others(p, "f:pausedUntil"); by != "" {
		return fmt.Errorf("spec.pausedUntil is set by %s: remove it there first", by)
	}
	return nil
}

// edited says what was done to a policy, with the edit.
func (o *options) edited(p *unstructured.Unstructured, what string, edit fields) ([]string, error) {
	text, err := yaml.Marshal(map[string]fields{"spec": edit})
	if err != nil {
		return nil, err
	}
	end := "It ends with: kubectl proffer resume " + p.GetName()
	if o.consumer != "" {
		end += " --consumer " + o.consumer
	}
	lines := []string{
		fmt.Sprintf("ResourcePolicy %s is %s. The edit, by the field manager %s:", p.GetName(), what, FieldManager),
	}
	for line := range strings.SplitSeq(strings.TrimSpace(string(text)), "\n") {
		lines = append(lines, "  "+line)
	}
	return append(lines, end), nil
}

// resume ends the pause or the stop of a policy, or its pause for one consumer.
func (o *options) resume(ctx context.Context, p *unstructured.Unstructured) ([]string, error) {
	if o.consumer != "" {
		return o.resumeConsumer(ctx, p)
	}
	if words[mode(p)] == "" {
		lines := []string{fmt.Sprintf("ResourcePolicy %s is neither paused nor stopped.", p.GetName())}
		return append(lines, o.stillPaused(p)...), nil
	}
	after, own := p, ownedBy(p)
	if own.Mode != "" {
		if err := endIsOurs(p); err != nil {
			return nil, err
		}
		own.Mode, own.PausedUntil = "", nil
		var err error
		if after, err = apply(ctx, o.policies, p, own); err != nil {
			return nil, err
		}
	}
	if word := words[mode(after)]; word != "" {
		return nil, fmt.Errorf("it is %s by %s: set spec.mode to Active there",
			word, strings.Join(owners(after, "f:mode"), " and "))
	}
	lines := []string{fmt.Sprintf("ResourcePolicy %s is %s again.", p.GetName(), mode(after))}
	return append(lines, o.stillPaused(after)...), nil
}

// stillPaused says for whom alone a policy is paused that is paused for nobody else.
func (o *options) stillPaused(p *unstructured.Unstructured) []string {
	own := ownedBy(p)
	own.dropEnded(o.now())
	if len(own.PausedConsumers) == 0 {
		return nil
	}
	names := output.Texts(own.PausedConsumers, func(c v1alpha1.PausedConsumer) string { return string(c.ClusterID) })
	return []string{fmt.Sprintf("It stays paused for %s: end that with --consumer.", kube.First(names))}
}

func (o *options) resumeConsumer(ctx context.Context, p *unstructured.Unstructured) ([]string, error) {
	if by := others(p, "f:pausedConsumers", keyOf(o.consumer)); by != "" {
		return nil, fmt.Errorf("it is paused for %s by %s: remove it from spec.pausedConsumers there", o.consumer, by)
	}
	own, is := ownedBy(p), "not"
	if own.without(o.consumer) {
		if _, err := apply(ctx, o.policies, p, own); err != nil {
			return nil, err
		}
		is = "no longer"
	}
	return []string{fmt.Sprintf("ResourcePolicy %s is %s paused for %s alone.", p.GetName(), is, o.consumer)}, nil
}

// mode returns the mode in the spec.
func mode(p *unstructured.Unstructured) v1alpha1.Mode {
	text, _, _ := unstructured.NestedString(p.Object, "spec", "mode")
	return v1alpha1.Mode(text)
}

// words say what keeps a policy of a mode from offering. The other modes have none.
var words = map[v1alpha1.Mode]string{v1alpha1.ModePaused: "paused", v1alpha1.ModeStopped: "stopped"}

// explain says what to do about an error of the API server.
func explain(err error) error {
	switch {
	case apierrors.IsNotFound(err):
		return fmt.Errorf("%w: see kubectl get resourcepolicies", err)
	case apierrors.IsForbidden(err):
		return fmt.Errorf("%w: ask for the ClusterRole %s", err, operatorclient.PolicyEditor)
	}
	if _, failed := errors.AsType[*url.Error](err); failed {
		return operatorclient.Explain(err)
	}
	return err
}
