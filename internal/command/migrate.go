package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/pflag"

	"proffer.dev/proffer/internal/metasync"
)

// migrateDatabase is the command that changes the tables of the books, for admins who give the
// operator no right to.
const migrateDatabase = "migrate-database"

const migrateHelp = `Creates the tables of the accounting database, or brings them up to date.

Usage:
  proffer ` + migrateDatabase + ` --config=FILE [--dsn-file=FILE]

It reads the arguments of the reconciler MetaSync in the configuration file of the operator, and needs no
API server. Tables that are up to date are left as they are.

`

// runMigrate runs the command, and returns the exit code of the process.
func runMigrate(args []string, p Program) int {
	options, err := parseMigrate(args, os.Stdout, p)
	switch {
	case errors.Is(err, pflag.ErrHelp):
		return 0
	case err != nil:
		fmt.Fprintln(os.Stderr, "proffer:", err)
		return exitUsage
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	applied, err := metasync.Migrate(ctx, options)
	for _, m := range applied {
		fmt.Printf("applied %s in %v\n", m.Name, m.Took.Round(time.Millisecond))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "proffer: changing the tables:", err)
		return 1
	}
	fmt.Println("the tables are up to date")
	return 0
}

// parseMigrate reads the command line and the configuration file.
func parseMigrate(args []string, help io.Writer, p Program) (*metasync.Options, error) {
	flags := pflag.NewFlagSet(migrateDatabase, pflag.ContinueOnError)
	path := flags.String("config", "", "The configuration file of the operator.")
	dsn := flags.String("dsn-file", "", "A file with the data source name of an account that may create tables. "+
		"Default: that of the configuration file.")
	err := parse(flags, args)
	switch {
	case errors.Is(err, pflag.ErrHelp):
		fmt.Fprint(help, migrateHelp, "Flags:\n", flags.FlagUsagesWrapped(helpWidth(help)))
		return nil, err
	case err != nil:
		return nil, fmt.Errorf("%w; see proffer %s --help", whatToWrite(err), migrateDatabase)
	case flags.NArg() > 0:
		return nil, fmt.Errorf("%q is not a flag: see proffer %s --help", flags.Arg(0), migrateDatabase)
	case *path == "":
		return nil, fmt.Errorf("--config is missing: write the configuration file of the operator; "+
			"see proffer %s --help", migrateDatabase)
	}
	c, err := readConfiguration(*path)
	if err != nil {
		return nil, fmt.Errorf("--config=%s: %w", *path, err)
	}
	plugins, err := p.plugins(c)
	switch {
	case err != nil:
		return nil, fmt.Errorf("--config=%s: %w", *path, err)
	case plugins.MetaSync == nil:
		return nil, fmt.Errorf("--config=%s: reconcilers does not list %s, so there is no database", *path, metasync.Name)
	}
	if *dsn != "" {
		plugins.MetaSync.DSNFile = *dsn
	}
	if err := metasync.CheckDSNFile(*dsn); err != nil {
		return nil, fmt.Errorf("--dsn-file: %w", err)
	}
	return plugins.MetaSync, nil
}
