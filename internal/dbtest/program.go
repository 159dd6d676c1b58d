package dbtest

import (
	"bytes"
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
	"sync"
	"syscall"
	"time"
)

// held is the name of the server's process in its tether, and heldPooler that of the pooler's.
const held, heldPooler = "server", "pooler"

// install is what a machine without a server needs. The error is one line.
const install = "run apt-get install mariadb-server postgresql pgbouncer"

// find returns the path of a program in the first of these directories that has it.
func find(name string, dirs []string) (string, error) {
	for _, dir := range dirs {
		if path := filepath.Join(dir, name); executable(path) {
			return path, nil
		}
	}
	return "", fmt.Errorf("there is no %s, which the tests of databases need: %s", name, install)
}

func executable(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0
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
	cmd *exec.Cmd
	// exited is closed when all processes have ended.
	exited chan struct{}
	err    error
}

// launch starts a program that the tether of the server holds by a name.
func launch(ctx context.Context, s *Server, name string, args []string) (*program, error) {
	p := &program{cmd: s.command(ctx, args), exited: make(chan struct{})}
	// The children inherit the pipe of the output, so Wait also waits for them. PostgreSQL's end by
	// themselves after their parent; until then no new server can start.
	p.cmd.Stdout, p.cmd.Stderr = s.log, s.log
	p.cmd.WaitDelay = stopTimeout
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		defer close(p.exited)
		p.err = p.cmd.Wait()
		// The number may be another process's from now on.
		_ = os.Remove(s.tether.File(name))
	}()
	if err := s.tether.Hold(name, p.cmd.Process); err != nil {
		return nil, errors.Join(err, p.kill())
	}
	return p, nil
}

// ending returns how the program ended. The caller must have waited for exited.
func (p *program) ending() error {
	if p.err == nil {
		return errors.New("exit status 0")
	}
	return p.err
}

// kill ends the program at once, and returns when it has ended.
func (p *program) kill() error {
	if err := p.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	<-p.exited
	return nil
}

// stop ends the program with a signal, and kills it if that takes too long.
func (p *program) stop(signal os.Signal) error {
	if err := p.cmd.Process.Signal(signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	timer := time.NewTimer(stopTimeout)
	defer timer.Stop()
	select {
	case <-p.exited:
	case <-timer.C:
		return errors.Join(fmt.Errorf("the server still runs %v after %v", stopTimeout, signal), p.kill())
	}
	if p.err != nil {
		return fmt.Errorf("the server ended with %w, want status 0", p.err)
	}
	return nil
}

// secret returns a random password of letters and digits.
func secret() string { return rand.Text() }

// buffer allows concurrent writes and reads.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}
