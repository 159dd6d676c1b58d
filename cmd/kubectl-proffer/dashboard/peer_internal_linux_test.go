package dashboard

import (
	"runtime"
	"strings"
	"testing"

	"proffer.dev/proffer/test"
)

// The kernel lists a socket without an inode and as root's once its program has closed it.
func TestAConnectionThatIsNobodysIsOfAnotherUser(t *testing.T) {
	const header = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
	line := func(from, to, user, inode string) string {
		return header + "   0: " + from + " " + to + " 01 00000000:00000000 00:00000000 00000000 " + user + "        0 " +
			inode + " 1 0000000000000000 20 4 30 10 -1\n"
	}
	for name, tc := range map[string]struct {
		list  string
		user  int
		known bool
	}{
		"of a user":       {line("A", "B", "1000", "55"), 1000, true},
		"of root":         {line("A", "B", "0", "55"), 0, true},
		"closed":          {line("A", "B", "0", "0"), 0, false},
		"the other way":   {line("B", "A", "1000", "55"), 0, false},
		"another one":     {line("A", "C", "1000", "55"), 0, false},
		"an empty list":   {header, 0, false},
		"a user's nobody": {line("A", "B", "x", "55"), 0, false},
	} {
		if user, known := usersIn(strings.NewReader(tc.list), "B")["A"]; user != tc.user || known != tc.known {
			t.Errorf("%s: user %d, known %t", name, user, known)
		}
	}
	for _, address := range []string{"127.0.0.1", "[::1]"} {
		if !newOthers(address + ":2").has(address + ":1") {
			t.Errorf("a connection from %s that the kernel does not list is the user's own", address)
		}
	}
}

func TestAddressesAreWrittenAsTheKernelDoes(t *testing.T) {
	got, err := addresses("127.0.0.1:8001")
	test.Must(t, err)
	want := []string{"0100007F:1F41", "0000000000000000FFFF00000100007F:1F41"}
	if runtime.GOARCH == "s390x" {
		want = []string{"7F000001:1F41", "00000000000000000000FFFF7F000001:1F41"}
	}
	if got[0] != want[0] || got[1] != want[1] {
		t.Errorf("got %q, want %q", got, want)
	}
}
