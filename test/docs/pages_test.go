package docs

import (
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"proffer.dev/proffer/test"
)

const (
	// maxPage and maxReadme bound a page and the README in bytes.
	maxPage, maxReadme = 15_000, 6_000
	// maxWords bounds all pages.
	maxWords = 40_000
	// maxRows bounds the rows of a table of a how-to.
	maxRows = 5
	readme  = root + "/README.md"
	index   = root + "/docs/README.md"
)

// generated are the pages that come from the code.
var generated = []string{
	"resourcepolicy.md", "objects.md", "orchestration.md", "providerchoice.md", "conditions.md", "flags.md",
}

// pages returns the texts of the pages of docs, of the README and of its neighbors, by file.
func pages(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	read := func(file string) {
		text := test.Read(t, file)
		all[filepath.Clean(file)] = text
	}
	test.Must(t, filepath.WalkDir(root+"/docs", func(file string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() && filepath.Ext(file) == ".md" {
			read(file)
		}
		return err
	}))
	for _, file := range []string{readme, root + "/SECURITY.md", root + "/CONTRIBUTING.md", root + "/charts/proffer/README.md"} {
		read(file)
	}
	if len(all) < 50 {
		t.Fatalf("%d pages, want at least 50", len(all))
	}
	return all
}

// kind returns the folder of a page below docs.
func kind(file string) string { return filepath.Base(filepath.Dir(file)) }

// moved reports whether a page only says where its content is now. It stays for one release.
func moved(file, text string) bool {
	return kind(file) == "docs" && strings.Contains(text, "\nThis page has moved")
}

// word is a word with a letter or digit: bars of tables are none.
var word = regexp.MustCompile(`\S*[\pL\pN]\S*`)

func TestThePagesAreShort(t *testing.T) {
	words := 0
	for file, text := range pages(t) {
		most := maxPage
		if file == filepath.Clean(readme) {
			most = maxReadme
		}
		if len(text) > most {
			t.Errorf("%s has %d bytes, want at most %d", file, len(text), most)
		}
		if !slices.Contains(generated, filepath.Base(file)) && !moved(file, text) {
			written, _, _ := strings.Cut(text, "\n## Help\n") // What follows comes from the code.
			words += len(word.FindAllString(written, -1))
		}
	}
	if t.Logf("%d words", words); words > maxWords {
		t.Errorf("all pages have %d words, want at most %d", words, maxWords)
	}
}

var (
	tables = regexp.MustCompile(`(?m)^\|[-| :]+\|\n((?:\|.*\n)*)`)
	steps  = regexp.MustCompile(`(?m)^1\. `)
)

// A how-to has no long table, a reference no steps, and an explanation no commands.
func TestEachPageIsOfItsKind(t *testing.T) {
	for file, text := range pages(t) {
		switch kind(file) {
		case "how-to":
			for _, table := range tables.FindAllStringSubmatch(text, -1) {
				if n := strings.Count(table[1], "\n"); n > maxRows {
					t.Errorf("%s is a how-to and has a table of %d rows, want at most %d", file, n, maxRows)
				}
			}
		case "reference", "commands":
			if steps.MatchString(text) {
				t.Errorf("%s is a reference and has steps", file)
			}
		case "explanation":
			if strings.Contains(text, "```console") {
				t.Errorf("%s is an explanation and has commands", file)
			}
		}
	}
}

var (
	link    = regexp.MustCompile(`\]\(([^)#:]*)(#[^)]*)?\)`)
	fenced  = regexp.MustCompile("(?ms)^```.*?^```")
	noAlnum = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

// anchors returns the anchors that GitHub generates for a page's headings.
func anchors(text string) map[string]bool {
	all := map[string]bool{}
	for line := range strings.SplitSeq(fenced.ReplaceAllString(text, ""), "\n") {
		if title, ok := strings.CutPrefix(strings.TrimLeft(line, "#"), " "); ok && strings.HasPrefix(line, "#") {
			all["#"+strings.ReplaceAll(noAlnum.ReplaceAllString(strings.ToLower(title), ""), " ", "-")] = true
		}
	}
	return all
}

// Each link of the docs leads to a file that exists, and to a heading in it.
func TestTheLinksInTheDocsResolve(t *testing.T) {
	all, n := pages(t), 0
	changes := test.Read(t, root+"/CHANGELOG.md")
	all[filepath.Clean(root+"/CHANGELOG.md")] = changes
	for page, text := range all {
		for _, match := range link.FindAllStringSubmatch(text, -1) {
			n++
			target := page
			if match[1] != "" {
				target = filepath.Join(filepath.Dir(page), match[1])
			}
			content, err := os.ReadFile(target)
			if err != nil {
				if _, err := os.Stat(target); err != nil || match[2] != "" {
					t.Errorf("%s links to %s, which does not exist", page, match[0])
				}
				continue
			}
			if match[2] != "" && !anchors(string(content))[match[2]] {
				t.Errorf("%s links to %s, which has no such heading", page, match[0])
			}
		}
	}
	if n < 200 {
		t.Errorf("%d links, want at least 200", n)
	}
}

// Two clicks lead from docs/README.md to each page, and one from the README to docs/README.md.
func TestEachPageOfTheDocsIsTwoClicksAway(t *testing.T) {
	all := pages(t)
	linked := func(page string) map[string]bool {
		to := map[string]bool{}
		for _, match := range link.FindAllStringSubmatch(all[page], -1) {
			if match[1] != "" {
				to[filepath.Join(filepath.Dir(page), match[1])] = true
			}
		}
		return to
	}
	if !linked(filepath.Clean(readme))[filepath.Clean(index)] {
		t.Error("the README does not link to docs/README.md")
	}
	within := linked(filepath.Clean(index))
	for page := range maps.Clone(within) {
		maps.Copy(within, linked(page))
	}
	delete(all, filepath.Clean(readme))
	delete(all, filepath.Clean(index))
	for page := range all {
		if !within[page] && !moved(page, all[page]) {
			t.Errorf("%s is more than two clicks away", page)
		}
	}
}

// Each page links to the glossary, and none uses another word for a term of the glossary.
func TestTheDocsKeepToTheGlossary(t *testing.T) {
	all := pages(t)
	glossary := filepath.Clean(root + "/docs/explanation/glossary.md")
	if n := strings.Count(all[glossary], "\n| "); n < 10 || n > 16 {
		t.Errorf("the glossary has %d rows, want 10 to 16", n)
	}
	others := regexp.MustCompile(`(?i)` +
		`\b(remote|foreign|home|client|donor|lender|borrower|producer|supplier) clusters?\b|` +
		`\b(lender|borrower|donor|guest)s?\b`)
	for page, text := range all {
		if strings.Contains(page, "/docs/") && !moved(page, text) && !strings.Contains(text, "glossary.md)") && page != glossary {
			t.Errorf("%s does not link to the glossary", page)
		}
		for _, word := range others.FindAllString(text, -1) {
			t.Errorf("%s says %q: the glossary has provider and consumer", page, word)
		}
	}
}

var command = regexp.MustCompile(`(?m)^\$ make ([a-z-]+)|\x60make ([a-z-]+)`)

// Each make target that the docs name exists.
func TestTheMakeTargetsInTheDocsExist(t *testing.T) {
	makefile := test.Read(t, root+"/Makefile")
	n := 0
	for page, text := range pages(t) {
		for _, match := range command.FindAllStringSubmatch(text, -1) {
			n++
			if target := match[1] + match[2]; !strings.Contains(makefile, "\n"+target+":") {
				t.Errorf("%s names make %s, which the Makefile does not have", page, target)
			}
		}
	}
	if n < 5 {
		t.Errorf("%d targets in the docs, want at least 5", n)
	}
}

// Without a version, Helm installs the newest chart and liqoctl its own, which upgrades v0 to v1.
// Helm also needs the repository first. So each block of commands that changes Liqo with Helm
// begins with adding the repository and with how to see the version.
func TestTheCommandsThatChangeLiqoNameItsVersion(t *testing.T) {
	n := 0
	for page, text := range pages(t) {
		for line := range strings.SplitSeq(text, "\n") {
			if !strings.Contains(line, "helm upgrade liqo") && !strings.Contains(line, "liqoctl install") {
				continue
			}
			if n++; !strings.Contains(line, "--version v0.") {
				t.Errorf("%s does not name a version of Liqo: %s", page, line)
			}
		}
		for _, block := range test.Blocks(text, "console") {
			before, _, found := strings.Cut(block.Text, "$ helm upgrade liqo")
			prepared := strings.HasPrefix(before, "$ helm repo add liqo https://helm.liqo.io/\n$ helm list ") &&
				strings.Contains(before, "CHART says which version runs")
			if found && !prepared {
				t.Errorf("%s upgrades Liqo without adding the repository and showing the version:\n%s", page, block.Text)
			}
		}
	}
	if n < 2 {
		t.Errorf("%d commands, want at least 2", n)
	}
}

var named = regexp.MustCompile(`docs/(?:[a-z0-9-]+/)*[a-z0-9A-Z-]+\.md(#[a-z0-9-]+)?`)

// Messages, alerts, manifests and comments name pages. Each of these exists, has the heading, and has not moved.
func TestThePagesThatTheCodeNamesExist(t *testing.T) {
	n := 0
	test.Must(t, filepath.WalkDir(root, func(file string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && slices.Contains([]string{".git", "bin", "docs"}, entry.Name()):
			return filepath.SkipDir
		case entry.IsDir() || !slices.Contains([]string{".go", ".yaml", ".sh", ".txt"}, filepath.Ext(file)):
			return nil
		}
		content, err := os.ReadFile(file)
		for _, match := range named.FindAllStringSubmatch(string(content), -1) {
			n++
			page, _, _ := strings.Cut(match[0], "#")
			page = filepath.Clean(root + "/" + page)
			if text, err := os.ReadFile(page); err != nil || moved(page, string(text)) {
				t.Errorf("%s names %s, which does not exist or has moved", file, match[0])
			} else if match[1] != "" && !anchors(string(text))[match[1]] {
				t.Errorf("%s names %s, which has no such heading", file, match[0])
			}
		}
		return err
	}))
	if n < 50 {
		t.Errorf("%d pages are named, want at least 50", n)
	}
}
