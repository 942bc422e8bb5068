package store

import "math"

// parsePlain reads a body as encodeValue writes it for a retained volume. A start reads a million of
// them, and this takes a tenth of the time that the CBOR library needs, which looks up each field by
// reflection and allocates each text. ok is false for all else, which the library reads or refuses: a
// record with targets, one with fields of a later version, or the same in another encoding.
//
// All texts of the record are parts of the body.
func parsePlain(body string) (s storedRecord, ok bool) {
	p := plain{rest: body}
	fields, last := p.item(mapItem), uint64(0)
	for range fields {
		key := p.item(numberItem)
		if key <= last {
			p.refuse()
		}
		last = key
		switch key {
		case 1:
			s.Pod = p.text()
		case 2:
			s.Namespace = p.text()
		case 3:
			s.PodName = p.text()
		case 4:
			s.Phase = p.byte()
		case 6:
			s.Unpublished = p.integer()
		case 7:
			s.Lifespan = p.integer()
		case 8:
			s.Boot = p.item(numberItem)
		case 9:
			s.Boottime = p.integer()
		case 10:
			s.VolumeName = p.text()
		case 11:
			s.Account = p.text()
		case 12:
			s.Published = p.integer()
		case 13:
			s.Verdict = p.item(numberItem)
		case 14:
			s.NamespaceUID = p.text()
		case 15:
			s.Kind = p.text()
		case 16:
			s.Name = p.text()
		case 17:
			s.UID = p.text()
		case 18:
			s.Job = p.text()
		case 19:
			s.JobIndex = p.text()
		case 20:
			s.storedPromise.Lifespan = p.integer()
		case 21:
			s.LifespanSucceeded = p.integer()
		case 22:
			s.Retain = p.item(numberItem)
		case 23:
			s.LimitBytes = p.integer()
		case 24:
			s.LimitInodes = p.integer()
		case 25:
			s.Mode = p.item(numberItem)
		case 26:
			s.Outcome = p.item(numberItem)
		case 27:
			s.HoldKind = p.item(numberItem)
		case 28:
			s.HoldFor = p.integer()
		case 29:
			s.HoldBy = p.text()
		case 30:
			s.HoldWhy = p.text()
		case 31:
			s.Project = p.item(numberItem)
		case 32:
			s.AttachPod = p.text()
		case 33:
			s.AttachID = p.text()
		default:
			p.refuse()
		}
		if p.refused {
			return storedRecord{}, false
		}
	}
	return s, !p.refused && p.rest == ""
}

// The major types of CBOR that a plain body has.
const (
	numberItem   = 0
	negativeItem = 1
	textItem     = 3
	mapItem      = 5
)

// plain reads a body from its beginning. After refused, what it returns means nothing.
type plain struct {
	rest    string
	refused bool
}

func (p *plain) refuse() { p.rest, p.refused = "", true }

// head reads the type and the number that an item begins with.
func (p *plain) head() (major byte, n uint64) {
	if p.rest == "" {
		p.refuse()
		return 0, 0
	}
	major, n = p.rest[0]>>5, uint64(p.rest[0]&0x1f)
	p.rest = p.rest[1:]
	if n < 24 {
		return major, n
	}
	size := 1 << (n - 24) // of the number that follows
	if n > 27 || len(p.rest) < size {
		p.refuse()
		return 0, 0
	}
	n = 0
	for i := range size {
		n = n<<8 | uint64(p.rest[i])
	}
	p.rest = p.rest[size:]
	return major, n
}

// item reads the number of an item that has to be of a type.
func (p *plain) item(want byte) uint64 {
	major, n := p.head()
	if major != want {
		p.refuse()
	}
	return n
}

func (p *plain) integer() int64 {
	major, n := p.head()
	if major > negativeItem || n > math.MaxInt64 {
		p.refuse()
	}
	if major == negativeItem {
		return ^int64(n)
	}
	return int64(n)
}

func (p *plain) byte() uint8 {
	n := p.item(numberItem)
	if n > math.MaxUint8 {
		p.refuse()
	}
	return uint8(n)
}

func (p *plain) text() string {
	length := p.item(textItem)
	if length > uint64(len(p.rest)) {
		p.refuse()
		return ""
	}
	text := p.rest[:length]
	p.rest = p.rest[length:]
	return text
}
