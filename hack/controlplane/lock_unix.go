//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package controlplane

import (
	"errors"
	"os"
	"syscall"
)

// tryLock takes the lock on file, or says that another process has it. Closing
// the file gives it back.
func tryLock(file *os.File) (bool, error) {
	for {
		err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		switch {
		case err == nil:
			return true, nil
		case errors.Is(err, syscall.EINTR):
		case errors.Is(err, syscall.EWOULDBLOCK):
			return false, nil
		default:
			return false, err
		}
	}
}
