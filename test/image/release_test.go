package image

import (
	"archive/tar"
	"archive/zip"
	"bufio"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/v1/layout"
)

const (
	released     = "v0.2.0"
	releaseImage = "registry.example.com/team/proffer"
)

// commit copies the files of the repository, as they are now, into a new repository with one commit.
// The commit depends only on the files. A release is made only of what is committed.
func commit(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	list := exec.CommandContext(t.Context(), "git", "ls-files", "-z", "-co", "--exclude-standard")
	list.Dir = "../.."
	for name := range strings.SplitSeq(strings.TrimSuffix(string(must(list.Output())(t)), "\x00"), "\x00") {
		from, to := filepath.Join("../..", name), filepath.Join(dir, name)
		info, err := os.Stat(from)
		if errors.Is(err, os.ErrNotExist) { // It is deleted, and that is not committed.
			continue
		}
		if err := errors.Join(err, os.MkdirAll(filepath.Dir(to), 0o700)); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(to, must(os.ReadFile(from))(t), info.Mode().Perm()); err != nil {
			t.Fatal(err)
		}
	}
	for _, args := range [][]string{{"init", "--quiet"}, {"add", "--all"}, {"commit", "--quiet", "--message", "All"}} {
		git := exec.CommandContext(t.Context(), "git", args...)
		git.Dir = dir
		git.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@localhost", "GIT_COMMITTER_NAME=a",
			"GIT_COMMITTER_EMAIL=a@localhost", "GIT_AUTHOR_DATE=2026-01-01T00:00:00Z", "GIT_COMMITTER_DATE=2026-01-01T00:00:00Z")
		if out, err := git.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	return dir
}

// platforms are those of the plugin in the release of the test: one for each kind of archive, and the
// other one of the image. Each further one takes minutes to compile. `make release` for a tag builds all.
const platforms = "linux/amd64,linux/arm64,windows/amd64"

// makeRelease makes a release from a commit, and returns its directory.
func makeRelease(t *testing.T, base string) string {
	t.Helper()
	root := commit(t)
	if out, err := runMakeIn(t, root, base, "release", "PLATFORMS="+platforms, "VERSION="+released, "IMG="+releaseImage, "DOWNLOADS=https://example.com/"+released); err != nil {
		t.Fatalf("make release: %v\n%s", err, out)
	}
	return filepath.Join(root, "dist", released)
}

// sums returns the checksum of each file in a directory.
func sums(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, entry := range must(os.ReadDir(dir))(t) {
		sum := sha256.Sum256(must(os.ReadFile(filepath.Join(dir, entry.Name())))(t))
		all[entry.Name()] = hex.EncodeToString(sum[:])
	}
	return all
}

func TestAReleaseIsCompleteAndReproducible(t *testing.T) {
	_, base := newRegistry(t)
	dir := makeRelease(t, base)
	first := sums(t, dir)
	want := []string{
		"checksums.txt", "install.yaml",
		"kubectl-proffer_linux_amd64.tar.gz", "kubectl-proffer_linux_arm64.tar.gz", "kubectl-proffer_windows_amd64.zip",
		"proffer-0.2.0.tgz", "proffer-image.tar", "proffer-index.spdx.json", "proffer-linux-amd64.spdx.json", "proffer-linux-arm64.spdx.json",
		"proffer.yaml",
	}
	if diff := cmp.Diff(want, slices.Sorted(maps.Keys(first))); diff != "" {
		t.Errorf("the files differ (-want +got):\n%s", diff)
	}
	t.Run("checksums.txt has the checksum of each other file", func(t *testing.T) { testChecksums(t, dir, first) })
	t.Run("an archive has the plugin, its completion and the license", func(t *testing.T) { testArchives(t, dir) })
	t.Run("the plugin and the chart have the version of the release", func(t *testing.T) { testVersions(t, dir) })
	t.Run("install.yaml has the image", func(t *testing.T) {
		text := must(os.ReadFile(filepath.Join(dir, "install.yaml")))(t)
		if !bytes.Contains(text, []byte("image: "+releaseImage+":"+released+"\n")) {
			t.Error("it has another image")
		}
	})
	t.Run("the image is for each platform", func(t *testing.T) {
		oci := t.TempDir()
		for name, data := range untar(t, bytes.NewReader(must(os.ReadFile(filepath.Join(dir, "proffer-image.tar")))(t))) {
			file := filepath.Join(oci, name)
			if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, data, 0o600)); err != nil {
				t.Fatal(err)
			}
		}
		top := must(layout.ImageIndexFromPath(oci))(t)
		index := must(top.ImageIndex(must(top.IndexManifest())(t).Manifests[0].Digest))(t)
		var got []string
		for _, manifest := range must(index.IndexManifest())(t).Manifests {
			got = append(got, manifest.Platform.String())
		}
		if diff := cmp.Diff(slices.Sorted(maps.Keys(machines)), slices.Sorted(slices.Values(got))); diff != "" {
			t.Errorf("the platforms differ (-want +got):\n%s", diff)
		}
	})
	t.Run("a second release in another directory has the same bytes", func(t *testing.T) {
		if diff := cmp.Diff(first, sums(t, makeRelease(t, base))); diff != "" {
			t.Errorf("the checksums differ (-first +second):\n%s", diff)
		}
	})
}

func testChecksums(t *testing.T, dir string, want map[string]string) {
	got := map[string]string{"checksums.txt": want["checksums.txt"]}
	lines := bufio.NewScanner(bytes.NewReader(must(os.ReadFile(filepath.Join(dir, "checksums.txt")))(t)))
	for lines.Scan() {
		sum, name, _ := strings.Cut(lines.Text(), "  ")
		got[name] = sum
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the checksums differ (-want +got):\n%s", diff)
	}
}

func testArchives(t *testing.T, dir string) {
	for _, archive := range must(filepath.Glob(filepath.Join(dir, "kubectl-proffer_*")))(t) {
		got := slices.Sorted(maps.Keys(unpack(t, archive)))
		want := []string{"LICENSE", "NOTICE", "kubectl-proffer", "kubectl_complete-proffer"}
		if filepath.Ext(archive) == ".zip" {
			want = []string{"LICENSE", "NOTICE", "kubectl-proffer.exe"}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: the files differ (-want +got):\n%s", filepath.Base(archive), diff)
		}
	}
}

func testVersions(t *testing.T, dir string) {
	program := filepath.Join(t.TempDir(), "kubectl-proffer")
	files := unpack(t, filepath.Join(dir, "kubectl-proffer_"+runtime.GOOS+"_"+runtime.GOARCH+".tar.gz"))
	if err := os.WriteFile(program, files["kubectl-proffer"], 0o700); err != nil {
		t.Fatal(err)
	}
	if out := must(exec.CommandContext(t.Context(), program, "version").Output())(t); !strings.Contains(string(out), released) {
		t.Errorf("the plugin has another version: %s", out)
	}
	chart := string(unpack(t, filepath.Join(dir, "proffer-0.2.0.tgz"))["proffer/Chart.yaml"])
	for _, line := range []string{"version: \"0.2.0\"\n", "appVersion: \"" + released + "\"\n"} {
		if !strings.Contains(chart, "\n"+line) {
			t.Errorf("the chart has no line %s:\n%s", line, chart)
		}
	}
}

// unpack returns the files in an archive.
func unpack(t *testing.T, archive string) map[string][]byte {
	t.Helper()
	packed := must(os.ReadFile(archive))(t)
	if filepath.Ext(archive) != ".zip" {
		return untar(t, must(gzip.NewReader(bytes.NewReader(packed)))(t))
	}
	files := map[string][]byte{}
	for _, f := range must(zip.NewReader(bytes.NewReader(packed), int64(len(packed))))(t).File {
		files[f.Name] = must(io.ReadAll(must(f.Open())(t)))(t)
	}
	return files
}

func untar(t *testing.T, from io.Reader) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	for archive := tar.NewReader(from); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		files[header.Name] = must(io.ReadAll(archive))(t)
	}
}
