package image

import (
	"archive/tar"
	"bytes"
	"debug/elf"
	"errors"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// machines are the platforms of the image and the ELF machines of their programs.
var machines = map[string]elf.Machine{"linux/amd64": elf.EM_X86_64, "linux/arm64": elf.EM_AARCH64}

// must ends the test on an error and otherwise returns the value: must(f())(t).
func must[T any](value T, err error) func(*testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
}

// newRegistry starts a registry with a base image for our platforms and for another one. It returns
// the address of the registry and the reference of the base.
func newRegistry(t *testing.T) (address, base string) {
	t.Helper()
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(server.Close)
	address = strings.TrimPrefix(server.URL, "http://")
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, p := range []string{"linux/amd64", "linux/arm64", "linux/s390x"} {
		platform := must(v1.ParsePlatform(p))(t)
		image := mutate.MediaType(must(random.Image(64, 1))(t), types.OCIManifestSchema1)
		config := must(image.ConfigFile())(t).DeepCopy()
		config.OS, config.Architecture, config.Config.User = platform.OS, platform.Architecture, "root"
		image = must(mutate.ConfigFile(image, config))(t)
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: image, Descriptor: v1.Descriptor{Platform: platform}})
	}
	tag := must(name.NewTag(address + "/base:latest"))(t)
	if err := remote.WriteIndex(tag, index); err != nil {
		t.Fatal(err)
	}
	return address, tag.Context().Digest(must(index.Digest())(t).String()).String()
}

// runMake runs make in the repository, without a Docker configuration or daemon.
func runMake(t *testing.T, base string, args ...string) (string, error) {
	t.Helper()
	return runMakeIn(t, "../..", base, args...)
}

// runMakeIn does the same in another copy of the repository.
func runMakeIn(t *testing.T, root, base string, args ...string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "make", append([]string{"-C", root, "--no-print-directory"}, args...)...)
	cmd.Env = append(os.Environ(), "KO_DEFAULTBASEIMAGE="+base, "DOCKER_CONFIG="+t.TempDir(),
		"DOCKER_HOST=unix:///nowhere")
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	return out.String(), err
}

// The push needs no Docker. The image fits the Deployment of config/manager.
func TestTheImageIsPushedForEveryPlatform(t *testing.T) {
	address, base := newRegistry(t)
	image := address + "/team/proffer:v0.1.0"
	if out, err := runMake(t, base, "image-push", "IMG="+image); err != nil {
		t.Fatalf("make image-push: %v\n%s", err, out)
	}
	described := must(exec.Command("git", "describe", "--tags", "--always", "--dirty").Output())(t)
	version := strings.TrimSpace(string(described))
	index := must(remote.Index(must(name.NewTag(image))(t)))(t)
	got := map[string]elf.Machine{}
	for _, manifest := range must(index.IndexManifest())(t).Manifests {
		one := must(index.Image(manifest.Digest))(t)
		config := must(one.ConfigFile())(t)
		platform := config.OS + "/" + config.Architecture
		if p := manifest.Platform.String(); p != platform {
			t.Errorf("the index has platform %s for an image of %s", p, platform)
		}
		if got := config.Config.User; got != "65532:65532" {
			t.Errorf("%s: the user is %s, want 65532:65532, that of the Deployment", platform, got)
		}
		if diff := cmp.Diff([]string{"/ko-app/proffer"}, config.Config.Entrypoint); diff != "" || len(config.Config.Cmd) > 0 {
			t.Errorf("%s: entrypoint (-want +got):\n%s and command %v", platform, diff, config.Config.Cmd)
		}
		if got := config.Config.Labels["org.opencontainers.image.version"]; got != version {
			t.Errorf("%s: the label says version %s, want %s", platform, got, version)
		}
		annotations := must(one.Manifest())(t).Annotations
		if name, _, _ := strings.Cut(base, "@"); !strings.HasPrefix(annotations["org.opencontainers.image.base.name"], name) {
			t.Errorf("%s: the annotations do not name the base image: %v", platform, annotations)
		}
		if !strings.Contains(spdx(t, image, manifest.Digest), "pkg:golang/k8s.io/client-go@") {
			t.Errorf("%s: the SBOM does not have client-go", platform)
		}
		program := filepath.Join(t.TempDir(), "proffer")
		if err := os.WriteFile(program, file(t, one, "ko-app/proffer"), 0o700); err != nil {
			t.Fatal(err)
		}
		binary := must(elf.Open(program))(t)
		got[platform] = binary.Machine
		if libraries := must(binary.ImportedLibraries())(t); len(libraries) > 0 {
			t.Errorf("%s: the program needs the libraries %v, which the base image does not have", platform, libraries)
		}
		if platform == "linux/"+runtime.GOARCH && runtime.GOOS == "linux" {
			out := must(exec.CommandContext(t.Context(), program, "--version").CombinedOutput())(t)
			if got, want := strings.TrimSpace(string(out)), "proffer "+version; got != want {
				t.Errorf("--version prints %q, want %q", got, want)
			}
		}
	}
	if diff := cmp.Diff(machines, got); diff != "" {
		t.Errorf("the platforms differ (-want +got):\n%s", diff)
	}

	t.Run("make image writes the same to a directory", func(t *testing.T) {
		if out, err := runMake(t, base, "image"); err != nil {
			t.Fatalf("make image: %v\n%s", err, out)
		}
		written := must(must(layout.ImageIndexFromPath("../../bin/image"))(t).IndexManifest())(t).Manifests
		if pushed := must(index.Digest())(t); len(written) != 1 || written[0].Digest != pushed {
			t.Errorf("bin/image has %v, want only %s", written, pushed)
		}
	})
}

// Otherwise the image could end up in a default registry by accident.
func TestAnImageIsNotPushedWithoutARegistryAndATag(t *testing.T) {
	for _, args := range [][]string{
		{}, {"IMG=proffer:v0.1.0"}, {"IMG=localhost:5000/proffer"}, {"IMG=localhost:5000/proffer@sha256:00"},
	} {
		out, err := runMake(t, "nowhere.invalid/base", append([]string{"image-push"}, args...)...)
		if err == nil || !strings.Contains(out, "write make image-push IMG=registry.example.com/proffer:") {
			t.Errorf("make image-push %v: %v, want an error with the right command:\n%s", args, err, out)
		}
	}
}

// With the digest the same commit gives the same image.
func TestTheBaseIsNamedByDigest(t *testing.T) {
	text := string(must(os.ReadFile("../../.ko.yaml"))(t))
	for line := range strings.Lines(text) {
		if base, ok := strings.CutPrefix(line, "defaultBaseImage: "); ok {
			must(name.NewDigest(strings.TrimSpace(base), name.StrictValidation))(t)
			return
		}
	}
	t.Errorf("no base image is set:\n%s", text)
}

// spdx returns the SBOM of an image, which is pushed next to it.
func spdx(t *testing.T, image string, digest v1.Hash) string {
	t.Helper()
	tag := must(name.NewTag(image))(t).Context().Tag(strings.ReplaceAll(digest.String(), ":", "-") + ".sbom")
	layers := must(must(remote.Image(tag))(t).Layers())(t)
	if len(layers) != 1 {
		t.Fatalf("%s has %d layers, want 1", tag, len(layers))
	}
	reader := must(layers[0].Uncompressed())(t)
	defer func() { _ = reader.Close() }()
	return string(must(io.ReadAll(reader))(t))
}

// file returns the content of a file in the image.
func file(t *testing.T, image v1.Image, path string) []byte {
	t.Helper()
	reader := mutate.Extract(image)
	defer func() { _ = reader.Close() }()
	files := tar.NewReader(reader)
	for {
		header, err := files.Next()
		if errors.Is(err, io.EOF) {
			t.Fatalf("the image has no file %s", path)
		}
		if err != nil {
			t.Fatal(err)
		}
		if slices.Contains([]string{path, "/" + path}, header.Name) {
			return must(io.ReadAll(files))(t)
		}
	}
}
