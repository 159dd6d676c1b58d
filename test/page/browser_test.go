package page

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	cdplog "github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"proffer.dev/proffer/test"
)

// pageTime bounds the actions on one tab.
const pageTime = 3 * time.Minute

// startBrowser runs a headless Chromium until the test ends.
func startBrowser(t *testing.T) context.Context {
	t.Helper()
	program, err := findBrowser()
	test.Must(t, err)
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(program), chromedp.UserDataDir(profileDir(t)),
		chromedp.WindowSize(1280, 800), chromedp.WSURLReadTimeout(pageTime),
		// Its sandbox does not work for root, nor in most containers. The browser loads our pages only.
		chromedp.NoSandbox, chromedp.Flag("disable-dev-shm-usage", true))
	allocator, stop := chromedp.NewExecAllocator(context.WithoutCancel(t.Context()), options...)
	t.Cleanup(stop)
	browser, cancel := chromedp.NewContext(allocator)
	t.Cleanup(cancel)
	test.Must(t, chromedp.Do(browser))
	return browser
}

// findBrowser returns the path of Chromium, which PROFFER_CHROMIUM can name. hack/gotest/packages.sh checks that
// there is one. Ubuntu's chromium-browser does not run without its snap, so it comes last.
func findBrowser() (string, error) {
	if program := os.Getenv("PROFFER_CHROMIUM"); program != "" {
		return exec.LookPath(program)
	}
	for _, name := range []string{"chromium", "google-chrome", "chromium-browser"} {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", errors.New("there is no Chromium in PATH: get it, or name it by PROFFER_CHROMIUM")
}

func TestAnEnvironmentVariableNamesTheBrowser(t *testing.T) {
	program := filepath.Join(t.TempDir(), "browser")
	test.Must(t, os.WriteFile(program, nil, 0o700))
	t.Setenv("PROFFER_CHROMIUM", program)
	if got, err := findBrowser(); err != nil || got != program {
		t.Errorf("got %q and %v, want %q", got, err, program)
	}
}

// profileDir returns a directory for the browser to write to, and removes it at the end of the test.
// Some processes of the browser write to it until they have noticed that the first one was killed.
func profileDir(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "profile")
	t.Cleanup(func() {
		test.Eventually(t, func() error { return os.RemoveAll(dir) })
	})
	return dir
}

// action is a step in a tab.
type action = chromedp.Action[chromedp.Void]

// command sends a command of the DevTools protocol.
func command[P, R any](c cdp.Command[P, R], params P) action {
	return chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		_, err := cdp.Call(ctx, target, c, params)
		return err
	})
}

// tab is a tab of the browser.
type tab struct {
	t   *testing.T
	ctx context.Context
	// base is the address of the dashboard.
	base string

	mu sync.Mutex
	// problems are what the console shows: errors, and violations of the Content-Security-Policy.
	problems []string
}

// open opens a dashboard. The test fails if the console shows problems that it has not taken.
func open(t *testing.T, w *world, address string, before ...action) *tab {
	t.Helper()
	p := &tab{t: t}
	ctx, cancel := chromedp.NewContext(w.browser, chromedp.WithListener(p.listen))
	t.Cleanup(cancel)
	ctx, stop := context.WithTimeout(ctx, pageTime)
	t.Cleanup(stop)
	p.ctx = ctx
	p.base, _, _ = strings.Cut(address, "/?")
	p.do(command(cdplog.Enable, cdp.Empty{}))
	p.do(before...)
	p.do(chromedp.Navigate(address), chromedp.WaitVisible("#state"))
	t.Cleanup(func() {
		for _, problem := range p.taken() {
			t.Errorf("the console shows: %s", problem)
		}
	})
	return p
}

func (p *tab) listen(event any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch e := event.(type) {
	case *cdplog.EventEntryAdded:
		p.problems = append(p.problems, fmt.Sprintf("%s %s: %s %s", e.Entry.Source, e.Entry.Level, e.Entry.Text, e.Entry.URL))
	case *runtime.EventExceptionThrown:
		p.problems = append(p.problems, (&chromedp.ExceptionError{ExceptionDetails: e.ExceptionDetails}).Error())
	case *runtime.EventConsoleAPICalled:
		p.problems = append(p.problems, fmt.Sprintf("%s: %s", e.Type, e.Args[0].Value))
	}
}

// taken returns the problems so far.
func (p *tab) taken() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	problems := p.problems
	p.problems = nil
	return problems
}

func (p *tab) do(actions ...action) {
	p.t.Helper()
	resultOf(p, chromedp.Steps(actions...))
}

// resultOf returns what an action returns.
func resultOf[T any](p *tab, a chromedp.Action[T]) T {
	p.t.Helper()
	v, err := chromedp.Run(p.ctx, a)
	if err != nil {
		shown, _ := chromedp.Run(p.ctx, chromedp.Evaluate[string]("location.href + ' ' + document.body.innerText"))
		p.t.Fatalf("%v, on the page %.2000s", err, shown)
	}
	return v
}

// visit opens a page below /ui/.
func (p *tab) visit(path string) {
	p.t.Helper()
	p.do(chromedp.Navigate(p.base+"/ui/"+path), chromedp.WaitVisible("h1"))
}

// value evaluates an expression.
func value[T any](p *tab, expression string) T {
	p.t.Helper()
	return resultOf(p, chromedp.Evaluate[T](expression))
}

// evaluate evaluates an expression for its effect.
func (p *tab) evaluate(expression string) {
	p.t.Helper()
	p.do(chromedp.Evaluate[chromedp.Void](expression))
}

// awaitTrue waits until an expression is true.
func (p *tab) awaitTrue(expression string, within time.Duration) {
	p.t.Helper()
	p.do(chromedp.Poll[chromedp.Void](expression, chromedp.WithPollingInterval(pause), chromedp.WithPollingTimeout(within)))
}

// cells returns the texts of the cells of the table rows that a selector names.
func (p *tab) cells(rows string) [][]string {
	p.t.Helper()
	return value[[][]string](p, fmt.Sprintf(`[...document.querySelectorAll(%q)].map(r => [...r.cells].map(c => c.textContent.trim()))`, rows))
}

// screenshot writes what the window shows to the ignored directory screenshots.
func (p *tab) screenshot(name string) (file string) {
	p.t.Helper()
	png := resultOf(p, chromedp.CaptureScreenshot())
	test.Must(p.t, os.MkdirAll("screenshots", 0o755))
	file = filepath.Join("screenshots", name+".png")
	test.Must(p.t, os.WriteFile(file, png, 0o600))
	return file
}
