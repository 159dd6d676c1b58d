package main

import (
	"fmt"
	"io"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
	"golang.org/x/term"
)

const (
	// usualWidth is the width of an output that is not a terminal.
	usualWidth = 80
	// minWidth is the minimum width.
	minWidth = 40
)

// screen is the output of the table.
type screen struct {
	out io.Writer
	// err is the first error of a write.
	err error
}

func (s *screen) print(lines ...string) {
	for _, line := range lines {
		if _, err := fmt.Fprintln(s.out, line); s.err == nil {
			s.err = err
		}
	}
}

// width returns the present width of the terminal, or, without a terminal, COLUMNS or 80.
func (s *screen) width() int {
	if file, ok := s.out.(*os.File); ok {
		if width, _, err := term.GetSize(int(file.Fd())); err == nil && width > 0 {
			return max(width, minWidth)
		}
	}
	if width, err := strconv.Atoi(os.Getenv("COLUMNS")); err == nil && width > 0 {
		return max(width, minWidth)
	}
	return usualWidth
}

// unread reports whether nobody reads the output any longer, as in `make run | head`.
func (s *screen) unread() bool {
	file, ok := s.out.(*os.File)
	if !ok {
		return false
	}
	fds := []unix.PollFd{{Fd: int32(file.Fd())}} //nolint:gosec // a file descriptor is small
	n, err := unix.Poll(fds, 0)
	return err == nil && n > 0 && fds[0].Revents&(unix.POLLERR|unix.POLLHUP) != 0
}
