package output

import (
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"proffer.dev/proffer/test"
)

func TestATerminalHasAWidthAndColoursUnlessTheyAreTurnedOff(t *testing.T) {
	terminal, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Skipf("no terminal: %v", err)
	}
	defer func() { _ = terminal.Close() }()
	test.Must(t, unix.IoctlSetWinsize(int(terminal.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: 80}))
	for _, tc := range []struct {
		noColor, term string
		color         bool
	}{{"", "xterm", true}, {"1", "xterm", false}, {"", "dumb", false}} {
		t.Setenv("NO_COLOR", tc.noColor)
		t.Setenv("TERM", tc.term)
		if p := For(terminal); p.Width != 80 || p.Color != tc.color {
			t.Errorf("NO_COLOR=%q TERM=%s: width %d, color %v", tc.noColor, tc.term, p.Width, p.Color)
		}
	}
}
