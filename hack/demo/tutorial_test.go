package main

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"proffer.dev/proffer/test"
)

// The lesson is typed as it is written, and shows what comes.
func TestTheFirstOfferOfTheTutorial(t *testing.T) {
	d := start(t, demoOptions{})
	first := d.screen(t)
	dir, commands, screens := t.TempDir(), 0, 0
	for _, block := range test.Blocks(test.Read(t, "../../docs/tutorials/first-offer.md"), "console", "yaml", "text") {
		switch text := block.Text; block.Language {
		case "yaml":
			test.Must(t, os.WriteFile(dir+"/gold.yaml", []byte(text), 0o600))
		case "text": // What the first terminal shows, at first and after the edit.
			if screens++; screens == 1 {
				if got := strings.Join(first.lines, "\n"); !shows("...\n"+text+"...\n", got) {
					t.Errorf("the demo begins with\n%s\nand the lesson with\n%s", got, text)
				}
				continue
			}
			lines := strings.Split(text, "\n")
			_, edited, _ := strings.Cut(lines[0], " ") // After the time.
			await(t, d.table, "^[0-9:]+ +"+patternOf(edited)+"$")
			await(t, d.table, "^"+patternOf(lines[1])+"$")
		case "console":
			for _, step := range block.Steps() {
				command := step.Command
				if strings.HasPrefix(command, "make ") || strings.HasPrefix(command, ". ") {
					continue
				}
				commands++
				if strings.HasPrefix(command, "kubectl proffer simulate") {
					command += " || [ $? -eq 1 ]" // Something would change.
				}
				test.Eventually(t, func() error { // An evaluation takes a moment.
					if got := d.sh(t, first, "cd "+dir+"\n"+command); !shows(step.Output, got) {
						return fmt.Errorf("%s prints\n%s\nand the lesson shows\n%s", command, got, step.Output)
					}
					return nil
				})
			}
		}
	}
	if commands < 6 || screens != 2 {
		t.Errorf("the lesson has %d commands and %d screens", commands, screens)
	}
	d.end(t)
}

// shows reports whether a text is what a page shows. A line "..." stands for any lines, and "..." at the end of a line
// for any rest.
func shows(page, text string) bool {
	var pattern strings.Builder
	for line := range strings.Lines(page) {
		if strings.TrimSpace(line) == "..." {
			pattern.WriteString(`(?:[^\n]*\n)*`)
		} else {
			pattern.WriteString(" *" + patternOf(line) + " *\n")
		}
	}
	if text = strings.TrimRight(text, "\n"); text != "" {
		text += "\n"
	}
	return regexp.MustCompile("^" + pattern.String() + "$").MatchString(text)
}

// patternOf matches a line with any number of spaces between its words.
func patternOf(line string) string {
	line, open := strings.CutSuffix(strings.TrimSpace(line), "...")
	pattern := strings.Join(strings.Fields(regexp.QuoteMeta(line)), " +")
	if open {
		pattern += "[^\n]*"
	}
	return pattern
}
