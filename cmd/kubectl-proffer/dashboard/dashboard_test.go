package dashboard_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"proffer.dev/proffer/cmd/kubectl-proffer/dashboard"
	"proffer.dev/proffer/cmd/kubectl-proffer/internal/operatorclient"
	"proffer.dev/proffer/test"
	"proffer.dev/proffer/test/operatortest"
)

const (
	simulatorPath = "POST /api/v1/namespaces/proffer-system/serviceaccounts/proffer-simulator/token"
	patience      = 10 * time.Second
)

// board is a running command.
type board struct {
	t *testing.T
	// first is the address that it prints, base that of the pages.
	first, base string
	stderr      *bytes.Buffer
	stop        func() error
}

// start runs the command until the test ends.
func start(t *testing.T, s *operatortest.Server, args ...string) *board {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	out, in := io.Pipe()
	b := &board{t: t, stderr: &bytes.Buffer{}}
	cmd := dashboard.NewCommand(operatorclient.NewFlags(s.Flags()), genericiooptions.IOStreams{In: &bytes.Buffer{}, Out: in, ErrOut: b.stderr})
	cmd.SetArgs(append([]string{"--no-browser"}, args...))
	ended := make(chan error, 1)
	go func() {
		err := cmd.ExecuteContext(ctx)
		_ = in.CloseWithError(io.EOF)
		ended <- err
	}()
	b.stop = func() error {
		cancel()
		select {
		case err := <-ended:
			ended <- err
			return err
		case <-time.After(patience):
			return fmt.Errorf("it still runs after %v", patience)
		}
	}
	t.Cleanup(func() {
		test.Check(t, b.stop())
	})
	lines := bufio.NewScanner(out)
	for b.first == "" && lines.Scan() {
		b.first = regexp.MustCompile(`http://127\.0\.0\.1:\d+/\?key=[A-Z2-7]{26}$`).FindString(lines.Text())
	}
	if b.first == "" {
		t.Fatalf("no address is printed: %v, %s", b.stop(), b.stderr)
	}
	go func() { _, _ = io.Copy(io.Discard, out) }()
	b.base, _, _ = strings.Cut(b.first, "/?")
	return b
}

// browser is a client that keeps cookies.
func browser(t *testing.T) *http.Client {
	t.Helper()
	jar, err := cookiejar.New(nil)
	test.Must(t, err)
	return &http.Client{Jar: jar, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// answered is what an answer has besides its body.
type answered struct {
	StatusCode int
	Header     http.Header
	Cookies    []*http.Cookie
}

// ask sends a request, with headers as in "Name: value".
func (b *board) ask(client *http.Client, method, address, body string, headers ...string) (answered, string) {
	b.t.Helper()
	request, err := http.NewRequestWithContext(b.t.Context(), method, address, strings.NewReader(body))
	test.Must(b.t, err)
	for _, header := range headers {
		name, value, _ := strings.Cut(header, ": ")
		request.Header.Set(name, value)
		if name == "Host" {
			request.Host = value
		}
	}
	response, err := client.Do(request)
	test.Must(b.t, err)
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	test.Must(b.t, err)
	return answered{response.StatusCode, response.Header, response.Cookies()}, string(text)
}

// opened is a browser that has opened the first address.
func (b *board) opened() *http.Client {
	b.t.Helper()
	client := browser(b.t)
	if response, text := b.ask(client, "GET", b.first, ""); response.StatusCode != http.StatusOK || !strings.Contains(text, `url=./ui/"`) {
		b.t.Fatalf("%d %s", response.StatusCode, text)
	}
	return client
}

func TestTheFirstAddressWorksOnceAndSetsACookieForThePages(t *testing.T) {
	b := start(t, operatortest.Start(t))
	client := b.opened()
	address, err := url.Parse(b.base)
	test.Must(t, err)
	if cookies := client.Jar.Cookies(address); len(cookies) != 1 || strings.Contains(b.first, cookies[0].Value) {
		t.Errorf("cookies %v", cookies)
	}
	if response, _ := b.ask(client, "GET", b.base+"/", ""); response.StatusCode != http.StatusSeeOther || response.Header.Get("Location") != "/ui/" {
		t.Errorf("%d %v", response.StatusCode, response.Header)
	}
	if response, text := b.ask(client, "GET", b.base+"/ui/", ""); response.StatusCode != http.StatusOK || !strings.HasPrefix(text, "proffer-simulator: GET /ui/") {
		t.Errorf("%d %s", response.StatusCode, text)
	}
	other := browser(t)
	for _, path := range []string{b.first, b.base + "/?key=", b.base + "/?key=AAAAAAAAAAAAAAAAAAAAAAAAAA", b.base + "/", b.base + "/ui/"} {
		if response, _ := b.ask(other, "GET", path, ""); response.StatusCode != http.StatusForbidden || len(response.Cookies) > 0 {
			t.Errorf("another browser gets %d for %s", response.StatusCode, path)
		}
	}
	// The browser that has the cookie may open it again, as when it restores its tabs.
	if response, _ := b.ask(client, "GET", b.first, ""); response.StatusCode != http.StatusOK {
		t.Errorf("%d", response.StatusCode)
	}
}

func TestTheCookieIsForThisBrowserAndThisSiteOnly(t *testing.T) {
	b := start(t, operatortest.Start(t))
	response, _ := b.ask(browser(t), "GET", b.first, "")
	cookies := response.Cookies
	if len(cookies) != 1 || !cookies[0].HttpOnly || cookies[0].SameSite != http.SameSiteStrictMode || cookies[0].Domain != "" {
		t.Errorf("cookies %+v", cookies)
	}
}

func TestOtherSitesAndOtherRequestsAreRefused(t *testing.T) {
	s := operatortest.Start(t)
	b := start(t, s)
	client := b.opened()
	_, port, _ := strings.Cut(strings.TrimPrefix(b.base, "http://"), ":")
	for _, tc := range []struct {
		method, path string
		header       string
		code         int
	}{
		{"GET", "/ui/consumers/rome", "", 200},
		{"GET", "/ui/consumers/a%2Fb", "", 200},
		{"HEAD", "/ui/", "", 200},
		{"POST", "/ui/simulate", "", 200},
		{"POST", "/ui/simulate", "Origin: " + b.base, 200},
		{"GET", "/ui/", "Sec-Fetch-Site: none", 200},
		{"GET", "/ui/", "Host: evil.example:" + port, 403},
		{"GET", "/ui/", "Host: localhost:" + port, 403},
		{"GET", "/ui/", "Sec-Fetch-Site: cross-site", 403},
		{"GET", "/ui/", "Sec-Fetch-Site: same-site", 403},
		{"POST", "/ui/providers", "", 200},
		{"POST", "/ui/providers", "Sec-Fetch-Site: cross-site", 403},
		{"PUT", "/ui/providers", "", 405},
		{"POST", "/ui/simulate", "Sec-Fetch-Site: cross-site", 403},
		{"POST", "/ui/simulate", "Origin: http://127.0.0.1:1", 403},
		{"POST", "/ui/simulate", "Origin: null", 403},
		{"POST", "/ui/", "", 405},
		{"PUT", "/ui/simulate", "", 405},
		{"DELETE", "/ui/", "", 405},
		{"GET", "/offers", "", 404},
		{"GET", "/simulate", "", 404},
		{"GET", "/ui/../offers", "", 404},
		{"GET", "/ui/%2e%2e/offers", "", 404},
		{"GET", "/ui/consumers/%2e%2e", "", 404},
		{"GET", "/ui//offers", "", 404},
	} {
		var headers []string
		if tc.header != "" {
			headers = append(headers, tc.header)
		}
		response, text := b.ask(client, tc.method, b.base+tc.path, "", headers...)
		if response.StatusCode != tc.code {
			t.Errorf("%s %s %s: %d %s, want %d", tc.method, tc.path, tc.header, response.StatusCode, text, tc.code)
		}
		if csp := response.Header.Get("Content-Security-Policy"); !strings.Contains(csp, "default-src 'self'") {
			t.Errorf("%s %s has the policy %q", tc.method, tc.path, csp)
		}
	}
}

func TestOnlyWhatThePagesNeedIsPassedOn(t *testing.T) {
	b := start(t, operatortest.Start(t))
	client := b.opened()
	response, text := b.ask(client, "POST", b.base+"/ui/simulate?a=b", "policy=x", "Content-Type: application/x-www-form-urlencoded", "HX-Request: true",
		"Origin: "+b.base, "Authorization: Bearer other", "X-Proffer-Token: other", "Referer: "+b.first)
	for _, want := range []string{"POST /ui/simulate?a=b ", "Content-Type: application/x-www-form-urlencoded", "Hx-Request: true", "policy=x"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	for _, not := range []string{"Cookie", "Origin", "other", "Referer"} {
		if strings.Contains(text, not) {
			t.Errorf("%q in\n%s", not, text)
		}
	}
	if len(response.Cookies) > 0 || response.Header.Get("ETag") != `"page"` {
		t.Errorf("%v", response.Header)
	}
	if response, _ := b.ask(client, "POST", b.base+"/ui/simulate", strings.Repeat("x", 2<<20)); response.StatusCode < 400 {
		t.Errorf("a body of 2 MiB: %d", response.StatusCode)
	}
}

func TestACallerWithoutTheRightToSimulateReads(t *testing.T) {
	s := operatortest.Start(t)
	s.Refuse(simulatorPath, operatortest.Refusal{Code: 403, Body: operatortest.Status(403, metav1.StatusReasonForbidden, "forbidden", nil)})
	b := start(t, s)
	client := b.opened()
	if response, text := b.ask(client, "GET", b.base+"/ui/", ""); response.StatusCode != http.StatusOK || !strings.HasPrefix(text, "proffer-reader: ") {
		t.Errorf("%d %s", response.StatusCode, text)
	}
	if response, text := b.ask(client, "POST", b.base+"/ui/simulate", "policy=a"); response.StatusCode != http.StatusForbidden || !strings.HasPrefix(text, "proffer-reader: ") {
		t.Errorf("%d %s", response.StatusCode, text)
	}
	if err := b.stop(); err != nil || !strings.Contains(b.stderr.String(), "needs Role proffer-plugin-simulator") {
		t.Errorf("%v %s", err, b.stderr)
	}
}

func TestAnErrorOnTheWayToTheOperatorIsAPage(t *testing.T) {
	s := operatortest.Start(t)
	b := start(t, s)
	client := b.opened()
	of := &metav1.StatusDetails{Kind: "services"}
	for _, tc := range []struct {
		refusal operatortest.Refusal
		code    int
		want    string
	}{
		{operatortest.Refusal{Code: 403, Body: operatortest.Status(403, metav1.StatusReasonForbidden, "forbidden", of)}, 403, "ask for Role proffer-plugin-simulator"},
		{operatortest.Refusal{Code: 503, Body: operatortest.Status(503, metav1.StatusReasonServiceUnavailable, "no endpoints available", of)}, 503, "no replica of the operator is ready"},
		{operatortest.Refusal{Code: 500, Body: "<script>"}, 502, "&lt;script&gt;"},
	} {
		s.Refuse(operatortest.OperatorPath("GET", "/ui/"), tc.refusal)
		response, text := b.ask(client, "GET", b.base+"/ui/", "")
		if response.StatusCode != tc.code || !strings.Contains(text, tc.want) || !strings.Contains(text, "<h1>") {
			t.Errorf("%d %s", response.StatusCode, text)
		}
	}
	if response, text := b.ask(client, "GET", b.base+"/ui/none", ""); response.StatusCode != http.StatusBadGateway || !strings.Contains(text, "too old for this plugin") {
		t.Errorf("%d %s", response.StatusCode, text)
	}
}

func TestATokenIsRenewedWhileTheDashboardRuns(t *testing.T) {
	s := operatortest.Start(t)
	s.SetTokenLifetime(30 * time.Second) // The last minute of a token is not used.
	b := start(t, s)
	client := b.opened()
	for range 2 {
		if response, text := b.ask(client, "GET", b.base+"/ui/", ""); response.StatusCode != http.StatusOK {
			t.Errorf("%d %s", response.StatusCode, text)
		}
	}
	if n := s.Tokens(operatorclient.Simulator.Name); n != 3 {
		t.Errorf("%d tokens", n)
	}
}

func TestTheDashboardListensOnTheLoopbackDeviceAndEndsAtOnce(t *testing.T) {
	s := operatortest.Start(t)
	b := start(t, s)
	// A connection that has sent nothing, and one that is kept alive.
	idle, err := new(net.Dialer).DialContext(t.Context(), "tcp", strings.TrimPrefix(b.base, "http://"))
	test.Must(t, err)
	defer func() { _ = idle.Close() }()
	b.opened()
	begun := time.Now()
	test.Check(t, b.stop())
	if took := time.Since(begun); took > 5*time.Second {
		t.Errorf("it takes %v to end", took)
	}
	for args, want := range map[string]string{
		"--port=70000": "write 1 to 65535",
		"--port=-1":    "write 1 to 65535",
	} {
		cmd := dashboard.NewCommand(operatorclient.NewFlags(s.Flags()), genericiooptions.NewTestIOStreamsDiscard())
		cmd.SetArgs([]string{args})
		cmd.SilenceErrors, cmd.SilenceUsage = true, true
		if err := cmd.ExecuteContext(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", args, err)
		}
	}
}

func TestAPortThatIsTakenIsExplained(t *testing.T) {
	s := operatortest.Start(t)
	b := start(t, s)
	cmd := dashboard.NewCommand(operatorclient.NewFlags(s.Flags()), genericiooptions.NewTestIOStreamsDiscard())
	cmd.SetArgs([]string{"--port", b.base[strings.LastIndex(b.base, ":")+1:]})
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	if err := cmd.ExecuteContext(t.Context()); err == nil || !strings.Contains(err.Error(), "choose another port with --port") {
		t.Error(err)
	}
}

func TestTheBrowserOfTheDesktopIsOpened(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the test replaces xdg-open")
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "opened")
	script := "#!/bin/sh\nprintf %s \"$1\" > " + file + ".new && mv " + file + ".new " + file + "\n"
	if err := os.WriteFile(filepath.Join(dir, "xdg-open"), []byte(script), 0o700); err != nil { //nolint:gosec // it is a program
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
	t.Setenv("DISPLAY", ":0")
	b := start(t, operatortest.Start(t), "--no-browser=false")
	test.Eventually(t, func() error {
		text, err := os.ReadFile(file)
		if err == nil && string(text) != b.first {
			err = fmt.Errorf("the browser got %q, want %q", text, b.first)
		}
		return err
	})
}
