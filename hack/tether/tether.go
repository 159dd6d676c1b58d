// Package tether ends programs when this process ends, for any reason, including SIGKILL, which a
// process cannot handle.
package tether

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
)

// script reads a line after Release, and the end of its input if this process has died. In that
// case it kills the programs that the files in the directory name, and removes the directory.
const script = `read -r over && exit
for file in "$1"/*.pid; do
	[ -f "$file" ] && kill -KILL "$(cat "$file")"
done 2>/dev/null
rm -rf -- "$1"
`

// A Tether holds programs that must end with this process.
type Tether struct {
	dir    string
	keeper *exec.Cmd
	over   io.WriteCloser
}

// New returns a tether that keeps its files in a directory. If this process ends without Release,
// the held programs are killed and the directory is removed.
func New(dir string) (*Tether, error) {
	// No context: the keeper outlives the process.
	t := &Tether{dir: dir, keeper: exec.Command("/bin/sh", "-c", script, "tether", dir)}
	// Ctrl-C and SIGHUP must not reach the keeper.
	t.keeper.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	var err error
	if t.over, err = t.keeper.StdinPipe(); err != nil {
		return nil, err
	}
	if err := t.keeper.Start(); err != nil {
		return nil, fmt.Errorf("starting /bin/sh, which ends programs when this one is killed: %w", err)
	}
	return t, nil
}

// File returns the file to which a program must write its process ID.
func (t *Tether) File(name string) string { return filepath.Join(t.dir, name+".pid") }

// Hold holds a program that was started.
func (t *Tether) Hold(name string, p *os.Process) error {
	return os.WriteFile(t.File(name), []byte(strconv.Itoa(p.Pid)), 0o600)
}

// Release must be called once all held programs have ended. From then on nothing is killed or
// removed.
func (t *Tether) Release() error {
	_, err := io.WriteString(t.over, "over\n")
	return errors.Join(err, t.over.Close(), t.keeper.Wait())
}
