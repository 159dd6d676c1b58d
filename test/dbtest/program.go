package dbtest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"proffer.dev/proffer/test/process"
)

// held is the name of the server's process in its tether, and heldPooler that of the pooler's.
const held, heldPooler = "server", "pooler"

// install names the packages to install. The error is one line.
const install = "run apt-get install mariadb-server postgresql pgbouncer rsync"

// find returns the path of a program in the first of these directories that has it.
func find(name string, dirs []string) (string, error) {
	for _, dir := range dirs {
		if path, err := exec.LookPath(filepath.Join(dir, name)); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("there is no %s, which the tests of databases need: %s", name, install)
}

// searchPath returns the directories of PATH. Debian has servers in /usr/sbin, which is not in the
// PATH of everybody.
func searchPath() []string {
	return append(filepath.SplitList(os.Getenv("PATH")), "/usr/sbin", "/usr/local/sbin")
}

// unprivileged returns the first of these accounts that exists, if the test runs as root: no server
// runs as root. Otherwise it returns nil, and servers run as the test does.
func unprivileged(names ...string) (*syscall.Credential, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	for _, name := range names {
		account, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err1 := strconv.ParseUint(account.Uid, 10, 32)
		gid, err2 := strconv.ParseUint(account.Gid, 10, 32)
		if err := errors.Join(err1, err2); err != nil {
			return nil, err
		}
		return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
	}
	return nil, fmt.Errorf("no database server runs as root, and this machine has no account %s",
		strings.Join(names, " or "))
}

// command returns a command that runs as the account of the server, and in its directory.
func (s *Server) command(ctx context.Context, args []string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Dir = s.dir
	cmd.Env = []string{"PATH=" + strings.Join(searchPath(), string(filepath.ListSeparator)), "LC_ALL=C", "HOME=" + s.dir}
	// Ctrl-C must not reach it: the test ends it.
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: s.account, Setpgid: true}
	return cmd
}

// call runs a command to its end.
func (s *Server) call(ctx context.Context, args ...string) error {
	out, err := s.command(ctx, args).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w\n%s", args[0], err, out)
	}
	return nil
}

// program is a server process and its children.
type program struct {
	*process.Process
	// file is where the tether finds the number of the process.
	file string
}

// launch starts a program that the tether of the server holds by a name.
func launch(ctx context.Context, s *Server, name string, args []string) (*program, error) {
	cmd := s.command(ctx, args)
	// The children inherit the pipe of the output, so the process has exited when they have too.
	// PostgreSQL's end by themselves after their parent; until then no new server can start.
	cmd.Stdout, cmd.Stderr = &s.log, &s.log
	cmd.WaitDelay = stopTimeout
	started, err := process.Start(cmd)
	if err != nil {
		return nil, err
	}
	p := &program{Process: started, file: s.tether.File(name)}
	if err := s.tether.Hold(name, cmd.Process); err != nil {
		return nil, errors.Join(err, p.kill())
	}
	return p, nil
}

// kill ends the program at once, unless it has ended already, and returns when it has ended.
func (p *program) kill() error {
	if err := p.Kill(); !errors.Is(err, os.ErrProcessDone) && err != nil {
		return err
	}
	return p.forget()
}

// stop ends the program with a signal, and kills it if that takes too long.
func (p *program) stop(signal syscall.Signal) error {
	return errors.Join(p.StopBy(signal, stopTimeout), p.forget())
}

// forget removes the number of an ended process from the tether: it may be another process's now.
func (p *program) forget() error {
	<-p.Exited
	if err := os.Remove(p.file); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// secret returns a random password of letters and digits.
func secret() string { return rand.Text() }
