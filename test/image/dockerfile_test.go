package image

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// find returns what the one group of the expression matches in a file of the repository. It must
// match once.
func find(t *testing.T, file, expression string) string {
	t.Helper()
	text := string(must(os.ReadFile("../../" + file))(t))
	matches := regexp.MustCompile(`(?m)`+expression).FindAllStringSubmatch(text, -1)
	if len(matches) != 1 {
		t.Fatalf("%s has %d matches of %s, want 1", file, len(matches), expression)
	}
	return matches[0][1]
}

// The Dockerfile makes the image that ko makes. There may be no Docker here, so this compares what
// is written.
func TestTheDockerfileMakesTheSameImage(t *testing.T) {
	check := func(what, want, got string) {
		t.Helper()
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-ko +Dockerfile):\n%s", what, diff)
		}
	}
	const docker, ko, script = "Dockerfile", ".ko.yaml", "hack/ko/image.sh"
	check("base image", find(t, ko, `^defaultBaseImage: (\S+)$`), find(t, docker, `^FROM (\S+)$`))
	ldflags := strings.ReplaceAll(find(t, ko, `^  ldflags: \["(.*)"\]$`), "{{.Env.VERSION}}", "$VERSION")
	got := find(t, docker, `-ldflags "(.*?)"`)
	check("linker flags", ldflags, got)
	check("linker flags of make build", strings.ReplaceAll(find(t, "Makefile", `-ldflags "(.*?)" -o bin/proffer`), "$(VERSION)", "$VERSION"), got)
	check("package", find(t, ko, `^  main: (\S+)$`), find(t, docker, ` go build .* (\./\S+)$`))
	check("user", find(t, script, ` --image-user (\S+)`), find(t, docker, `^USER (\S+)$`))
	// ko sets these itself: the tests of its image check the entrypoint and that no library is needed.
	check("environment of the compiler", "CGO_ENABLED=0 GOOS=$TARGETOS GOARCH=$TARGETARCH GOWORK=off",
		find(t, docker, `^RUN (CGO_ENABLED.*) \\$`))
	flags := find(t, "Makefile", `^export GOFLAGS := \$\(strip \$\(shell go env GOFLAGS\) (.*)\)$`)
	check("flags", flags+" "+find(t, script, `GOFLAGS="\$\{GOFLAGS:-\} (.*)"$`), find(t, docker, ` go build (.*) -ldflags`))
	check("program", "/ko-app/proffer", find(t, docker, `^COPY --from=build \S+ (\S+)$`))
	check("entrypoint", `["/ko-app/proffer"]`, find(t, docker, `^ENTRYPOINT (.*)$`))
	check("platform", "TARGETOS TARGETARCH", find(t, docker, `^ARG (TARGET.*)$`))
	check("version of Go", strings.Join(strings.Split(find(t, "go.mod", `^go (\S+)$`), ".")[:2], "."),
		find(t, docker, `^FROM --platform=\$BUILDPLATFORM golang:(\S+) AS build$`))

	label := regexp.MustCompile(`(org\.opencontainers\.image\.[a-z]+)=("?\$?[^\s,"]+)`)
	labels := func(file string) map[string]string {
		all := map[string]string{}
		for _, match := range label.FindAllStringSubmatch(string(must(os.ReadFile("../../"+file))(t)), -1) {
			all[match[1]] = match[2]
		}
		// Docker cannot ask git.
		all["org.opencontainers.image.revision"] = strings.Replace(all["org.opencontainers.image.revision"], "$(git", "$REVISION", 1)
		return all
	}
	if diff := cmp.Diff(labels(script), labels(docker)); diff != "" {
		t.Errorf("labels (-ko +Dockerfile):\n%s", diff)
	}
}

// A directory that .dockerignore leaves out cannot be compiled.
func TestTheContextOfDockerHasWhatTheProgramIsBuiltFrom(t *testing.T) {
	ignored := map[string]bool{}
	for line := range strings.Lines(string(must(os.ReadFile("../../.dockerignore"))(t))) {
		ignored[strings.TrimSpace(line)] = true
	}
	list := exec.CommandContext(t.Context(), "go", "list", "-deps", "-f",
		"{{if .Module}}{{if .Module.Main}}{{.ImportPath}}{{end}}{{end}}", "./cmd/proffer")
	list.Dir = "../.."
	packages := strings.Fields(string(must(list.Output())(t)))
	if len(packages) == 0 {
		t.Fatal("the program has no packages")
	}
	for _, path := range packages {
		directory, _, _ := strings.Cut(strings.TrimPrefix(path, "proffer.dev/proffer/"), "/")
		if ignored[directory] {
			t.Errorf(".dockerignore leaves out %s, which has %s", directory, path)
		}
	}
}
