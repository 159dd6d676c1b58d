package memo

import (
	"fmt"
	"testing"
)

func TestTheLatestAnswerIsRememberedInBoundedMemory(t *testing.T) {
	var m Memo[string]
	if _, _, known := m.Latest("a"); known {
		t.Error("an empty memo knows an answer")
	}
	for i := range 2 * Max {
		key := fmt.Sprint(i)
		m.Store(key, Digest{1}, "old")
		m.Store(key, Digest{2}, "new")
		if state, answer, known := m.Latest(key); state != (Digest{2}) || answer != "new" || !known {
			t.Fatalf("%s: %v %s %t", key, state, answer, known)
		}
	}
	if m.Len() != Max {
		t.Errorf("%d answers are remembered, want %d", m.Len(), Max)
	}
}
