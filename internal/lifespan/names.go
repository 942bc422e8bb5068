package lifespan

import (
	"encoding/binary"
	"encoding/hex"
	"strings"
	"time"

	"github.com/katbox/katbox/internal/volume"
)

// A kubelet's volume IDs and pod UIDs are hexadecimal digits, and take half the
// memory as the bytes that they stand for. Others are kept as they are.

const (
	asText = iota
	asDigits
)

const (
	idPrefix = "csi-"
	idDigits = 64
	// podLength is that of a UUID in text, podHyphens are where it has hyphens.
	podLength = 36
)

var podHyphens = [...]int{8, 13, 18, 23}

// appendID appends an ID in its short form.
func appendID(b []byte, id volume.ID) []byte {
	if digits, ok := strings.CutPrefix(string(id), idPrefix); ok && len(digits) == idDigits {
		if short, ok := appendDigits(append(b, asDigits), digits); ok {
			return short
		}
	}
	return appendText(append(b, asText), string(id))
}

// cutID takes what appendID has appended from the front.
func cutID(b []byte) (volume.ID, []byte) {
	if b[0] == asDigits {
		id := append(make([]byte, 0, len(idPrefix)+idDigits), idPrefix...)
		return volume.ID(hex.AppendEncode(id, b[1:1+idDigits/2])), b[1+idDigits/2:]
	}
	text, rest := cutText(b[1:])
	return volume.ID(text), rest
}

// appendPod appends a pod UID in its short form.
func appendPod(b []byte, pod volume.PodUID) []byte {
	if short, ok := appendUUID(append(b, asDigits), string(pod)); ok {
		return short
	}
	return appendText(append(b, asText), string(pod))
}

// appendUUID appends the bytes of a UUID, if it has its usual form.
func appendUUID(b []byte, text string) ([]byte, bool) {
	if len(text) != podLength {
		return b, false
	}
	start := 0
	for _, at := range podHyphens {
		var ok bool
		if b, ok = appendDigits(b, text[start:at]); !ok || text[at] != '-' {
			return b, false
		}
		start = at + 1
	}
	return appendDigits(b, text[start:])
}

// cutPod takes what appendPod has appended from the front.
func cutPod(b []byte) (volume.PodUID, []byte) {
	if b[0] == asDigits {
		const size = (podLength - len(podHyphens)) / 2
		return volume.PodUID(withHyphens(b[1 : 1+size])), b[1+size:]
	}
	text, rest := cutText(b[1:])
	return volume.PodUID(text), rest
}

func withHyphens(b []byte) string {
	var all [podLength]byte
	digits := hex.AppendEncode(all[:0], b)
	for _, at := range podHyphens {
		digits = append(digits, 0)
		copy(digits[at+1:], digits[at:])
		digits[at] = '-'
	}
	return string(digits)
}

// appendDigits appends the bytes that an even number of digits stand for, if they
// are hexadecimal ones and lower case. The package encoding/hex takes both cases.
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

// nibbles has what each digit stands for, and noDigit for what is none.
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

// appendSeconds appends a time of whole seconds after 1970. Others become the zero time.
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
