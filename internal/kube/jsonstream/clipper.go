package jsonstream

import "io"

const (
	// maxText bounds the characters that are read of a text or number. It is more than any caller keeps.
	maxText = 80 << 10
	// maxNesting is how deep values nest that are read. The decoder refuses more than 10,000 levels.
	maxNesting = 9_000
)

// clipper leaves out of JSON what would make the decoder take memory without a bound, or refuse the
// values of others: the rest of long texts, numbers and spaces. 0 replaces a value that nests too
// deep.
type clipper struct {
	from   io.Reader
	depth  int
	inText bool
	// escape is how many bytes an escape sequence may still have.
	escape int
	// length counts the characters of a text, or the bytes between two texts, brackets or commas.
	length int
}

// Read implements io.Reader. It may return no bytes and no error.
func (c *clipper) Read(to []byte) (int, error) {
	n, err := c.from.Read(to)
	kept := to[:0]
	for rest := to[:n]; len(rest) > 0; {
		if c.inText && c.escape == 0 {
			plain := plainText(rest)
			if c.depth <= maxNesting {
				kept = append(kept, plain[:min(len(plain), max(0, maxText-c.length))]...)
			}
			c.length += len(plain)
			if rest = rest[len(plain):]; len(rest) == 0 {
				break
			}
		}
		b := rest[0]
		rest = rest[1:]
		var keep bool
		if c.inText {
			keep = c.text(b)
		} else if keep = c.syntax(b); c.depth == maxNesting+1 && (b == '{' || b == '[') {
			kept = append(kept, '0')
		}
		if keep {
			kept = append(kept, b)
		}
	}
	return len(kept), err
}

// plainText returns the part of a text before the next quote or backslash, which is most of a list. It
// stops at the first of either: a search for one beyond the other would read escape sequences many times.
func plainText(text []byte) []byte {
	for i, b := range text {
		if b == '"' || b == '\\' {
			return text[:i]
		}
	}
	return text
}

// text reports whether a byte of a text is kept. An escape sequence is kept or left out as a whole.
func (c *clipper) text(b byte) bool {
	switch {
	case c.escape > 0:
		if c.escape--; c.escape == 4 && b != 'u' {
			c.escape = 0
		}
	case b == '"':
		c.inText, c.length = false, 0
	default:
		if c.length++; b == '\\' {
			c.escape = 5
		}
	}
	return c.length <= maxText && c.depth <= maxNesting
}

// syntax reports whether a byte outside of texts is kept.
func (c *clipper) syntax(b byte) bool {
	kept := c.depth <= maxNesting
	switch b {
	case '"':
		c.inText, c.length = true, 0
	case '{', '[':
		c.depth++
		c.length = 0
		return c.depth <= maxNesting
	case '}', ']':
		c.depth--
		c.length = 0
	case ',', ':':
		c.length = 0
	default:
		c.length++
	}
	return kept && c.length <= maxText
}
