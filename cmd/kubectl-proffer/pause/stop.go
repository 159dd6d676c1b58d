package pause

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"proffer.dev/proffer/api/rest"
	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/cmd/kubectl-proffer/internal/operatorclient"
	"proffer.dev/proffer/cmd/kubectl-proffer/internal/outcome"
	"proffer.dev/proffer/cmd/kubectl-proffer/internal/output"
)

var stopLong = `Stop policies: offer nothing, and take back what their consumers have.

A stopped policy decides as before, and no other takes over. Offers become 0, and ResourceSlices
are granted nothing more. The policy's reclaim says what consumers keep: with Unused, the default,
what their pods use; with Evict nothing, so that their pods end; with Retain what was granted.
A consumer that spec.pausedConsumers pauses keeps everything. With --class, dry runs are left out.

The command takes at most 32 policies. It first shows what the operator expects this to change, as
kubectl proffer simulate does, and asks. It then sets spec.mode by server-side apply as the field
manager ` + FieldManager + `, and prints this edit. kubectl proffer resume removes it.

It needs Role ` + operatorclient.Simulator.Role + ` in the namespace of the operator, and the rights to
get, list and patch resourcepolicies, as in ClusterRole proffer-resourcepolicy-editor.`

const stopExamples = `  # Show what one policy would take back, and ask
  kubectl proffer stop gold

  # Every policy of a class, without a question
  kubectl proffer stop --class gold --yes`

// NewStopCommand returns the command stop.
func NewStopCommand(flags *operatorclient.Flags, streams genericiooptions.IOStreams) *cobra.Command {
	o := &options{flags: flags, streams: streams, now: time.Now}
	cmd := o.command(o.stop)
	cmd.Use, cmd.Short = "stop POLICY... | --class CLASS", "Take back what the consumers of policies have"
	cmd.Long, cmd.Example = stopLong, stopExamples
	cmd.Flags().BoolVarP(&o.yes, "yes", "y", false, "Do not ask.")
	return cmd
}

// stop shows what stopping all of the policies would change, asks, and stops them.
func (o *options) stop(ctx context.Context, selected []unstructured.Unstructured) error {
	change, err := o.change(ctx, selected)
	if err != nil {
		return err
	}
	simulation, err := o.simulate(ctx, change)
	if err != nil {
		return fmt.Errorf("nothing was stopped, because it is not known what that changes: %w", err)
	}
	for name, problems := range simulation.Problems {
		return fmt.Errorf("nothing was stopped: to the operator, policy %s is invalid: %s",
			name, strings.Join(problems, "; "))
	}
	p := output.For(o.streams.Out)
	if err := p.Lines(append(outcome.Lines(simulation, "", p.Width, p.Color), "")...); err != nil {
		return err
	}
	if agreed, err := o.ask(selected); !agreed {
		return err
	}
	shown := map[string]*unstructured.Unstructured{}
	for i := range selected {
		shown[selected[i].GetName()] = &selected[i]
	}
	return o.each(ctx, selected, func(ctx context.Context, p *unstructured.Unstructured) ([]string, error) {
		return o.stopOne(ctx, p, shown[p.GetName()])
	})
}

// stopOne stops a policy if it is as it was when it was shown what that changes.
func (o *options) stopOne(ctx context.Context, p, shown *unstructured.Unstructured) ([]string, error) {
	if p.GetUID() != shown.GetUID() || p.GetGeneration() != shown.GetGeneration() {
		return nil, errors.New("it has changed since: it was not stopped, and what stopping it changes may be different")
	}
	if _, err := apply(ctx, o.policies, p, stopped(p)); err != nil {
		return nil, err
	}
	return o.edited(p, "stopped", fields{Mode: v1alpha1.ModeStopped})
}

// stopped returns the fields of FieldManager for a policy that is stopped.
func stopped(p *unstructured.Unstructured) fields {
	own := ownedBy(p)
	own.Mode, own.PausedUntil = v1alpha1.ModeStopped, nil
	return own
}

// change returns what stopping the policies changes, as the API server would store it.
func (o *options) change(ctx context.Context, selected []unstructured.Unstructured) (*rest.Change, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	change := &rest.Change{Apply: make([]v1alpha1.ResourcePolicy, len(selected))}
	var errs []error
	for i := range selected {
		p, policy := &selected[i], &change.Apply[i]
		err := editable(p, "stop")
		if err == nil {
			var stored *unstructured.Unstructured
			if stored, err = apply(ctx, o.policies, p, stopped(p), metav1.DryRunAll); err == nil {
				err = runtime.DefaultUnstructuredConverter.FromUnstructured(stored.Object, policy)
			}
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("ResourcePolicy %s: %w", p.GetName(), explain(err)))
		}
		// The operator has the rest, and a status may be long.
		*policy = v1alpha1.ResourcePolicy{ObjectMeta: metav1.ObjectMeta{Name: p.GetName()}, Spec: policy.Spec}
	}
	return change, errors.Join(errs...)
}

// simulate has the operator evaluate a change.
func (o *options) simulate(ctx context.Context, change *rest.Change) (*rest.Simulation, error) {
	defer output.Slow(o.streams.ErrOut, "The operator is evaluating the change")()
	return o.flags.Client(operatorclient.Simulator).Simulate(ctx, change)
}

// ask reports whether the user wants the policies to be stopped.
func (o *options) ask(selected []unstructured.Unstructured) (bool, error) {
	if o.yes {
		return true, nil
	}
	names := output.Texts(selected, func(p unstructured.Unstructured) string { return p.GetName() })
	what := strings.Join(names, ", ")
	if len(names) > 1 {
		what = fmt.Sprintf("these %d policies: %s", len(names), what)
	}
	if _, err := fmt.Fprintf(o.streams.ErrOut, "Stop %s? [y/N] ", what); err != nil {
		return false, err
	}
	answer, err := bufio.NewReader(o.streams.In).ReadString('\n')
	switch answer = strings.ToLower(strings.TrimSpace(answer)); {
	case answer == "y" || answer == "yes":
		return true, nil
	case err != nil:
		return false, errors.New("nothing was stopped, because nobody answered: write --yes where nobody can")
	}
	return false, output.For(o.streams.Out).Lines("Nothing was stopped.")
}
