package broker

import (
	"context"
	_ "embed"
	"os"
	"os/exec"
	"path/filepath"

	"proffer.dev/proffer/test/slices/lab"
)

// Tour says what to type in a shell of the lab.
//
//go:embed tour.txt
var Tour string

// Shell returns a shell in which each cluster has a command of its name: kubectl for that cluster. The
// command tour prints Tour. The commands are in a new subdirectory of dir.
func (l *Lab) Shell(ctx context.Context, dir string, args ...string) (*exec.Cmd, error) {
	commands := filepath.Join(dir, "commands")
	if err := os.Mkdir(commands, 0o700); err != nil {
		return nil, err
	}
	for _, c := range []*lab.Cluster{l.Rome, l.Milan, l.Oslo, l.Paris} {
		if err := c.WriteCommand(filepath.Join(commands, c.ID)); err != nil {
			return nil, err
		}
	}
	tour := "#!/bin/sh\ncat <<'END'\n" + Tour + "END\n"
	if err := os.WriteFile(filepath.Join(commands, "tour"), []byte(tour), 0o700); err != nil {
		return nil, err
	}
	shell := exec.CommandContext(ctx, "bash", append([]string{"--norc", "--noprofile"}, args...)...)
	// Without the person's own settings a shell would cut their history.
	path := commands + string(filepath.ListSeparator) + os.Getenv("PATH")
	shell.Env = append(os.Environ(), "PS1=lab$ ", "HISTFILE=", "PATH="+path)
	return shell, nil
}
