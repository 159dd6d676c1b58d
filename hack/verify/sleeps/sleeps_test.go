package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestASleepIsFoundUnlessTheBubblesClockMoves(t *testing.T) {
	for name, tc := range map[string]struct {
		src  string
		want []int // Lines.
	}{
		"a call":                {src: "import \"time\"\nfunc f() { time.Sleep(1) }", want: []int{3}},
		"by another name":       {src: "import clock \"time\"\nfunc f() { clock.Sleep(1) }", want: []int{3}},
		"handed over":           {src: "import \"time\"\nvar wait = time.Sleep", want: []int{3}},
		"in a goroutine":        {src: "import \"time\"\nfunc f() { go func() { time.Sleep(1) }() }", want: []int{3}},
		"another package's":     {src: "import time \"example.com/fake\"\nfunc f() { time.Sleep(1) }"},
		"another of time":       {src: "import \"time\"\nfunc f() { <-time.After(1) }"},
		"in a bubble":           {src: "import (\"time\"; \"testing/synctest\")\nfunc f() { synctest.Test(nil, func() { time.Sleep(1) }) }"},
		"beside a bubble":       {src: "import (\"time\"; \"testing/synctest\")\nfunc f() { synctest.Test(nil, nil)\ntime.Sleep(1) }", want: []int{4}},
		"in what is not a test": {src: "func f() { Sleep(1) }"},
	} {
		t.Run(name, func(t *testing.T) {
			found, err := sleeps("x_test.go", []byte("package x\n"+tc.src+"\n"))
			if err != nil {
				t.Fatal(err)
			}
			var got []int
			for _, at := range found {
				got = append(got, at.Line)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("lines (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAFileThatDoesNotParseIsAnError(t *testing.T) {
	if _, err := sleeps("x_test.go", []byte("not go")); err == nil {
		t.Error("taken for a file without a sleep")
	}
}
