package migrate

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/klog/v2"
)

// defaultPort is the port of each plugin without --port.
const defaultPort = 6001

// settings are the values of a plugin's flags.
type settings struct {
	// pairs holds the pairs of --resource or --node-label.
	pairs *pairs
	port  int
	// portSet reports whether --port was given.
	portSet bool
	// logs are the flags of logging that were given, as they would be written.
	logs []string
}

// parse reads the arguments as the plugin does: with the same library, flags and values. The error
// names every argument that the plugin does not have.
func parse(p plugin, args []string) (*settings, error) {
	for _, argument := range args {
		if strings.Contains(argument, "$(") {
			return nil, fmt.Errorf("the argument %q refers to an environment variable: "+
				"write its value in a copy of the Deployment, and pass the copy with -f", argument)
		}
	}
	var unknown []string
	for {
		s := &settings{pairs: &pairs{}}
		flags := s.flags(p, unknown)
		err := flags.Parse(args)
		var missing *pflag.NotExistError
		switch {
		case errors.As(err, &missing) && !slices.Contains(unknown, missing.GetSpecifiedName()):
			unknown = append(unknown, missing.GetSpecifiedName())
			continue
		case errors.Is(err, pflag.ErrHelp):
			return nil, errors.New("the argument --help makes the plugin print its help and end: it offers nothing")
		case err != nil:
			return nil, fmt.Errorf("%s would not start with these arguments: %w", p, err)
		}
		if err := refuseUnknown(p, unknown, flags.Args()); err != nil {
			return nil, err
		}
		if len(s.pairs.values) == 0 {
			return nil, fmt.Errorf("%s would not start: its flag --%s is required", p, s.pairs.flag)
		}
		s.portSet = flags.Changed("port")
		flags.Visit(func(f *pflag.Flag) {
			if f.Name != "port" && f.Name != s.pairs.flag {
				s.logs = append(s.logs, dashed(f.Name)+"="+f.Value.String())
			}
		})
		return s, nil
	}
}

// flags defines the flags of the plugin, and the unknown ones, with any value or none, so that
// parsing goes on behind them.
func (s *settings) flags(p plugin, unknown []string) *pflag.FlagSet {
	flags := pflag.NewFlagSet(string(p), pflag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.Usage = func() {}
	flags.IntVar(&s.port, "port", defaultPort, "")
	switch p {
	case nodeLabelsResources:
		s.pairs.flag = "node-label"
		addLogFlags(flags)
	default:
		s.pairs.flag, s.pairs.check = "resource", checkQuantity
	}
	flags.Func(s.pairs.flag, "", s.pairs.add)
	for _, name := range unknown {
		addFlag(flags, name, true)
	}
	return flags
}

// addFlag adds a flag of any value, which may be optional.
func addFlag(flags *pflag.FlagSet, name string, optional bool) {
	shorthand := ""
	if len(name) == 1 {
		shorthand = name
	}
	flags.StringP(name, shorthand, "", "")
	if optional {
		flags.Lookup(name).NoOptDefVal = "true"
	}
}

// addLogFlags adds flags of the names of klog's. Their values are not klog's own, which configure
// this process.
func addLogFlags(flags *pflag.FlagSet) {
	ofKlog := flag.NewFlagSet("", flag.ContinueOnError)
	klog.InitFlags(ofKlog)
	ofKlog.VisitAll(func(f *flag.Flag) {
		b, ok := f.Value.(interface{ IsBoolFlag() bool })
		addFlag(flags, f.Name, ok && b.IsBoolFlag())
	})
}

func refuseUnknown(p plugin, flags, words []string) error {
	var all []string
	for _, name := range slices.Sorted(slices.Values(flags)) {
		all = append(all, dashed(name))
	}
	all = append(all, words...)
	if len(all) == 0 {
		return nil
	}
	return fmt.Errorf("%s has no such arguments: %s. Nothing was converted, because their meaning is not known: "+
		"remove them in a copy of the Deployment, and pass the copy with -f", p, strings.Join(all, ", "))
}

// dashed returns the name of a flag as it is written.
func dashed(name string) string {
	if len(name) == 1 {
		return "-" + name
	}
	return "--" + name
}

// pairs holds the values of --resource and of --node-label: name=value, several of them with commas
// between them. Of two pairs with one name the last counts.
type pairs struct {
	flag string
	// check, if not nil, checks a value.
	check func(string) error
	// values maps names to values.
	values map[string]string
	// from maps names to the argument that sets them, repeated lists the names set more than once.
	from     map[string]string
	repeated []string
}

// add adds the pairs of one argument.
func (p *pairs) add(text string) error {
	if text == "" {
		return nil
	}
	if p.values == nil {
		p.values, p.from = map[string]string{}, map[string]string{}
	}
	for pair := range strings.SplitSeq(text, ",") {
		parts := strings.Split(pair, "=")
		if len(parts) != 2 || parts[0] == "" || parts[1] == "" {
			return fmt.Errorf("%q is not of the form name=value", pair)
		}
		name, value := parts[0], parts[1]
		if p.check != nil {
			if err := p.check(value); err != nil {
				return fmt.Errorf("%q: %w", pair, err)
			}
		}
		if old, twice := p.values[name]; twice && old != value {
			p.repeated = append(p.repeated, name)
		}
		p.values[name], p.from[name] = value, fmt.Sprintf("--%s=%s", p.flag, text)
	}
	return nil
}

func checkQuantity(text string) error {
	_, err := resource.ParseQuantity(text)
	return err
}
