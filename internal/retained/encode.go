package retained

import (
	"encoding/binary"
	"encoding/hex"
	"math"
	"strings"
	"time"

	"github.com/katbox/katbox/internal/volume"
)

// The volume IDs and pod UIDs of a kubelet are hexadecimal digits. The bytes that they stand for
// take half the memory. Other names are kept as they are.

// The first byte of a name's short form says which form it is.
const (
	asText = iota
	asDigits
)

// idPrefix and idDigits make up the ID of a kubelet's volume. podBytes are those of a UUID.
const (
	idPrefix = "csi-"
	idDigits = 64
	podBytes = 16
)

// appendID appends the short form of an ID.
func appendID(b []byte, id volume.ID) []byte {
	if digits, ok := strings.CutPrefix(string(id), idPrefix); ok && len(digits) == idDigits {
		if short, ok := appendDigits(append(b, asDigits), digits); ok {
			return short
		}
	}
	return appendText(append(b, asText), string(id))
}

// cutID cuts off an ID that appendID has appended.
func cutID(b []byte) (volume.ID, []byte) {
	if b[0] == asDigits {
		id := append(make([]byte, 0, len(idPrefix)+idDigits), idPrefix...)
		return volume.ID(hex.AppendEncode(id, b[1:1+idDigits/2])), b[1+idDigits/2:]
	}
	text, rest := cutText(b[1:])
	return volume.ID(text), rest
}

// skipID skips an ID that appendID has appended.
func skipID(b []byte) []byte {
	if b[0] == asDigits {
		return b[1+idDigits/2:]
	}
	return skipText(b[1:])
}

// appendPod appends the short form of a pod's UID, which is the bytes of a UUID.
func appendPod(b []byte, pod volume.PodUID) []byte {
	if t := string(pod); len(t) == len("01234567-89ab-cdef-0123-456789abcdef") && t[8] == '-' && t[13] == '-' && t[18] == '-' && t[23] == '-' {
		if short, ok := appendDigits(append(b, asDigits), t[:8]+t[9:13]+t[14:18]+t[19:23]+t[24:]); ok {
			return short
		}
	}
	return appendText(append(b, asText), string(pod))
}

// cutPod cuts off a UID that appendPod has appended.
func cutPod(b []byte) (volume.PodUID, []byte) {
	if b[0] == asDigits {
		t := hex.EncodeToString(b[1 : 1+podBytes])
		return volume.PodUID(t[:8] + "-" + t[8:12] + "-" + t[12:16] + "-" + t[16:20] + "-" + t[20:]), b[1+podBytes:]
	}
	text, rest := cutText(b[1:])
	return volume.PodUID(text), rest
}

// skipPod skips a UID that appendPod has appended.
func skipPod(b []byte) []byte {
	if b[0] == asDigits {
		return b[1+podBytes:]
	}
	return skipText(b[1:])
}

// appendDigits appends the bytes that an even number of digits stand for, if all are hexadecimal
// and in lower case. The package encoding/hex takes both cases.
func appendDigits(b []byte, digits string) ([]byte, bool) {
	for i := 0; i < len(digits); i += 2 {
		high, low := nibbles[digits[i]], nibbles[digits[i+1]]
		if high|low > 0xf {
			return b, false
		}
		b = append(b, high<<4|low)
	}
	return b, true
}

// nibbles is what each digit stands for, and noDigit for other characters.
var nibbles = func() (all [256]byte) {
	for c := range all {
		all[c] = noDigit
	}
	for value, c := range []byte("0123456789abcdef") {
		all[c] = byte(value)
	}
	return all
}()

const noDigit = 0xff

func appendText(b []byte, text string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(text))), text...)
}

func cutText(b []byte) (text string, rest []byte) {
	length, size := binary.Uvarint(b)
	b = b[size:]
	return string(b[:length]), b[length:]
}

func skipText(b []byte) []byte {
	length, size := binary.Uvarint(b)
	return b[uint64(size)+length:]
}

// appendSeconds appends a time of whole seconds after 1970. Others come back as the zero time.
func appendSeconds(b []byte, t time.Time) []byte {
	return binary.AppendUvarint(b, uint64(max(t.Unix(), 0)))
}

func cutSeconds(b []byte) (t time.Time, rest []byte) {
	seconds, size := binary.Uvarint(b)
	if seconds > 0 {
		t = time.Unix(int64(seconds), 0)
	}
	return t, b[size:]
}

// clock keeps a time in 8 bytes: the nanoseconds since the first time that it kept, by the
// monotonic clock if the times carry a reading: a step of the wall clock moves no deadline.
//
// People and the records on disk need a reading of the wall clock too. It is derived from a base,
// another time that was kept since the last step, and is off by maxStep at most.
type clock struct {
	origin time.Time // the first time that was kept
	base   time.Time // the first time that was kept since the last step
}

const (
	// maxStep is by how much the two clocks may differ before that counts as a step.
	maxStep = time.Second
	// never stands for the zero time.
	never = math.MinInt64
)

// keep returns what to keep of t. Times may be some 290 years apart.
func (c *clock) keep(t time.Time) (since int64, base time.Time) {
	if t.IsZero() {
		return never, t
	}
	if c.origin.IsZero() {
		*c = clock{origin: t, base: t}
	}
	if step := t.Round(0).Sub(c.base.Round(0)) - t.Sub(c.base); step.Abs() > maxStep {
		c.base = t
	}
	return int64(t.Sub(c.origin)), c.base
}

// time returns a time that was kept.
func (c *clock) time(since int64, base time.Time) time.Time {
	if since == never {
		return time.Time{}
	}
	return base.Add(time.Duration(since) - base.Sub(c.origin))
}

// interned keeps each value that many share once, under a number. The zero interned is empty and
// ready to use.
type interned[V comparable] struct {
	numbers map[V]number
	values  slab[counted[V]]
}

type counted[V comparable] struct {
	value V
	users int
}

// use returns the number of v, for one more user.
func (s *interned[V]) use(v V) number {
	if n, ok := s.numbers[v]; ok {
		s.values.at(n).users++
		return n
	}
	if s.numbers == nil {
		s.numbers = map[V]number{}
	}
	n := s.values.alloc()
	*s.values.at(n) = counted[V]{v, 1}
	s.numbers[v] = n
	return n
}

// value returns the value with a number that is in use. It is not to be changed.
func (s *interned[V]) value(n number) *V { return &s.values.at(n).value }

// drop forgets the value with the last of its users.
func (s *interned[V]) drop(n number) {
	c := s.values.at(n)
	if c.users--; c.users > 0 {
		return
	}
	delete(s.numbers, c.value)
	*c = counted[V]{}
	s.values.release(n)
}
