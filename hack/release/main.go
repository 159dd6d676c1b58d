// Command release writes every file of a release to one directory:
//
//	install.yaml                             everything that make deploy applies
//	proffer-0.1.0.tgz                        the Helm chart
//	proffer-image.tar                        the image for all platforms, an OCI layout
//	*.spdx.json                              the contents of the image, for each platform
//	kubectl-proffer_linux_amd64.tar.gz ...   the plugin for kubectl, for five platforms
//	proffer.yaml                             the plugin's manifest for krew
//	checksums.txt                            the SHA-256 of all other files
//
// The same commit, arguments and version of Go produce the same bytes. The command pushes, signs and
// publishes nothing.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

// release is one release that is being made.
type release struct {
	// version begins with v. image is a name without a tag. downloads is the URL of the directory from
	// which the files will be downloaded.
	version, image, downloads string
	// platforms lists the platforms of the plugin.
	platforms []platform
	// out is the absolute path of the directory to write to.
	out string
	// made is the time of the commit. Every file in an archive has it.
	made time.Time
	log  io.Writer
}

var (
	versionPattern = regexp.MustCompile(`^v[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?$`)
	imagePattern   = regexp.MustCompile(`^[A-Za-z0-9._-]+(:[0-9]+)?(/[a-z0-9._-]+)+$`)
)

func run(ctx context.Context, args []string, log io.Writer) error {
	r := &release{log: log}
	flags := flag.NewFlagSet("release", flag.ContinueOnError)
	flags.StringVar(&r.version, "version", "", "the version, such as v0.1.0")
	flags.StringVar(&r.image, "image", "", "the image without a tag, such as registry.example.com/proffer")
	flags.StringVar(&r.downloads, "downloads", "",
		"the https URL of the directory from which the files will be downloaded")
	flags.StringVar(&r.out, "out", "", "the directory to write to (default dist/VERSION); it must not exist")
	names := flags.String("platforms", "",
		"build the plugin only for these, such as linux/amd64,windows/amd64, to try a release")
	if err := flags.Parse(args); errors.Is(err, flag.ErrHelp) {
		return nil
	} else if err != nil {
		return err
	}
	var err error
	if r.platforms, err = choosePlatforms(*names); err != nil {
		return err
	}
	if err := r.check(); err != nil {
		return err
	}
	if err := r.prepare(ctx); err != nil {
		return err
	}
	for _, step := range []func(context.Context) error{r.plugins, r.chart, r.installer, r.imageFiles, r.checksums} {
		if err := step(ctx); err != nil {
			return errors.Join(err, os.RemoveAll(r.out))
		}
	}
	r.say("%s has all files. Nothing is published", r.out)
	return nil
}

// check returns an error that says what to write for an argument that is missing or wrong.
func (r *release) check() error {
	if !versionPattern.MatchString(r.version) {
		return fmt.Errorf("the version is %q: write VERSION=v0.1.0", r.version)
	}
	if !imagePattern.MatchString(r.image) {
		return fmt.Errorf("the image is %q: write IMG=registry.example.com/proffer, without a tag", r.image)
	}
	if u, err := url.Parse(r.downloads); err != nil || u.Scheme != "https" || u.Host == "" {
		return fmt.Errorf("the URL of the files is %q: write DOWNLOADS=https://example.com/proffer/%s",
			r.downloads, r.version)
	}
	r.downloads = strings.TrimSuffix(r.downloads, "/")
	return nil
}

// prepare reads the time of the commit, and creates the directory.
func (r *release) prepare(ctx context.Context) error {
	dirty, err := output(ctx, "git", "status", "--porcelain")
	if err != nil {
		return err
	}
	if dirty != "" {
		return fmt.Errorf("the release has to be that of a commit: commit or remove these files first:\n%s", dirty)
	}
	seconds, err := output(ctx, "git", "log", "-1", "--format=%ct")
	if err != nil {
		return err
	}
	at, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil {
		return fmt.Errorf("the time of the commit: %w", err)
	}
	r.made = time.Unix(at, 0).UTC()
	if r.out == "" {
		r.out = filepath.Join("dist", r.version)
	}
	if r.out, err = filepath.Abs(r.out); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(r.out), 0o755); err != nil {
		return err
	}
	if err := os.Mkdir(r.out, 0o755); err != nil {
		return fmt.Errorf("%w: remove it first, or name another directory", err)
	}
	return nil
}

func (r *release) say(format string, args ...any) {
	_, _ = fmt.Fprintf(r.log, "release: "+format+"\n", args...)
}

func (r *release) file(name string) string { return filepath.Join(r.out, name) }

// output runs a command and returns its trimmed output.
func output(ctx context.Context, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w", name, strings.Join(args, " "), err)
	}
	return strings.TrimSpace(string(out)), nil
}

// do runs a command with more environment variables. Its output goes to the log.
func (r *release) do(ctx context.Context, environment []string, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = append(os.Environ(), environment...)
	cmd.Stdout, cmd.Stderr = r.log, r.log
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s %s: %w", name, strings.Join(args, " "), err)
	}
	return nil
}
