package protocol

// Record is what the Grant of a slice says.
type Record struct {
	// Present is what the slice holds in its class. Its amounts are the most that it may have accepted.
	Present Share
	// Earlier is what it held in other classes before.
	Earlier Shares
	// Released says that the slice is gone or drained: only pods hold what the record says.
	Released bool
	// Term identifies the write: no two are the same.
	Term string
}

// shares are all that the record says.
func (r *Record) shares() Shares {
	if r == nil {
		return nil
	}
	return r.Earlier.Add(r.Present)
}

// empty reports whether the record holds nothing, so that it need not exist.
func (r *Record) empty() bool { return r == nil || r.Present.Empty() && len(r.Earlier) == 0 }

// same reports whether two records say the same, whoever wrote them.
func (r *Record) same(o *Record) bool {
	if r.empty() || o.empty() {
		return r.empty() && o.empty()
	}
	return r.Released == o.Released && r.Present.Policy == o.Present.Policy && r.Present.Reclaim == o.Present.Reclaim &&
		r.Present.Same(o.Present) && r.Earlier.Same(o.Earlier)
}
