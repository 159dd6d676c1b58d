package controlplane

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// manifestName is written last: a directory without it is incomplete.
const manifestName = "manifest.json"

// A manifest describes the content of a directory of the cache.
type manifest struct {
	// Source is the name of the programs' source.
	Source string `json:"source"`
	// Sizes are the sizes of the programs in bytes.
	Sizes map[string]int64 `json:"sizes"`
}

// A cache is the directory of one version of the programs, below a root that all versions share.
type cache struct {
	root string
	dir  string
}

// check returns the source of the programs, or an error if they cannot be used: os.ErrNotExist if
// there are none.
func (c cache) check() (string, error) {
	if _, err := os.Stat(c.dir); err != nil {
		return "", err
	}
	data, err := os.ReadFile(filepath.Join(c.dir, manifestName))
	if err != nil {
		return "", fmt.Errorf("%s is not complete: no readable %s", c.dir, manifestName)
	}
	var m manifest
	if err := json.Unmarshal(data, &m); err != nil {
		return "", fmt.Errorf("%s is not complete: %s: %w", c.dir, manifestName, err)
	}
	sizes, err := checkPrograms(c.dir)
	if err != nil {
		return "", fmt.Errorf("%s is not complete: %w", c.dir, err)
	}
	for name, size := range sizes {
		if size != m.Sizes[name] {
			return "", fmt.Errorf("%s is not complete: %s has %d of %d bytes", c.dir, name, size, m.Sizes[name])
		}
	}
	return m.Source, nil
}

// install lets fetch fill a new directory, checks it, and renames it into place, so that no process
// sees an incomplete one. The caller holds the lock.
func (c cache) install(source string, fetch func(dir string) error) (err error) {
	staging, err := os.MkdirTemp(c.root, ".staging-")
	if err != nil {
		return advise(err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(staging)) }()
	if err := os.Chmod(staging, 0o755); err != nil {
		return err
	}
	if err := fetch(staging); err != nil {
		return err
	}
	sizes, err := checkPrograms(staging)
	if err != nil {
		return err
	}
	data, err := json.MarshalIndent(manifest{Source: source, Sizes: sizes}, "", "  ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(staging, manifestName), append(data, '\n'), 0o644); err != nil {
		return err
	}
	// An existing directory is incomplete: otherwise install is not called.
	if err := os.RemoveAll(c.dir); err != nil {
		return advise(err)
	}
	return os.Rename(staging, c.dir)
}

// lock waits until no other process fills the cache. The kernel releases the lock when its holder
// dies, so a lock is never stale. The locked file stays.
func (c cache) lock(ctx context.Context, progress *reporter) (unlock func(), err error) {
	if err := os.MkdirAll(c.root, 0o755); err != nil {
		return nil, advise(err)
	}
	file, err := os.OpenFile(filepath.Join(c.root, ".lock"), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, advise(err)
	}
	defer progress.every("waiting for another process that is filling the cache")()
	err = wait.PollUntilContextCancel(ctx, 200*time.Millisecond, true, func(context.Context) (bool, error) {
		return tryLock(file)
	})
	switch {
	case ctx.Err() != nil:
		return nil, errors.Join(context.Cause(ctx), file.Close())
	case err != nil:
		return nil, errors.Join(advise(fmt.Errorf("lock %s: %w", file.Name(), err)), file.Close())
	}
	c.sweep()
	return func() { _ = file.Close() }, nil
}

// sweep removes the directories that killed processes left behind. The caller holds the lock.
func (c cache) sweep() {
	left, err := filepath.Glob(filepath.Join(c.root, ".staging-*"))
	if err != nil {
		return
	}
	for _, dir := range left {
		_ = os.RemoveAll(dir) // Harmless: the next sweep tries again.
	}
}

// advise says what to do about an error of writing to the cache.
func advise(err error) error {
	return fmt.Errorf("cannot write to the cache: set %s to a directory you can write to: %w", cacheEnv, err)
}
