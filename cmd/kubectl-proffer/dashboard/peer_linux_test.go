package dashboard_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"proffer.dev/proffer/cmd/kubectl-proffer/internal/operatortest"
)

// otherUserGets is the environment variable with the address that the test program opens as another
// user, and cookieOfVictim the cookie that it sends.
const otherUserGets, cookieOfVictim = "PROFFER_TEST_OTHER_USER_GETS", "PROFFER_TEST_COOKIE"

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
	request.Header.Set("Cookie", os.Getenv(cookieOfVictim))
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		panic(err)
	}
	text, _ := io.ReadAll(response.Body)
	_ = response.Body.Close()
	fmt.Println(response.StatusCode, string(text))
}

func TestAnotherUserGetsNothingWithTheFirstAddressOrTheCookie(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can start a program as another user")
	}
	program := copyForAnybody(t)
	b := start(t, operatortest.Start(t))
	as := func(uid uint32, address, cookie string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), program)
		cmd.Dir = "/"
		cmd.Env = []string{otherUserGets + "=" + address, cookieOfVictim + "=" + cookie}
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return string(out)
	}
	const refused = "403 "
	if got := as(65534, b.first, ""); !strings.HasPrefix(got, refused) || !strings.Contains(got, "Another user of this machine") {
		t.Errorf("the first address: %s", got)
	}
	response, _ := b.ask(browser(t), "GET", b.first, "")
	if response.StatusCode != http.StatusOK || len(response.Cookies) != 1 {
		t.Fatalf("after that, the first address does not work: %d", response.StatusCode)
	}
	cookie := response.Cookies[0].Name + "=" + response.Cookies[0].Value
	if got := as(65534, b.base+"/ui/", cookie); !strings.HasPrefix(got, refused) {
		t.Errorf("the cookie: %s", got)
	}
	if got := as(0, b.base+"/ui/", cookie); !strings.HasPrefix(got, "200 ") {
		t.Errorf("the same user in another program: %s", got)
	}
}

// copyForAnybody copies the test program to where every user may run it.
func copyForAnybody(t *testing.T) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(self)
	if err != nil {
		t.Fatal(err)
	}
	file, err := os.CreateTemp("", "dashboard-test-") //nolint:usetesting // another user cannot read t.TempDir
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Remove(file.Name()) })
	if _, err := file.Write(content); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(file.Chmod(0o755), file.Close()); err != nil {
		t.Fatal(err)
	}
	return file.Name()
}
