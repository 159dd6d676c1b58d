package command

import (
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"time"

	"github.com/spf13/pflag"
	"golang.org/x/term"
)

// The help is as wide as the terminal, within these bounds. Without a terminal it has the minimum
// width.
const (
	minHelpWidth = 80
	maxHelpWidth = 120
)

func helpWidth(w io.Writer) int {
	if file, ok := w.(*os.File); ok {
		if columns, _, err := term.GetSize(int(file.Fd())); err == nil {
			return min(max(columns, minHelpWidth), maxHelpWidth)
		}
	}
	return minHelpWidth
}

func printHelp(w io.Writer, groups []flagGroup) {
	fmt.Fprint(w,
		"Proffer decides how much of this cluster is offered to each of its Liqo peers.\n\n"+
			"Usage:\n  proffer [--flag=value]...\n"+
			"  proffer "+migrateDatabase+" --config=FILE\n"+
			"  proffer "+printVersion+"\n")
	for _, g := range groups {
		fmt.Fprintf(w, "\n%s:\n%s", g.title, g.flags.FlagUsagesWrapped(helpWidth(w)))
	}
}

var singleDash = regexp.MustCompile(`^-[a-z][a-z-]`)

// oneDash returns an error for a long flag with a single dash, which pflag would parse as several
// one-letter flags.
func oneDash(args []string) error {
	for _, arg := range args {
		if arg == "--" {
			break
		}
		if singleDash.MatchString(arg) {
			return fmt.Errorf("%s has one dash: write -%s", arg, arg)
		}
	}
	return nil
}

// parse reads a command line. The caller prints the error, once. By default the flag package would print it
// too, with the whole help.
func parse(flags *pflag.FlagSet, args []string) error {
	flags.SetOutput(io.Discard)
	flags.Usage = func() {}
	if err := oneDash(args); err != nil {
		return err
	}
	return flags.Parse(args)
}

// whatToWrite returns the error with a message that says what to write instead.
func whatToWrite(err error) error {
	if unknown, ok := errors.AsType[*pflag.NotExistError](err); ok {
		dashes := "--"
		if unknown.GetSpecifiedShortnames() != "" {
			dashes = "-"
		}
		return fmt.Errorf("there is no flag %s%s", dashes, unknown.GetSpecifiedName())
	}
	if missing, ok := errors.AsType[*pflag.ValueRequiredError](err); ok {
		return fmt.Errorf("--%s has no value: write --%[1]s=VALUE", missing.GetSpecifiedName())
	}
	if invalid, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
		f := invalid.GetFlag()
		if f.Value.Type() == "bool" {
			return fmt.Errorf("--%s=%s: write --%[1]s, or --%[1]s=false", f.Name, invalid.GetValue())
		}
		if f.Value.Type() == "int" {
			return fmt.Errorf("--%s=%s: write a whole number, such as %s", f.Name, invalid.GetValue(), f.DefValue)
		}
		return fmt.Errorf("--%s=%s: %w", f.Name, invalid.GetValue(), errors.Unwrap(invalid))
	}
	return err
}

// period is the value of a flag that is a duration of 0 to most.
type period struct {
	*time.Duration
	byDefault, most time.Duration
}

// newPeriod returns the value of a flag that sets this duration.
func newPeriod(of *time.Duration, byDefault, most time.Duration) *period {
	*of = byDefault
	return &period{of, byDefault, most}
}

func (p *period) Type() string { return "duration" }

func (p *period) Set(text string) error {
	d, err := time.ParseDuration(text)
	if err != nil {
		return fmt.Errorf("write a duration, such as %v", p.byDefault)
	}
	if d < 0 || d > p.most {
		return fmt.Errorf("write 0 to %v, such as %v", p.most, p.byDefault)
	}
	*p.Duration = d
	return nil
}
