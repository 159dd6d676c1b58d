package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"proffer.dev/proffer/test"
)

// manifest has every field that krew knows, of
// https://krew.sigs.k8s.io/docs/developer-guide/plugin-manifest/.
type manifest struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   struct {
		Name string `json:"name"`
	} `json:"metadata"`
	Spec struct {
		Version          string `json:"version"`
		ShortDescription string `json:"shortDescription"`
		Description      string `json:"description"`
		Caveats          string `json:"caveats"`
		Homepage         string `json:"homepage"`
		Platforms        []struct {
			URI      string `json:"uri"`
			SHA256   string `json:"sha256"`
			Bin      string `json:"bin"`
			Selector struct {
				MatchLabels map[string]string `json:"matchLabels"`
			} `json:"selector"`
		} `json:"platforms"`
	} `json:"spec"`
}

// packed returns a release whose archives have a text as the program, and its manifest for krew.
func packed(t *testing.T) (*release, *manifest) {
	t.Helper()
	r := &release{version: "v0.2.0", downloads: "https://example.com/v0.2.0", platforms: platforms, out: t.TempDir(), log: t.Output()}
	for _, p := range platforms {
		test.Must(t, r.pack(p, []byte(p.String()), []byte("script"), nil))
	}
	test.Must(t, r.krew())
	text := test.Read(t, r.file("proffer.yaml"))
	m := &manifest{}
	test.Must(t, yaml.UnmarshalStrict([]byte(text), m))
	return r, m
}

var (
	pluginName = regexp.MustCompile(`^[a-z][a-z0-9-]*$`)
	semver     = regexp.MustCompile(`^v[0-9]+\.[0-9]+\.[0-9]+$`)
)

func TestTheManifestFollowsTheRulesOfKrew(t *testing.T) {
	_, m := packed(t)
	if m.APIVersion != "krew.googlecontainertools.github.com/v1alpha2" || m.Kind != "Plugin" {
		t.Errorf("it is a %s of %s", m.Kind, m.APIVersion)
	}
	// The program of the plugin NAME is kubectl-NAME, and the file of its manifest NAME.yaml.
	if name := m.Metadata.Name; !pluginName.MatchString(name) || "kubectl-"+name != plugin {
		t.Errorf("the name is %q", name)
	}
	if !semver.MatchString(m.Spec.Version) {
		t.Errorf("the version is %q", m.Spec.Version)
	}
	if short := m.Spec.ShortDescription; short == "" || len(short) > 60 || strings.ContainsAny(short, "\r\n.") {
		t.Errorf("the short description is %q, want a line without a full stop", short)
	}
	if m.Spec.Description == "" || !strings.HasPrefix(m.Spec.Homepage, "https://") {
		t.Errorf("the description is %q, and the homepage %q", m.Spec.Description, m.Spec.Homepage)
	}
}

func TestEachPlatformOfTheManifestHasItsArchive(t *testing.T) {
	r, m := packed(t)
	var got []platform
	for _, p := range m.Spec.Platforms {
		labels := p.Selector.MatchLabels
		is := platform{labels["os"], labels["arch"]}
		got = append(got, is)
		archive, found := strings.CutPrefix(p.URI, r.downloads+"/")
		sum, err := sha256Of(r.file(archive))
		if !found || err != nil || p.SHA256 != sum || len(labels) != 2 {
			t.Errorf("%s: the archive is %s with %s, want %s (%v)", is, p.URI, p.SHA256, sum, err)
		}
		if p.Bin != is.program() {
			t.Errorf("%s: the program is %s, want %s", is, p.Bin, is.program())
		}
	}
	if diff := cmp.Diff(platforms, got, cmp.AllowUnexported(platform{})); diff != "" {
		t.Errorf("the platforms differ (-want +got):\n%s", diff)
	}
}

// TestTheCommandInTheCaveatsLinksTheCompletion in the directories of krew: it unpacks an archive in
// store/NAME/VERSION, and links only the program.
func TestTheCommandInTheCaveatsLinksTheCompletion(t *testing.T) {
	_, m := packed(t)
	krew := t.TempDir()
	store, bin := filepath.Join(krew, "store", "proffer", "v0.2.0"), filepath.Join(krew, "bin")
	for _, dir := range []string{store, bin} {
		test.Must(t, os.MkdirAll(dir, 0o750))
	}
	for _, name := range []string{plugin, completion} {
		test.Must(t, os.WriteFile(filepath.Join(store, name), nil, 0o700)) //nolint:gosec // it stands for a program
	}
	test.Must(t, os.Symlink(filepath.Join(store, plugin), filepath.Join(bin, plugin)))
	_, command, _ := strings.Cut(m.Spec.Caveats, "\n")
	for range 2 { // As after an upgrade.
		cmd := exec.CommandContext(t.Context(), "sh", "-c", command)
		cmd.Env = append(os.Environ(), "KREW_ROOT="+krew, "PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH"))
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", command, err, out)
		}
	}
	got, err := filepath.EvalSymlinks(filepath.Join(bin, completion))
	test.Must(t, err)
	want, err := filepath.EvalSymlinks(filepath.Join(store, completion))
	test.Must(t, err)
	if got != want {
		t.Errorf("the completion is linked to %s, want %s", got, want)
	}
}
