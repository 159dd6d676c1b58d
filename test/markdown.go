package test

import (
	"regexp"
	"slices"
	"strings"
)

// A Block is a fenced block of a page in Markdown.
type Block struct{ Language, Text string }

// A Step is a command in a block of a console, and what the block shows below it.
type Step struct{ Command, Output string }

var fenced = regexp.MustCompile("(?ms)^```([a-z]+)\n(.*?)^```$")

// Blocks returns the blocks of a page in these languages that are not indented.
func Blocks(page string, languages ...string) (blocks []Block) {
	for _, match := range fenced.FindAllStringSubmatch(page, -1) {
		if slices.Contains(languages, match[1]) {
			blocks = append(blocks, Block{match[1], match[2]})
		}
	}
	return blocks
}

// Steps returns what is typed in the block, after the prompt "$ ".
func (b Block) Steps() (steps []Step) {
	for _, step := range strings.Split("\n"+b.Text, "\n$ ")[1:] {
		command, output, _ := strings.Cut(step, "\n")
		steps = append(steps, Step{command, output})
	}
	return steps
}
