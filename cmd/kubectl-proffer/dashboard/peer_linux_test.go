package dashboard_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"proffer.dev/proffer/test"
	"proffer.dev/proffer/test/operatortest"
)

// otherUserGets is the environment variable with the address that the test program opens as another
// user, and cookieOfVictim the cookie that it sends. mapped says that it connects with a socket of IPv6,
// and otherUserHolds how many connections it holds instead of a request, until its standard input ends.
const (
	otherUserGets, cookieOfVictim = "PROFFER_TEST_OTHER_USER_GETS", "PROFFER_TEST_COOKIE"
	mapped, otherUserHolds        = "PROFFER_TEST_MAPPED", "PROFFER_TEST_HOLDS"
)

// TestMain opens an address if it is started as another user, and otherwise runs the tests.
func TestMain(m *testing.M) {
	address := os.Getenv(otherUserGets)
	if address == "" {
		os.Exit(m.Run())
	}
	request, err := http.NewRequestWithContext(context.Background(), http.MethodGet, address, http.NoBody)
	if err != nil {
		panic(err)
	}
	if text := os.Getenv(otherUserHolds); text != "" {
		hold(request.URL.Host, text)
		return
	}
	client := http.DefaultClient
	if os.Getenv(mapped) != "" {
		client = &http.Client{Transport: &http.Transport{DialContext: dialMapped}}
	}
	request.Header.Set("Cookie", os.Getenv(cookieOfVictim))
	response, err := client.Do(request)
	if err != nil {
		panic(err)
	}
	text, _ := io.ReadAll(response.Body)
	_ = response.Body.Close()
	fmt.Println(response.StatusCode, string(text))
}

// dialMapped connects to an address of IPv4 with a socket of IPv6.
func dialMapped(_ context.Context, _, address string) (net.Conn, error) {
	to, err := netip.ParseAddrPort(address)
	if err != nil {
		return nil, err
	}
	socket, err := syscall.Socket(syscall.AF_INET6, syscall.SOCK_STREAM, 0)
	if err != nil {
		return nil, err
	}
	file := os.NewFile(uintptr(socket), "socket")
	defer func() { _ = file.Close() }() // The connection has a copy.
	if err := syscall.Connect(socket, &syscall.SockaddrInet6{Port: int(to.Port()), Addr: to.Addr().As16()}); err != nil {
		return nil, err
	}
	return net.FileConn(file)
}

// hold opens so many connections, says so, and waits for the end of the standard input.
func hold(host, many string) {
	n, err := strconv.Atoi(many)
	if err != nil {
		panic(err)
	}
	for range n {
		connection, err := new(net.Dialer).DialContext(context.Background(), "tcp4", host)
		if err != nil {
			panic(err)
		}
		defer func() { _ = connection.Close() }()
	}
	fmt.Println("held")
	_, _ = io.Copy(io.Discard, os.Stdin)
}

func TestAnotherUserGetsNothingWithTheFirstAddressOrTheCookie(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can start a program as another user")
	}
	program := copyForAnybody(t)
	b := start(t, operatortest.Start(t))
	as := func(uid uint32, address, cookie string, env ...string) string {
		t.Helper()
		cmd := commandAs(t, uid, program, append(env, otherUserGets+"="+address, cookieOfVictim+"="+cookie)...)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return string(out)
	}
	const refused = "403 "
	for _, env := range []string{"", mapped + "=1"} {
		got := as(65534, b.first, "", env)
		if !strings.HasPrefix(got, refused) || !strings.Contains(got, "Another user of this machine") {
			t.Errorf("the first address, with %q: %s", env, got)
		}
	}
	response, _ := b.ask(browser(t), "GET", b.first, "")
	if response.StatusCode != http.StatusOK || len(response.Cookies) != 1 {
		t.Fatalf("after that, the first address does not work: %d", response.StatusCode)
	}
	cookie := response.Cookies[0].Name + "=" + response.Cookies[0].Value
	for _, env := range []string{"", mapped + "=1"} {
		if got := as(65534, b.base+"/ui/", cookie, env); !strings.HasPrefix(got, refused) {
			t.Errorf("the cookie, with %q: %s", env, got)
		}
		if got := as(0, b.base+"/ui/", cookie, env); !strings.HasPrefix(got, "200 ") {
			t.Errorf("the same user in another program, with %q: %s", env, got)
		}
	}
}

func TestConnectionsOfAnotherUserDelayNoPage(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can start a program as another user")
	}
	b := start(t, operatortest.Start(t))
	cmd := commandAs(t, 65534, copyForAnybody(t), otherUserGets+"="+b.base, otherUserHolds+"=300")
	stdin, err := cmd.StdinPipe()
	test.Must(t, err)
	stdout, err := cmd.StdoutPipe()
	test.Must(t, err)
	test.Must(t, cmd.Start())
	defer func() {
		_ = stdin.Close()
		test.Check(t, cmd.Wait())
	}()
	if line, err := bufio.NewReader(stdout).ReadString('\n'); line != "held\n" {
		t.Fatalf("%q, %v", line, err)
	}
	began := time.Now()
	b.opened()
	// A request whose header never ends is closed after 5 s.
	if took := time.Since(began); took > 4*time.Second {
		t.Errorf("the page takes %v", took)
	}
}

// commandAs returns a program that will run as another user.
func commandAs(t *testing.T, uid uint32, program string, env ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program)
	cmd.Dir, cmd.Env = "/", env
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
	return cmd
}

// copyForAnybody copies the test program to where every user may run it.
func copyForAnybody(t *testing.T) string {
	t.Helper()
	self, err := os.Executable()
	test.Must(t, err)
	content, err := os.ReadFile(self)
	test.Must(t, err)
	file, err := os.CreateTemp("", "dashboard-test-") //nolint:usetesting // another user cannot read t.TempDir
	test.Must(t, err)
	t.Cleanup(func() { _ = os.Remove(file.Name()) })
	if _, err := file.Write(content); err != nil {
		t.Fatal(err)
	}
	test.Must(t, errors.Join(file.Chmod(0o755), file.Close()))
	return file.Name()
}
