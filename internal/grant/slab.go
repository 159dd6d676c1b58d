package grant

// slab cuts short slices out of long ones: an allocation of grants needs very many, and all of them for as long as each other.
type slab[T any] struct {
	all, rest []T
}

const (
	minSlab = 16
	maxSlab = 2048
)

// cut returns n zero values.
func (s *slab[T]) cut(n int) []T {
	if n > len(s.rest) {
		s.all = make([]T, max(n, min(max(2*len(s.all), minSlab), maxSlab)))
		s.rest = s.all
	}
	out := s.rest[:n:n]
	s.rest = s.rest[n:]
	return out
}

// back takes back the last n values of what was cut last, which are zero still.
func (s *slab[T]) back(n int) { s.rest = s.all[len(s.all)-len(s.rest)-n:] }

// one returns a place for one value.
func (s *slab[T]) one() *T { return &s.cut(1)[0] }
