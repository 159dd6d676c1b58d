package controlplane

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// The versions of a build from source. They must match the go.mod file in the directory kubernetes; a
// test compares them.
const (
	KubernetesVersion = "1.37.2"
	EtcdVersion       = "3.7.0"
)

// assetsEnv is envtest's own variable. cacheEnv sets the directory of the cache.
const (
	assetsEnv = "KUBEBUILDER_ASSETS"
	cacheEnv  = "PROFFER_CACHE"
)

// programs are the files in a directory of assets.
var programs = []string{"kube-apiserver", "etcd", "kubectl"}

// Assets returns a directory with kube-apiserver, etcd and kubectl. The first call on a machine
// downloads or builds them, which can take minutes. progress receives what is being done, and why a
// faster source was not used.
func Assets(ctx context.Context, progress io.Writer) (string, error) {
	f := finder{sources: []source{
		{name: "the prebuilt archive through setup-envtest", fetch: download},
		{name: "a build from Go modules", fetch: build},
	}, progress: &reporter{w: progress}}
	return f.find(ctx)
}

// A source puts the programs into dir, which exists and is empty.
type source struct {
	name  string
	fetch func(ctx context.Context, dir string, progress *reporter) error
}

// A finder fills the cache from its sources.
type finder struct {
	sources  []source
	progress *reporter
}

func (f finder) find(ctx context.Context) (string, error) {
	if dir := os.Getenv(assetsEnv); dir != "" {
		if _, err := checkPrograms(dir); err != nil {
			return "", fmt.Errorf("%s=%s: %w; unset it to use the cache, or name a directory that has them",
				assetsEnv, dir, err)
		}
		f.progress.say("using %s from %s", dir, assetsEnv)
		return filepath.Abs(dir)
	}
	c, err := assetsCache()
	if err != nil {
		return "", err
	}
	if origin, err := c.check(); err == nil {
		f.progress.say("using %s from the cache (%s)", c.dir, origin)
		return c.dir, nil
	} else if !errors.Is(err, os.ErrNotExist) {
		f.progress.say("the cache cannot be used: %v", err)
	} else {
		f.progress.say("%s is not set, and nothing is in the cache at %s yet", assetsEnv, c.dir)
	}
	return f.fill(ctx, c)
}

// fill fills the cache from the first source that succeeds.
func (f finder) fill(ctx context.Context, c cache) (string, error) {
	unlock, err := c.lock(ctx, f.progress)
	if err != nil {
		return "", err
	}
	defer unlock()
	// The previous holder of the lock may have filled the cache.
	if origin, err := c.check(); err == nil {
		f.progress.say("using %s from the cache (%s, put there by another process)", c.dir, origin)
		return c.dir, nil
	}

	var failed []error
	for _, s := range f.sources {
		f.progress.say("trying %s", s.name)
		err := c.install(s.name, func(dir string) error { return s.fetch(ctx, dir, f.progress) })
		if err == nil {
			f.progress.say("installed into %s from %s", c.dir, s.name)
			return c.dir, nil
		}
		if ctx.Err() != nil {
			return "", fmt.Errorf("%s: %w", s.name, context.Cause(ctx))
		}
		f.progress.say("not from %s: %v", s.name, err)
		failed = append(failed, fmt.Errorf("%s: %w", s.name, err))
	}
	return "", fmt.Errorf("cannot get kube-apiserver, etcd and kubectl: set %s to a directory that has them, "+
		"or let this machine reach a Go module proxy (GOPROXY) and run again: %w", assetsEnv, errors.Join(failed...))
}

func assetsCache() (cache, error) {
	return cacheOf(fmt.Sprintf("kubernetes-%s-etcd-%s", KubernetesVersion, EtcdVersion))
}

// cacheOf returns the cache of the programs of that name for this machine.
func cacheOf(name string) (cache, error) {
	root := os.Getenv(cacheEnv)
	if root == "" {
		user, err := os.UserCacheDir()
		if err != nil {
			return cache{}, fmt.Errorf("no cache directory: set %s to a directory to keep the control plane in: %w",
				cacheEnv, err)
		}
		root = filepath.Join(user, "proffer", "controlplane")
	}
	root, err := filepath.Abs(root)
	if err != nil {
		return cache{}, fmt.Errorf("cache directory: %w", err)
	}
	return cache{root: root, dir: filepath.Join(root, fmt.Sprintf("%s-%s-%s", name, runtime.GOOS, runtime.GOARCH))}, nil
}

// checkPrograms returns the sizes of the programs in dir, or an error that names the missing ones.
func checkPrograms(dir string) (map[string]int64, error) {
	sizes := map[string]int64{}
	var missing []string
	for _, name := range programs {
		info, err := os.Stat(filepath.Join(dir, name))
		switch {
		case errors.Is(err, os.ErrNotExist):
			missing = append(missing, name+" (not there)")
		case err != nil:
			missing = append(missing, fmt.Sprintf("%s (%v)", name, err))
		case !info.Mode().IsRegular():
			missing = append(missing, name+" (not a file)")
		case info.Size() == 0:
			missing = append(missing, name+" (empty)")
		case info.Mode()&0o111 == 0:
			missing = append(missing, name+" (not executable)")
		default:
			sizes[name] = info.Size()
		}
	}
	if len(missing) > 0 {
		return nil, fmt.Errorf("missing %s", strings.Join(missing, ", "))
	}
	return sizes, nil
}
