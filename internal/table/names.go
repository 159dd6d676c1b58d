package table

// names give each consumer that was ever told of a small number, so that a thousand subscriptions that wait for ten thousand consumers
// need megabytes, not gigabytes. They are guarded by Table.subscribing.
type names struct {
	// ids are the consumers by number. What is in it never changes, so that a subscription may read it while it is appended to.
	ids     []string
	numbers map[string]uint32
	// slack is how many numbers may be out of use before the rest is numbered anew.
	slack int
}

const defaultSlack = 4096

func newNames(slack int) names { return names{numbers: map[string]uint32{}, slack: slack} }

// number returns the number of the consumer, a new one if it has none.
func (n *names) number(id string) uint32 {
	i, ok := n.numbers[id]
	if !ok {
		i = uint32(len(n.ids))
		n.ids = append(n.ids, id)
		n.numbers[id] = i
	}
	return i
}

// bitset is a set of numbers.
type bitset []uint64

// grow makes room for the numbers below n.
func (b *bitset) grow(n int) {
	if words := (n + 63) / 64; words > len(*b) {
		*b = append(*b, make([]uint64, words-len(*b))...)
	}
}

// add puts a number in, and reports whether it was not there.
func (b bitset) add(i uint32) bool {
	word, bit := &b[i/64], uint64(1)<<(i%64)
	if *word&bit != 0 {
		return false
	}
	*word |= bit
	return true
}

func (b bitset) remove(i uint32) { b[i/64] &^= 1 << (i % 64) }
