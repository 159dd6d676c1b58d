package main

import (
	"archive/tar"
	"archive/zip"
	"cmp"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"time"
)

// member is one file of an archive.
type member struct {
	name       string
	data       []byte
	executable bool
}

func (m member) mode() fs.FileMode {
	if m.executable {
		return 0o755
	}
	return 0o644
}

// sorted returns the members in the order of their names.
func sorted(members []member) []member {
	return slices.SortedFunc(slices.Values(members), func(a, b member) int { return cmp.Compare(a.name, b.name) })
}

// writeTar writes a tar archive. Its bytes depend only on the members and the time.
func writeTar(to io.Writer, members []member, made time.Time) error {
	w := tar.NewWriter(to)
	for _, m := range sorted(members) {
		header := &tar.Header{
			Name: m.name, Mode: int64(m.mode()), Size: int64(len(m.data)), ModTime: made, Format: tar.FormatUSTAR,
		}
		if err := w.WriteHeader(header); err != nil {
			return err
		}
		if _, err := w.Write(m.data); err != nil {
			return err
		}
	}
	return w.Close()
}

// writeTarGz writes a tar archive that is compressed with gzip. Its bytes depend on the same.
func writeTarGz(to io.Writer, members []member, made time.Time) error {
	w, err := gzip.NewWriterLevel(to, gzip.BestCompression)
	if err != nil {
		return err
	}
	return errors.Join(writeTar(w, members, made), w.Close())
}

// writeZip writes a zip archive. Its bytes depend on the same.
func writeZip(to io.Writer, members []member, made time.Time) error {
	w := zip.NewWriter(to)
	for _, m := range sorted(members) {
		header := &zip.FileHeader{Name: m.name, Method: zip.Deflate, Modified: made}
		header.SetMode(m.mode())
		f, err := w.CreateHeader(header)
		if err != nil {
			return err
		}
		if _, err := f.Write(m.data); err != nil {
			return err
		}
	}
	return w.Close()
}

// create writes a file of the release.
func (r *release) create(name string, write func(io.Writer) error) (err error) {
	f, err := os.Create(r.file(name))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if err := write(f); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// readAll reads all files in a directory and its subdirectories. Their names begin with prefix.
func readAll(directory, prefix string) ([]member, error) {
	var members []member
	err := filepath.WalkDir(directory, func(file string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		name, err := filepath.Rel(directory, file)
		if err != nil {
			return err
		}
		data, err := os.ReadFile(file)
		members = append(members, member{name: path.Join(prefix, filepath.ToSlash(name)), data: data})
		return err
	})
	return members, err
}

func sha256Of(file string) (string, error) {
	data, err := os.ReadFile(file)
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:]), err
}
