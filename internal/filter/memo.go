package filter

import "proffer.dev/proffer/internal/filter/memo"

// results remembers the result for each object until it changes.
type results[T any] struct {
	digest func(*T) memo.Digest
	ask    func(*T) result
	memo.Memo[result]
}

// result says whether a filter admits an object and, if not, why.
type result struct {
	ok  bool
	why string
}

// resultOf returns the result for an object.
func (r *results[T]) resultOf(key string, object T) (ok bool, why string) {
	state := r.digest(&object)
	latest, result, known := r.Latest(key)
	if !known || latest != state {
		result = r.ask(&object)
		r.Store(key, state, result)
	}
	return result.ok, result.why
}
