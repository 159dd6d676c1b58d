package protocol

// Record is the content of the Grant of a slice.
type Record struct {
	// Present is the slice's holding in its class. It may not have accepted more.
	Present Share
	// Earlier lists the slice's remaining holdings in former classes.
	Earlier Shares
	// Released marks the record of a slice that is gone or drained: only pods still hold it.
	Released bool
	// Term identifies the write. No two writes have the same.
	Term string
}

// shares returns everything that the record holds, by class.
func (r *Record) shares() Shares {
	if r == nil {
		return nil
	}
	return r.Earlier.Add(r.Present)
}

// empty reports whether the record holds nothing, so that it need not exist.
func (r *Record) empty() bool { return r == nil || r.Present.Empty() && len(r.Earlier) == 0 }

// same reports whether two records have the same content, whichever write they are from.
func (r *Record) same(o *Record) bool {
	if r.empty() || o.empty() {
		return r.empty() && o.empty()
	}
	return r.Released == o.Released && r.Present.Policy == o.Present.Policy && r.Present.Reclaim == o.Present.Reclaim &&
		r.Present.Same(o.Present) && r.Earlier.Same(o.Earlier)
}
