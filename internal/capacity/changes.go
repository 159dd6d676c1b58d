package capacity

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

const (
	// maxChanges bounds how many resources Changes lists, maxChangeName how many bytes it repeats of
	// each name.
	maxChanges    = 5
	maxChangeName = 61
)

// Changes lists what differs between two lists of amounts, such as "cpu 8 -> 4", by name. A resource
// that one list does not name is 0 in it.
func Changes(before, after Amounts) string {
	all := Amounts{}
	maps.Copy(all, before)
	maps.Copy(all, after)
	var changes []string
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if before[name] == after[name] {
			continue
		}
		if len(changes) == maxChanges {
			changes = append(changes, "...")
			break
		}
		q, shown := HumanFormat(name, before[name], after[name]), name
		if len(name) > maxChangeName+len("...") {
			shown = strings.ToValidUTF8(name[:maxChangeName], "") + "..."
		}
		changes = append(changes, fmt.Sprintf("%s %s -> %s", shown, q(before[name]), q(after[name])))
	}
	return strings.Join(changes, ", ")
}
