package main

import (
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"proffer.dev/proffer/test"
)

// workflow holds the parts of a workflow of the forge that the tests read.
type workflow struct {
	Name string `json:"name"`
	// On is the key on, which YAML 1.1 reads as true.
	On          map[string]any    `json:"true"`
	Permissions map[string]string `json:"permissions"`
	Concurrency map[string]any    `json:"concurrency"`
	Defaults    struct {
		Run struct {
			Shell string `json:"shell"`
		} `json:"run"`
	} `json:"defaults"`
	Jobs map[string]struct {
		RunsOn         string            `json:"runs-on"`
		TimeoutMinutes int               `json:"timeout-minutes"`
		Env            map[string]string `json:"env"`
		Steps          []struct {
			Name string            `json:"name"`
			Uses string            `json:"uses"`
			With map[string]any    `json:"with"`
			Run  string            `json:"run"`
			Env  map[string]string `json:"env"`
		} `json:"steps"`
	} `json:"jobs"`
}

var (
	makeCall   = regexp.MustCompile(`(?m)(?:^|[|;&] *)make ([a-z-]+)`)
	makeTarget = regexp.MustCompile(`(?m)^([a-z-]+):`)
	program    = regexp.MustCompile(`(?m)^(\.?[a-z]+/[a-z/.-]+)`)
	// used matches a line that uses an action, and pinned one that names a commit: a tag can be moved.
	used   = regexp.MustCompile(`(?m)^[ -]*uses:.*$`)
	pinned = regexp.MustCompile(`^ *- uses: [\w/-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$`)
)

func TestTheWorkflowsCallWhatExists(t *testing.T) {
	makefile := test.Read(t, "../../Makefile")
	targets := map[string]bool{}
	for _, match := range makeTarget.FindAllStringSubmatch(makefile, -1) {
		targets[match[1]] = true
	}
	files, err := filepath.Glob("../../.github/workflows/*")
	test.Must(t, err)
	called := map[string]bool{}
	for _, file := range files {
		text := test.Read(t, file)
		var w workflow
		test.Must(t, yaml.UnmarshalStrict([]byte(text), &w))
		// Without it, a failure in a pipeline is not noticed.
		if w.Defaults.Run.Shell != "bash" {
			t.Errorf("%s: the shell is %q, want bash, which the forge runs with pipefail", file, w.Defaults.Run.Shell)
		}
		for _, line := range used.FindAllString(text, -1) {
			if !pinned.MatchString(line) {
				t.Errorf("%s: %q does not name the commit of the action and its version", file, line)
			}
		}
		for name, job := range w.Jobs {
			for _, step := range job.Steps {
				if (step.Uses == "") == (step.Run == "") {
					t.Errorf("%s: step %q of job %s has to have one of uses and run", file, step.Name, name)
				}
				for _, match := range makeCall.FindAllStringSubmatch(step.Run, -1) {
					called[match[1]] = true
					if !targets[match[1]] {
						t.Errorf("%s: there is no target %s", file, match[1])
					}
				}
				for _, match := range program.FindAllStringSubmatch(step.Run, -1) {
					called[match[1]] = true
					if _, err := os.Stat("../../" + match[1]); err != nil {
						t.Errorf("%s: %v", file, err)
					}
				}
			}
		}
	}
	for _, call := range []string{"release", "image-push", ".ci/run"} {
		if !called[call] {
			t.Errorf("no workflow calls %s", call)
		}
	}
}

// A module that dependabot does not know gets no updates.
func TestDependabotKnowsEveryModule(t *testing.T) {
	text := test.Read(t, "../../.github/dependabot.yml")
	var config struct {
		Updates []struct {
			Ecosystem   string   `json:"package-ecosystem"`
			Directories []string `json:"directories"`
		} `json:"updates"`
	}
	test.Must(t, yaml.Unmarshal([]byte(text), &config))
	var got []string
	for _, update := range config.Updates {
		if update.Ecosystem == "gomod" {
			got = append(got, update.Directories...)
		}
	}
	list := exec.CommandContext(t.Context(), "git", "ls-files", "-co", "--exclude-standard", "go.mod", "*/go.mod")
	list.Dir = "../.."
	out, err := list.Output()
	test.Must(t, err)
	var want []string
	for file := range strings.FieldsSeq(string(out)) {
		want = append(want, path.Dir("/"+file))
	}
	slices.Sort(want)
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the modules (-want +got):\n%s", diff)
	}
}

// TestTheIssueFormsAreValid checks what the forge requires of them.
func TestTheIssueFormsAreValid(t *testing.T) {
	files, err := filepath.Glob("../../.github/ISSUE_TEMPLATE/*.yaml")
	test.Must(t, err)
	if len(files) == 0 {
		t.Fatal("there are no forms")
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		test.Must(t, err)
		var form struct {
			Name        string   `json:"name"`
			Description string   `json:"description"`
			Labels      []string `json:"labels"`
			Body        []struct {
				Type        string          `json:"type"`
				ID          string          `json:"id"`
				Attributes  map[string]any  `json:"attributes"`
				Validations map[string]bool `json:"validations"`
			} `json:"body"`
		}
		test.Must(t, yaml.UnmarshalStrict(text, &form))
		if form.Name == "" || form.Description == "" || len(form.Body) == 0 {
			t.Errorf("%s has no name, description or body", file)
		}
		ids := map[string]bool{}
		for _, part := range form.Body {
			needs := map[string]string{"markdown": "value", "textarea": "label"}[part.Type]
			if text, _ := part.Attributes[needs].(string); strings.TrimSpace(text) == "" {
				t.Errorf("%s: a %s has no %s", file, part.Type, needs)
			}
			if part.Type != "markdown" && (part.ID == "" || ids[part.ID]) {
				t.Errorf("%s: the id %q is missing or not unique", file, part.ID)
			}
			ids[part.ID] = true
		}
	}
}
