package main

import (
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

var noon = time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)

const reason = "cpu 5: 50% of (22 - 4 reserved) is a pool of 9, 5 committed, 4 remaining; it has 1"

// oslo returns the offers to oslo in two classes.
func oslo(edits ...func(free, gpu *offered)) []consumer {
	free := offered{
		policy: "nodes-free", amounts: map[string]string{"cpu": "5", "memory": "38Gi", "pods": "162"},
		because: []string{reason, "memory 38Gi: 50% of 83Gi", "pods 162: 50% of 330"},
	}
	gpu := offered{
		class: "gpu", policy: "gpu[0]",
		amounts: map[string]string{
			"cpu": "1400m", "memory": "8160437862", "pods": "32", "ephemeral-storage": "30Gi", "nvidia.com/gpu": "4",
		},
		because: []string{"cpu 1.4: 30% of 8"},
	}
	for _, edit := range edits {
		edit(&free, &gpu)
	}
	return []consumer{{"oslo", []offered{free, gpu}}}
}

func TestTheTableAtTheUsualWidths(t *testing.T) {
	for _, tc := range []struct {
		name          string
		exact         bool
		was, is       []consumer
		narrow, broad string
		policies      []string
	}{
		{
			name: "the first offers",
			is: append(oslo(),
				consumer{"rome", []offered{{policy: "standard", amounts: map[string]string{"cpu": "500m"}}}}),
			narrow: `
12:00:00  oslo
  -    nodes-free  cpu 5, memory 38Gi, pods 162
       cpu 5: 50% of (22 - 4 reserved) is a pool of 9, 5 committed, 4 remaining;
       it has 1
  gpu  gpu[0]      cpu 1.4, memory 7.59Gi, pods 32, ephemeral-storage 30Gi,
                   nvidia.com/gpu 4
       cpu 1.4: 30% of 8
12:00:00  rome
  -    standard    cpu 500m`,
			broad: `
12:00:00  oslo
  -    nodes-free  cpu 5, memory 38Gi, pods 162
       cpu 5: 50% of (22 - 4 reserved) is a pool of 9, 5 committed, 4 remaining; it has 1
  gpu  gpu[0]      cpu 1.4, memory 7.59Gi, pods 32, ephemeral-storage 30Gi, nvidia.com/gpu 4
       cpu 1.4: 30% of 8
12:00:00  rome
  -    standard    cpu 500m`,
			policies: []string{"nodes-free", "gpu", "standard"},
		},
		{
			name: "exact amounts", exact: true, is: oslo(),
			narrow: `
12:00:00  oslo
  -    nodes-free  cpu 5, memory 38Gi, pods 162
       cpu 5: 50% of (22 - 4 reserved) is a pool of 9, 5 committed, 4 remaining;
       it has 1
  gpu  gpu[0]      cpu 1400m, memory 8160437862, pods 32,
                   ephemeral-storage 30Gi, nvidia.com/gpu 4
       cpu 1.4: 30% of 8`,
			broad: `
12:00:00  oslo
  -    nodes-free  cpu 5, memory 38Gi, pods 162
       cpu 5: 50% of (22 - 4 reserved) is a pool of 9, 5 committed, 4 remaining; it has 1
  gpu  gpu[0]      cpu 1400m, memory 8160437862, pods 32, ephemeral-storage 30Gi, nvidia.com/gpu 4
       cpu 1.4: 30% of 8`,
			policies: []string{"nodes-free", "gpu"},
		},
		{name: "nothing has changed", was: oslo(), is: oslo()},
		{
			name: "another reason for the same amounts", was: oslo(),
			is: oslo(func(free, _ *offered) { free.because = []string{"cpu 5: fixed at 5"} }),
		},
		{
			name: "only what has changed, with its reason", was: oslo(),
			is: oslo(func(free, _ *offered) {
				free.amounts = map[string]string{"cpu": "5", "memory": "40Gi", "pods": "162"}
			}),
			narrow: `
12:00:00  oslo
  -    nodes-free  memory 38Gi -> 40Gi
       memory 38Gi: 50% of 83Gi`,
			policies: []string{"nodes-free", "nodes-free"},
		},
		{
			name: "a change that three digits do not show", was: oslo(),
			is: oslo(func(_, gpu *offered) {
				gpu.amounts = map[string]string{
					"cpu": "1400m", "memory": "8160437861", "pods": "32", "ephemeral-storage": "30Gi",
					"nvidia.com/gpu": "0",
				}
			}),
			narrow: `
12:00:00  oslo
  gpu  gpu[0]      memory 8160437862 -> 8160437861, nvidia.com/gpu 4 -> 0
       cpu 1.4: 30% of 8`,
			policies: []string{"gpu", "gpu"},
		},
		{
			name: "another policy", was: oslo(),
			is: oslo(func(free, _ *offered) {
				*free = offered{
					policy: "fixed[1]", amounts: map[string]string{"cpu": "2", "storage": "10G"},
					because: []string{"cpu 2: fixed at 2"},
				}
			}),
			narrow: `
12:00:00  oslo
  -    fixed[1]    policy nodes-free -> fixed[1], cpu 5 -> 2,
                   memory 38Gi -> none, pods 162 -> none, storage none -> 10G
       cpu 2: fixed at 2`,
			broad: `
12:00:00  oslo
  -    fixed[1]    policy nodes-free -> fixed[1], cpu 5 -> 2, memory 38Gi -> none, pods 162 -> none, storage none -> 10G
       cpu 2: fixed at 2`,
			policies: []string{"nodes-free", "fixed"},
		},
		{
			name: "no policy any more", was: oslo(),
			is: oslo(func(_, gpu *offered) {
				*gpu = offered{
					class: "gpu", amounts: map[string]string{"cpu": "0"},
					because: []string{"cpu 0: not offered any more"},
				}
			}),
			narrow: `
12:00:00  oslo
  gpu  -           policy gpu[0] -> none, cpu 1.4 -> 0, memory 7.59Gi -> none,
                   pods 32 -> none, ephemeral-storage 30Gi -> none,
                   nvidia.com/gpu 4 -> none
       cpu 0: not offered any more`,
			broad: `
12:00:00  oslo
  gpu  -           policy gpu[0] -> none, cpu 1.4 -> 0, memory 7.59Gi -> none, pods 32 -> none, ephemeral-storage 30Gi -> none, nvidia.com/gpu 4 -> none
       cpu 0: not offered any more`,
			policies: []string{"gpu", ""},
		},
		{
			name: "a class less", was: oslo(), is: []consumer{{"oslo", oslo()[0].offers[:1]}},
			narrow: `
12:00:00  oslo
  gpu  -           no longer listed`,
			policies: []string{"gpu"},
		},
		{
			name: "names that are longer than there is room", is: []consumer{{strings.Repeat("milan-", 15), []offered{{
				class: strings.Repeat("c", 63), policy: strings.Repeat("p", 253),
				amounts: map[string]string{strings.Repeat("x", 60) + ".example.com/y": "1"},
			}}}},
			narrow: `
12:00:00  milan-milan-milan-milan-milan-milan-milan-milan-milan-milan-milan-mila
          n-milan-milan-milan-
  ccccccccccccccccccc…  ppppppppppppppppppp…  xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx
                                              xxxxxxxxxxxxxxxxxxxxxxxxxx.example
                                              .com/y 1`,
			broad: `
12:00:00  milan-milan-milan-milan-milan-milan-milan-milan-milan-milan-milan-milan-milan-milan-milan-
  ccccccccccccccccccccccccccccccccccccccccccccccccc…  ppppppppppppppppppppppppppppppppppppppppppppppppp…  ` + strings.Repeat("x", 60) + `.example.com/y 1`,
			policies: []string{strings.Repeat("p", 253)},
		},
	} {
		if tc.broad == "" {
			tc.broad = tc.narrow
		}
		for width, want := range map[int]string{80: tc.narrow, 200: tc.broad} {
			t.Run(fmt.Sprintf("%s at %d", tc.name, width), func(t *testing.T) {
				table := newTable(tc.exact)
				table.update(noon, tc.was, width)
				lines, policies := table.update(noon, tc.is, width)
				if diff := cmp.Diff(strings.TrimPrefix(want, "\n"), strings.Join(lines, "\n")); diff != "" {
					t.Errorf("-want +got:\n%s\n%s", diff, strings.Join(lines, "\n"))
				}
				if diff := cmp.Diff(tc.policies, policies); diff != "" {
					t.Errorf("policies, -want +got:\n%s", diff)
				}
			})
		}
	}
}

func TestAConsumerThatComesBackIsShownInFull(t *testing.T) {
	table := newTable(false)
	first, _ := table.update(noon, oslo(), 80)
	if diff := cmp.Diff([]string{"12:00:00  oslo is no longer a consumer"},
		table.forget(noon, "oslo", 80)); diff != "" {
		t.Error(diff)
	}
	again, _ := table.update(noon, oslo(), 80)
	if diff := cmp.Diff(first, again); diff != "" || table.knows("rome") || !table.knows("oslo") {
		t.Error(diff)
	}
}

func TestLinesFitTheWidthAndLoseNothing(t *testing.T) {
	words := rapid.StringMatching(`[a-zä…/.-]{1,90}`)
	rapid.Check(t, func(t *rapid.T) {
		width := rapid.IntRange(minWidth, 250).Draw(t, "width")
		o := offered{
			class:  rapid.StringMatching(`[a-z-]{0,63}`).Draw(t, "class"),
			policy: rapid.StringMatching(`[a-z.-]{0,253}`).Draw(t, "policy"),
			amounts: rapid.MapOf(words,
				rapid.SampledFrom([]string{"1", "1400m", "9223372036854775807", "no quantity"})).Draw(t, "amounts"),
			because: []string{strings.Join(rapid.SliceOf(words).Draw(t, "because"), " ")},
		}
		lines, _ := newTable(false).update(noon, []consumer{{words.Draw(t, "id"), []offered{o}}}, width)
		for _, line := range lines {
			if n := utf8.RuneCountInString(line); n > width || strings.TrimRight(line, " ") != line {
				t.Errorf("%d columns at a width of %d: %q", n, width, line)
			}
		}
		all := strings.ReplaceAll(strings.Join(lines, ""), " ", "")
		for name := range o.amounts {
			if !strings.Contains(all, name) {
				t.Errorf("%s is missing in\n%s", name, strings.Join(lines, "\n"))
			}
		}
		if because := strings.ReplaceAll(o.because[0], " ", ""); !strings.HasSuffix(all, because) {
			t.Errorf("no %s in\n%s", because, strings.Join(lines, "\n"))
		}
	})
}
