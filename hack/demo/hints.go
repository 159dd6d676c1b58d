package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// hints returns commands to try, each as it is typed.
func (c *cluster) hints() ([]string, error) {
	if !c.own {
		kubectl := "  kubectl --kubeconfig " + quote(c.kubeconfig)
		lines := []string{"", "Try in another terminal (Ctrl-C here ends the demo):"}
		if c.samples {
			lines = append(lines, kubectl+" edit rpol "+firstPolicy)
		}
		switch {
		case c.empty:
			lines = append(lines, kubectl+" apply -f "+quote(filepath.Join(c.root, firstFile)))
		case c.unanswered:
			lines = append(lines, kubectl+" edit rpol")
		}
		if c.unanswered {
			return append(lines, "The offers of a policy are shown here. They are written nowhere: kubectl get rpol",
				"shows no status, consumers read nothing, and a policy that you apply stays."), nil
		}
		return append(lines, kubectl+" get rpol"), nil
	}
	// The commands stay short this way, and neither kubectl nor the plugin need be installed.
	env := filepath.Join(c.work, "env")
	text := fmt.Sprintf("export KUBECONFIG=%s PATH=%s:%s:\"$PATH\"\n",
		quote(c.kubeconfig), quote(c.plugin), quote(c.tools))
	if err := os.WriteFile(env, []byte(text), 0o600); err != nil {
		return nil, err
	}
	return []string{
		"",
		"Try in another terminal (Ctrl-C here ends the demo):",
		"  . " + quote(env),
		"  kubectl edit rpol " + firstPolicy,
		// Two commands on a line: all of this fits on a screen of 24 lines.
		"  kubectl proffer explain rome; kubectl proffer simulate --drain worker-1",
		"  kubectl apply -k " + quote(filepath.Join(c.root, samples)),
	}, nil
}

// plainWord matches a word that the shell takes as it is.
var plainWord = regexp.MustCompile(`^[a-zA-Z0-9/._+,:=@%-]*$`)

// quote quotes a word for the shell.
func quote(text string) string {
	if plainWord.MatchString(text) {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}
