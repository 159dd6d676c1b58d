// Package tether ends programs when this process ends, by whatever cause, also
// SIGKILL, which a process cannot handle.
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

// script reads a line when all is over, and nothing when nobody is left to write
// one. Then it kills what the files in the directory name, and removes that.
const script = `read -r over && exit
for file in "$1"/*.pid; do
	[ -f "$file" ] && kill -KILL "$(cat "$file")"
done 2>/dev/null
rm -rf -- "$1"
`

// A Tether holds programs that are to end with this process.
type Tether struct {
	dir    string
	keeper *exec.Cmd
	over   io.WriteCloser
}

// New returns a tether that keeps its files in a directory. If this process ends
// without Release, the programs that are held are killed, and the directory is
// removed.
func New(dir string) (*Tether, error) {
	// No context: it outlives the process.
	t := &Tether{dir: dir, keeper: exec.Command("/bin/sh", "-c", script, "tether", dir)}
	// Ctrl-C and the end of the terminal are for this process alone.
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

// File returns the file in which a program is to write its process number.
func (t *Tether) File(name string) string { return filepath.Join(t.dir, name+".pid") }

// Hold holds a program that was started.
func (t *Tether) Hold(name string, p *os.Process) error {
	return os.WriteFile(t.File(name), []byte(strconv.Itoa(p.Pid)), 0o600)
}

// Release is for when all that was held has ended: nothing is killed or removed
// any more.
func (t *Tether) Release() error {
	_, err := io.WriteString(t.over, "over\n")
	return errors.Join(err, t.over.Close(), t.keeper.Wait())
}
