package deploy

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/asn1"
	"encoding/base64"
	"encoding/pem"
	mathrand "math/rand/v2"
	"slices"
	"strings"
	"testing"

	"proffer.dev/proffer/test"
)

// csrType is the type of the PEM block of a certificate signing request.
const csrType = "CERTIFICATE REQUEST"

// An attribute is one of the subject of a request.
type attribute struct {
	// oid is the content of the object identifier in DER.
	oid   []byte
	tag   byte
	value string
}

// The tags of strings in ASN.1.
const (
	utf8String      = 0x0c
	printableString = 0x13
)

var (
	organizationName = []byte{0x55, 0x04, 0x0a}
	commonName       = []byte{0x55, 0x04, 0x03}
	organizationUnit = []byte{0x55, 0x04, 0x0b}
	otherNames       = [][]byte{
		organizationUnit,
		{0x55, 0x04, 0x06}, // countryName
		{0x55, 0x04, 0x05}, // serialNumber
		{0x09, 0x92, 0x26, 0x89, 0x93, 0xf2, 0x2c, 0x64, 0x01, 0x01}, // userID
		{0x2b, 0x06, 0x01, 0x04, 0x01, 0x83, 0xc2, 0x53, 0x02},       // the UID of a user of Kubernetes
	}
	// otherValues include values that contain an attribute's identifier.
	otherValues = []string{
		"oidc:admins", "system:nodes", "liqo.io", "rome", "oslo", "", strings.Repeat("g", 200),
		"\x06\x03U\x04\n\x13\x04rome", "\x06\x03U\x04\x03\x13\x04rome", "U\x04\n",
	}
	// otherTags are those of a UTF8String, IA5String, T61String, BMPString, INTEGER, OCTET STRING,
	// OBJECT IDENTIFIER and SEQUENCE.
	otherTags = []byte{utf8String, 0x16, 0x14, 0x1e, 0x02, 0x04, 0x06, 0x30}
)

func organization(value string) attribute { return attribute{organizationName, printableString, value} }

func common(value string) attribute { return attribute{commonName, printableString, value} }

// A requestMaker makes certificate signing requests as a hostile consumer may: with more names than
// those of its own identity, and in other encodings than Liqo's. Without a source of random numbers,
// it makes what it is told to.
type requestMaker struct {
	random *mathrand.Rand
	key    ed25519.PrivateKey
	// ber allows lengths that DER does not.
	ber bool
}

func newRequestMaker(t *testing.T, random *mathrand.Rand) *requestMaker {
	t.Helper()
	_, key, err := ed25519.GenerateKey(rand.Reader)
	test.Must(t, err)
	return &requestMaker{random: random, key: key}
}

// tlv encodes a value in DER, or in BER now and then.
func (m *requestMaker) tlv(tag byte, content []byte) []byte {
	n, form := len(content), 0
	if m.ber {
		form = m.random.IntN(8)
	}
	switch {
	case form == 1:
		return slices.Concat([]byte{tag, 0x80}, content, []byte{0, 0})
	case form == 2:
		return slices.Concat([]byte{tag, 0x83, 0, byte(n >> 8), byte(n)}, content)
	case form == 3 || n >= 0x100:
		return slices.Concat([]byte{tag, 0x82, byte(n >> 8), byte(n)}, content)
	case form == 4 || n >= 0x80:
		return slices.Concat([]byte{tag, 0x81, byte(n)}, content)
	default:
		return slices.Concat([]byte{tag, byte(n)}, content)
	}
}

// subject encodes sets of attributes.
func (m *requestMaker) subject(sets ...[]attribute) []byte {
	var name []byte
	for _, set := range sets {
		var attributes []byte
		for _, a := range set {
			typeAndValue := slices.Concat(m.tlv(0x06, a.oid), m.tlv(a.tag, []byte(a.value)))
			attributes = append(attributes, m.tlv(0x30, typeAndValue)...)
		}
		name = append(name, m.tlv(0x31, attributes)...)
	}
	return m.tlv(0x30, name)
}

// block returns a signed request for a subject in DER.
func (m *requestMaker) block(t *testing.T, subject []byte, alternativeNames ...string) []byte {
	t.Helper()
	template := &x509.CertificateRequest{RawSubject: subject, DNSNames: alternativeNames}
	block, err := x509.CreateCertificateRequest(rand.Reader, template, m.key)
	test.Must(t, err)
	return block
}

// text returns a signed request as Liqo encodes it.
func (m *requestMaker) text(t *testing.T, sets ...[]attribute) string {
	t.Helper()
	return encodePEM(m.block(t, m.subject(sets...)))
}

func encodePEM(block []byte) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: csrType, Bytes: block}))
}

// pick returns a random element.
func pick[T any](random *mathrand.Rand, all []T) T { return all[random.IntN(len(all))] }

// attribute returns any attribute, often an Organization.
func (m *requestMaker) attribute() attribute {
	a := attribute{organizationName, printableString, pick(m.random, otherValues)}
	switch m.random.IntN(5) {
	case 0:
		a.oid = commonName
	case 1:
		a.oid = pick(m.random, otherNames)
	}
	if m.random.IntN(3) == 0 || strings.ContainsAny(a.value, "\x06\x04:") {
		a.tag = utf8String
	}
	if m.random.IntN(12) == 0 {
		a.tag = pick(m.random, otherTags)
	}
	return a
}

// sets returns the subject of Liqo's request with up to three changes.
func (m *requestMaker) sets(group, user string) [][]attribute {
	sets := [][]attribute{{organization(group)}, {common(user)}}
	for range m.random.IntN(4) {
		i, j := m.random.IntN(len(sets)), m.random.IntN(len(sets))
		switch m.random.IntN(8) {
		case 0:
			sets[i] = append(sets[i], m.attribute())
		case 1:
			sets[i], sets[j] = sets[j], sets[i]
		case 2:
			if len(sets) > 1 {
				sets = slices.Delete(sets, i, i+1)
			}
		case 3:
			sets[i][0].tag = pick(m.random, otherTags)
		default:
			sets = slices.Insert(sets, m.random.IntN(len(sets)+1), []attribute{m.attribute()})
		}
	}
	return sets
}

// hostile returns a random request in base64, as in the JSON of spec.csr.
func (m *requestMaker) hostile(t *testing.T, group, user string) string {
	t.Helper()
	m.ber = m.random.IntN(12) == 0
	var names []string
	if m.random.IntN(8) == 0 {
		names = []string{"kubernetes.default"}
	}
	block := m.block(t, m.subject(m.sets(group, user)...), names...)
	if m.ber {
		var request asn1.RawValue
		if _, err := asn1.Unmarshal(block, &request); err != nil {
			t.Fatal(err)
		}
		block = m.tlv(0x30, request.Bytes)
	}
	return m.encode(m.disguise(t, block))
}

// disguise encodes a block in PEM, often not as Liqo does.
func (m *requestMaker) disguise(t *testing.T, block []byte) string {
	t.Helper()
	text := encodePEM(block)
	header, rest, _ := strings.Cut(text, "\n")
	end := strings.Index(rest, "-----END")
	body, footer := strings.ReplaceAll(rest[:end], "\n", ""), rest[end:]
	middle := len(header) + 1 + m.random.IntN(end)
	switch m.random.IntN(40) {
	case 0:
		return header + "\nProc-Type: 4,ENCRYPTED\n\n" + rest
	case 1:
		return "Bag Attributes\n" + text
	case 2:
		return "\n" + text
	case 3:
		return text + "\n"
	case 4:
		return text + "\x00"
	case 5:
		return strings.TrimSuffix(text, "\n")
	case 6:
		return strings.ReplaceAll(text, "\n", "\r\n")
	case 7:
		return text + text
	case 8:
		return m.text(t, []attribute{organization("rome")}, []attribute{common("rome")}) + text
	case 9:
		return header + "\n" + body + "\n" + footer
	case 10:
		return header + "\n" + strings.Join(slices.Collect(chunks(body, 76)), "\n") + "\n" + footer
	case 11:
		return header + "\n\n" + rest
	case 12:
		return header + " \n" + rest
	case 13:
		return text[:middle] + "\t" + text[middle:]
	case 14:
		return text[:middle] + "\n" + text[middle:]
	case 15:
		return strings.ReplaceAll(text, csrType, "NEW "+csrType)
	case 16:
		// Bits that decoders ignore.
		return strings.Replace(text, "A==\n", "P==\n", 1)
	default:
		return text
	}
}

func chunks(text string, size int) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for chunk := range slices.Chunk([]byte(text), size) {
			if !yield(string(chunk)) {
				return
			}
		}
	}
}

// encode encodes a text in base64, now and then not as Liqo does.
func (m *requestMaker) encode(text string) string {
	encoded := base64.StdEncoding.EncodeToString([]byte(text))
	middle := m.random.IntN(len(encoded))
	switch m.random.IntN(40) {
	case 0:
		return encoded[:middle] + "\n" + encoded[middle:]
	case 1:
		return encoded[:middle] + "\r\n" + encoded[middle:]
	case 2:
		return encoded + "\n"
	case 3:
		return encoded[:middle] + " " + encoded[middle:]
	case 4:
		return strings.TrimRight(encoded, "=")
	case 5:
		return base64.URLEncoding.EncodeToString([]byte(text))
	default:
		return encoded
	}
}
