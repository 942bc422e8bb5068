package lifespan

import (
	"encoding/binary"
	"encoding/hex"
	"strings"

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
	digits, ok := strings.CutPrefix(string(id), idPrefix)
	if ok && len(digits) == idDigits && isLowerHex(digits) {
		return appendHex(append(b, asDigits), digits)
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
	if digits, ok := withoutHyphens(string(pod)); ok {
		return appendHex(append(b, asDigits), digits)
	}
	return appendText(append(b, asText), string(pod))
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

// withoutHyphens returns the digits of a UUID in its usual form.
func withoutHyphens(pod string) (digits string, ok bool) {
	if len(pod) != podLength {
		return "", false
	}
	var all [podLength]byte
	kept := all[:0]
	start := 0
	for _, at := range podHyphens {
		if pod[at] != '-' {
			return "", false
		}
		kept = append(kept, pod[start:at]...)
		start = at + 1
	}
	digits = string(append(kept, pod[start:]...))
	return digits, isLowerHex(digits)
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

func isLowerHex(s string) bool {
	for _, c := range []byte(s) {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}

// appendHex appends the bytes that digits stand for, which have to be hexadecimal
// ones.
func appendHex(b []byte, digits string) []byte {
	b, err := hex.AppendDecode(b, []byte(digits))
	if err != nil {
		panic(err)
	}
	return b
}

func appendText(b []byte, text string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(text))), text...)
}

func cutText(b []byte) (text string, rest []byte) {
	length, size := binary.Uvarint(b)
	b = b[size:]
	return string(b[:length]), b[length:]
}
