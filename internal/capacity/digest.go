package capacity

import "hash/maphash"

// seed is secret, so that nobody can write two values of one digest.
var seed = maphash.MakeSeed()

// Digest returns a digest of a value. It differs from process to process.
func Digest[V comparable](value V) uint64 { return maphash.Comparable(seed, value) }

// DigestMap returns a digest of a map, whose entries have no order.
func DigestMap[V comparable](of map[string]V) (sum uint64) {
	type entry struct {
		key   string
		value V
	}
	for key, value := range of {
		sum += Digest(entry{key, value})
	}
	return sum
}
