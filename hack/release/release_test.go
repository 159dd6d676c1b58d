package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"proffer.dev/proffer/test"
)

func TestArgumentsThatAreMissingOrWrongSayWhatToWrite(t *testing.T) {
	right := release{version: "v0.1.0", image: "registry.example.com:5000/team/proffer", downloads: "https://example.com/v0.1.0/"}
	if err := right.check(); err != nil || right.downloads != "https://example.com/v0.1.0" {
		t.Errorf("the right arguments: %v, and the URL is %q", err, right.downloads)
	}
	for want, change := range map[string]func(*release){
		"write VERSION=v0.1.0":                          func(r *release) { r.version = "0.1.0" },
		"write VERSION=":                                func(r *release) { r.version = "" },
		"write IMG=registry.example.com/proffer":        func(r *release) { r.image = "proffer" },
		"write IMG=registry.example.com/proffer, ":      func(r *release) { r.image = "registry.example.com/proffer:v1" },
		"write DOWNLOADS=https://example.com/proffer/v": func(r *release) { r.downloads = "http://example.com" },
	} {
		r := right
		change(&r)
		if err := r.check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", r, err, want)
		}
	}
}

func TestThePluginIsBuiltForTheNamedPlatforms(t *testing.T) {
	for names, want := range map[string][]platform{
		"":                          platforms,
		"linux/amd64":               {{"linux", "amd64"}},
		"windows/amd64,linux/arm64": {{"linux", "arm64"}, {"windows", "amd64"}},
	} {
		got, err := choosePlatforms(names)
		if err != nil {
			t.Errorf("%q: %v", names, err)
		}
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(platform{})); diff != "" {
			t.Errorf("%q (-want +got):\n%s", names, diff)
		}
	}
	_, err := choosePlatforms("linux/amd64,plan9/386")
	const want = `the plugin is not released for ["plan9/386"]: write some of [linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64], with commas`
	if err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestTheBytesOfAnArchiveDoNotDependOnTheOrderOfReading(t *testing.T) {
	made := time.Unix(1_700_000_000, 0)
	members := []member{{name: "b", data: []byte("text")}, {name: "a", data: []byte("program"), executable: true}}
	for name, write := range map[string]func(io.Writer, []member, time.Time) error{"tar": writeTar, "tar.gz": writeTarGz, "zip": writeZip} {
		var first, second bytes.Buffer
		test.Must(t, write(&first, members, made))
		test.Must(t, write(&second, []member{members[1], members[0]}, made))
		if !bytes.Equal(first.Bytes(), second.Bytes()) {
			t.Errorf("%s: the bytes depend on the order", name)
		}
	}
	var packed bytes.Buffer
	test.Must(t, writeTarGz(&packed, members, made))
	unpacked, err := gzip.NewReader(&packed)
	test.Must(t, err)
	got := map[string]int64{}
	for files := tar.NewReader(unpacked); ; {
		header, err := files.Next()
		if err == io.EOF {
			break
		}
		test.Must(t, err)
		if !header.ModTime.Equal(made) || header.Uid != 0 {
			t.Errorf("%s: made at %v by %d", header.Name, header.ModTime, header.Uid)
		}
		got[header.Name] = header.Mode
	}
	if diff := cmp.Diff(map[string]int64{"a": 0o755, "b": 0o644}, got); diff != "" {
		t.Errorf("the files and their modes differ (-want +got):\n%s", diff)
	}
}

func TestAChartGetsTheVersionOfTheRelease(t *testing.T) {
	got, err := withVersion([]byte("name: proffer\nversion: 0.0.0\nappVersion: \"v0.0.0\"\n"), "0.1.0", "v0.1.0")
	if want := "name: proffer\nversion: \"0.1.0\"\nappVersion: \"v0.1.0\"\n"; err != nil || string(got) != want {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := withVersion([]byte("name: proffer\nversion: 0.0.0\n"), "0.1.0", "v0.1.0"); err == nil {
		t.Error("a chart without an appVersion is taken")
	}
}
