package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"time"
)

// tourTimeout is the time for the clusters of a tour to start. Four take 40 s on two idle cores.
const tourTimeout = 10 * time.Minute

// Tour is a lab for a person.
type Tour struct {
	// Start starts the clusters.
	Start func(context.Context, *Lab) error
	// Text says what to type.
	Text string
}

// Guide starts the clusters, and runs a shell in an empty directory until the person ends it. It returns the exit
// status of the shell.
func (t Tour) Guide() (int, error) {
	// An interrupt is for what runs in the shell, which would inherit that it is ignored.
	start := func(ctx context.Context, l *Lab) error {
		signal.Notify(make(chan os.Signal, 1), os.Interrupt)
		return t.Start(ctx, l)
	}
	return Run(tourTimeout, start, func(ctx context.Context, l *Lab) (int, error) {
		shell, err := l.Shell(ctx, l.dir, t.Text)
		if err != nil {
			return 1, err
		}
		fmt.Print("\n", t.Text, "\n")
		shell.Stdin, shell.Stdout, shell.Stderr = os.Stdin, os.Stdout, os.Stderr
		err = shell.Run()
		if ended := (*exec.ExitError)(nil); errors.As(err, &ended) { // Its status is that of what was typed last.
			err = nil
		}
		return 0, err
	})
}

// Shell returns a shell in which each cluster has a command of its name: kubectl for that cluster. The command tour
// prints the text. The commands are in a new subdirectory of dir, and the shell begins in another one.
func (l *Lab) Shell(ctx context.Context, dir, text string, args ...string) (*exec.Cmd, error) {
	commands, files := filepath.Join(dir, "commands"), filepath.Join(dir, "files")
	for _, folder := range []string{commands, files} {
		if err := os.Mkdir(folder, 0o700); err != nil {
			return nil, err
		}
	}
	for _, c := range l.clusters {
		if err := c.WriteCommand(filepath.Join(commands, c.ID)); err != nil {
			return nil, err
		}
	}
	tour := "#!/bin/sh\ncat <<'END'\n" + text + "END\n"
	if err := os.WriteFile(filepath.Join(commands, "tour"), []byte(tour), 0o700); err != nil {
		return nil, err
	}
	shell := exec.CommandContext(ctx, "bash", append([]string{"--norc", "--noprofile"}, args...)...)
	shell.Dir = files
	// Without the person's own settings a shell would cut their history.
	path := commands + string(filepath.ListSeparator) + os.Getenv("PATH")
	shell.Env = append(os.Environ(), "PS1=lab$ ", "HISTFILE=", "PATH="+path)
	return shell, nil
}
