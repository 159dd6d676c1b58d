package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

const (
	// plugin is the name of the plugin's program. kubectl finds the program by this name.
	plugin = "kubectl-proffer"
	// completion is the script that kubectl runs to complete the plugin's arguments. It needs a shell,
	// so the archive for Windows does not have it.
	completion = "kubectl_complete-proffer"
)

// platform is one for which the plugin is released.
type platform struct{ os, arch string }

var platforms = []platform{
	{"linux", "amd64"}, {"linux", "arm64"}, {"darwin", "amd64"}, {"darwin", "arm64"}, {"windows", "amd64"},
}

// choosePlatforms returns the named platforms, such as linux/amd64,windows/amd64, in the order of
// platforms. Without names it returns all.
func choosePlatforms(names string) ([]platform, error) {
	if names == "" {
		return platforms, nil
	}
	wanted := strings.Split(names, ",")
	var chosen []platform
	for _, p := range platforms {
		if i := slices.Index(wanted, p.String()); i >= 0 {
			chosen, wanted = append(chosen, p), slices.Delete(wanted, i, i+1)
		}
	}
	if len(wanted) > 0 {
		return nil, fmt.Errorf("the plugin is not released for %q: write some of %v, with commas", wanted, platforms)
	}
	return chosen, nil
}

func (p platform) String() string { return p.os + "/" + p.arch }

func (p platform) windows() bool { return p.os == "windows" }

// program is the name of the program in the archive.
func (p platform) program() string {
	if p.windows() {
		return plugin + ".exe"
	}
	return plugin
}

func (p platform) archive() string {
	name := fmt.Sprintf("%s_%s_%s", plugin, p.os, p.arch)
	if p.windows() {
		return name + ".zip"
	}
	return name + ".tar.gz"
}

// plugins builds the plugin for each platform, and writes the manifest for krew.
func (r *release) plugins(ctx context.Context) error {
	script, err := os.ReadFile(filepath.Join("cmd", plugin, completion))
	if err != nil {
		return err
	}
	// Licenses of what the program contains demand that whoever gets it knows where the source is.
	texts := []member{{name: "LICENSE"}, {name: "NOTICE"}}
	for i := range texts {
		if texts[i].data, err = os.ReadFile(texts[i].name); err != nil {
			return err
		}
	}
	work, err := os.MkdirTemp("", "release-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(work) }()
	for i, p := range r.platforms {
		r.say("%s for %s (%d of %d)", plugin, p, i+1, len(r.platforms))
		program, err := r.build(ctx, p, filepath.Join(work, plugin))
		if err != nil {
			return err
		}
		if err := r.pack(p, program, script, texts); err != nil {
			return err
		}
	}
	return r.krew()
}

// build returns the plugin's program for a platform, which it builds at a path.
func (r *release) build(ctx context.Context, p platform, at string) ([]byte, error) {
	if err := r.do(ctx, []string{"CGO_ENABLED=0", "GOOS=" + p.os, "GOARCH=" + p.arch, "GOWORK=off"},
		"go", "build", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w -X main.version="+r.version,
		"-o", at, "./cmd/"+plugin); err != nil {
		return nil, err
	}
	return os.ReadFile(at)
}

// pack writes the archive for a platform.
func (r *release) pack(p platform, program, script []byte, texts []member) error {
	members := append([]member{{name: p.program(), data: program, executable: true}}, texts...)
	write := writeZip
	if !p.windows() {
		members = append(members, member{name: completion, data: script, executable: true})
		write = writeTarGz
	}
	return r.create(p.archive(), func(to io.Writer) error { return write(to, members, r.made) })
}

// krew writes the plugin's manifest for krew, kubectl's package manager: see
// https://krew.sigs.k8s.io/docs/developer-guide/plugin-manifest/.
func (r *release) krew() error {
	type object = map[string]any
	var all []object
	for _, p := range r.platforms {
		sum, err := sha256Of(r.file(p.archive()))
		if err != nil {
			return err
		}
		all = append(all, object{
			"selector": object{"matchLabels": object{"os": p.os, "arch": p.arch}},
			"uri":      r.downloads + "/" + p.archive(),
			"sha256":   sum,
			"bin":      p.program(),
		})
	}
	text, err := yaml.Marshal(object{
		"apiVersion": "krew.googlecontainertools.github.com/v1alpha2",
		"kind":       "Plugin",
		"metadata":   object{"name": "proffer"},
		"spec": object{
			"version":          r.version,
			"homepage":         "https://proffer.dev",
			"shortDescription": "Explain and rehearse what Proffer offers through Liqo",
			"description": "Shows what each consumer cluster is offered and why. Rehearses new policies and the\n" +
				"drain of a node without changing anything. Turns the arguments of Liqo's resource\n" +
				"plugins into ResourcePolicies, and checks an installation of Proffer.\n",
			// krew links only the program.
			"caveats": "On Linux and macOS, this command lets the shell complete names. Repeat it after an upgrade:\n" +
				`ln -sf "$(dirname "$(readlink "$(command -v ` + plugin + `)")")/` + completion +
				`" "${KREW_ROOT:-$HOME/.krew}/bin"` + "\n",
			"platforms": all,
		},
	})
	if err != nil {
		return err
	}
	return os.WriteFile(r.file("proffer.yaml"), text, 0o644) //nolint:gosec // everybody may read a release
}
