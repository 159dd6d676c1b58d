package main

import (
	"cmp"
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"proffer.dev/proffer/test"
	"proffer.dev/proffer/test/golden"
)

// Each page of commands ends with what --help prints, but for the flags that all commands have. `go test -update`
// writes that.
func TestThePagesOfCommandsHaveTheirHelp(t *testing.T) {
	const dir, heading = "../../docs/reference/commands/", "\n## Help\n"
	t.Setenv("HOME", "$HOME") // It is in the default of --cache-dir.
	t.Setenv("KUBECACHEDIR", "")
	root := newRootCommand(genericiooptions.NewTestIOStreamsDiscard())
	help := map[string]string{"README": root.Long + "\n\n" + root.UsageString()}
	for _, cmd := range below(root) {
		page := cmd.Name()
		if cmd.Parent() != root {
			page = cmd.Parent().Name()
		}
		if page == "stop" || page == "resume" {
			page = "pause"
		}
		usage, _, _ := strings.Cut(cmd.UsageString(), "\nGlobal Flags:\n")
		help[page] += "$ " + cmd.CommandPath() + " --help\n" + cmp.Or(cmd.Long, cmd.Short+".") + "\n\n" + usage + "\n"
	}
	for page, text := range help {
		content := test.Read(t, dir+page+".md")
		written, _, _ := strings.Cut(content, heading)
		golden.File(t, dir+page+".md", strings.TrimRight(written, "\n")+"\n"+heading+"\n```text\n"+strings.TrimSpace(text)+"\n```\n")
	}
}
