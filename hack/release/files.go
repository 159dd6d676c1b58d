package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// chartDirectory holds the Helm chart.
const chartDirectory = "charts/proffer"

// chart packages the Helm chart, as `helm package` does, with the version of the release.
func (r *release) chart(context.Context) error {
	semver := strings.TrimPrefix(r.version, "v")
	name := "proffer-" + semver + ".tgz"
	r.say("%s", name)
	members, err := readAll(chartDirectory, "proffer")
	if err != nil {
		return err
	}
	for i := range members {
		if members[i].name != "proffer/Chart.yaml" {
			continue
		}
		if members[i].data, err = withVersion(members[i].data, semver, r.version); err != nil {
			return err
		}
	}
	return r.create(name, func(to io.Writer) error { return writeTarGz(to, members, r.made) })
}

// withVersion replaces the two versions of a Chart.yaml.
func withVersion(chart []byte, version, app string) ([]byte, error) {
	for key, value := range map[string]string{"version": version, "appVersion": app} {
		line := regexp.MustCompile(`(?m)^` + key + `: .*$`)
		if found := len(line.FindAll(chart, -1)); found != 1 {
			return nil, fmt.Errorf("%d lines for %s in Chart.yaml, want 1", found, key)
		}
		chart = line.ReplaceAll(chart, []byte(fmt.Sprintf("%s: %q", key, value)))
	}
	return chart, nil
}

// installer renders config/default with the image. It uses the kubectl of the tests: the output of another
// one may differ.
func (r *release) installer(ctx context.Context) error {
	r.say("install.yaml")
	assets, err := output(ctx, "go", "run", "./hack/controlplane/cmd/controlplane")
	if err != nil {
		return err
	}
	return r.do(ctx, []string{
		"KUBECTL=" + filepath.Join(assets, "kubectl"), "NAMESPACE=", "COMPONENTS=",
		"IMAGE=" + r.image + ":" + r.version, "INSTALLER=" + r.file("install.yaml"),
	}, "hack/deploy/deploy.sh", "build-installer")
}

// imageFiles builds the image for all platforms, with a list of its contents for each.
func (r *release) imageFiles(ctx context.Context) error {
	r.say("the image, for all platforms")
	if err := r.do(ctx, []string{"VERSION=" + r.version}, "hack/ko/image.sh", "build"); err != nil {
		return err
	}
	members, err := readAll("bin/image", "")
	if err != nil {
		return err
	}
	err = r.create("proffer-image.tar", func(to io.Writer) error { return writeTar(to, members, r.made) })
	if err != nil {
		return err
	}
	contents, err := readAll("bin/sbom", "")
	if err != nil {
		return err
	}
	for _, c := range contents {
		err := os.WriteFile(r.file(filepath.Base(c.name)), c.data, 0o644) //nolint:gosec // everybody may read a release
		if err != nil {
			return err
		}
	}
	return nil
}

// checksums writes the checksums of all files, as `sha256sum --check` reads them.
func (r *release) checksums(context.Context) error {
	entries, err := os.ReadDir(r.out)
	if err != nil {
		return err
	}
	var text strings.Builder
	for _, entry := range entries {
		sum, err := sha256Of(r.file(entry.Name()))
		if err != nil {
			return err
		}
		fmt.Fprintf(&text, "%s  %s\n", sum, entry.Name())
	}
	sums := []byte(text.String())
	return os.WriteFile(r.file("checksums.txt"), sums, 0o644) //nolint:gosec // everybody may read a release
}
