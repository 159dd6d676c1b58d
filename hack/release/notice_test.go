package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"proffer.dev/proffer/test"
)

// permissive matches the licenses that NOTICE need not name.
var permissive = regexp.MustCompile(`Apache License|Redistribution and use in source and binary forms|` +
	`Permission is hereby granted, free of charge`)

// NOTICE names every module of the released programs that is under another license.
func TestNOTICENamesTheModulesUnderOtherLicenses(t *testing.T) {
	text := test.Read(t, "../../NOTICE")
	named := map[string]bool{}
	for _, match := range regexp.MustCompile(`(?m)^  (\S+\.\S+/\S+) +\S+ +https://\S+$`).FindAllStringSubmatch(text, -1) {
		named[match[1]] = true
	}
	linked := map[string]bool{}
	// The modules depend on the system and not on the processor.
	for _, p := range slices.CompactFunc(slices.Clone(platforms), func(a, b platform) bool { return a.os == b.os }) {
		list := exec.CommandContext(t.Context(), "go", "list", "-deps", "-f",
			"{{with .Module}}{{if not .Main}}{{.Path}}={{.Dir}}{{end}}{{end}}", "./cmd/proffer", "./cmd/"+plugin)
		list.Dir = "../.."
		list.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+p.os, "GOARCH="+p.arch)
		out, err := list.Output()
		test.Must(t, err)
		seen := map[string]bool{}
		for line := range strings.FieldsSeq(string(out)) {
			module, directory, _ := strings.Cut(line, "=")
			if !seen[module] && !isPermissive(t, directory) {
				linked[module] = true
			}
			seen[module] = true
		}
		if len(seen) == 0 {
			t.Fatal("the programs have no modules")
		}
	}
	if diff := cmp.Diff(linked, named); diff != "" {
		t.Errorf("the modules in NOTICE (-linked +named):\n%s", diff)
	}
}

func isPermissive(t *testing.T, directory string) bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(directory, "[LC][IiOo][CcPp][EeYy]*"))
	test.Must(t, err)
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil { // It is a directory.
			continue
		}
		words := strings.Join(strings.Fields(string(text)), " ")
		if strings.Contains(words, "Mozilla Public License") {
			return false
		}
		if permissive.MatchString(words) {
			return true
		}
	}
	return false
}
