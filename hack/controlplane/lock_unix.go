//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package controlplane

import (
	"errors"
	"os"
	"syscall"
)

// tryLock locks file, or returns false if another process holds the lock. Closing the file releases
// it.
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
