package retained

import (
	"encoding/binary"
	"encoding/hex"
	"strings"
	"time"

	"github.com/katbox/katbox/internal/model/volume"
)

// The volume IDs and pod UIDs of a kubelet are hexadecimal digits. The bytes that they stand for
// take half the memory. Other names are kept as they are.

// The first byte of a name's short form says which form it is.
const (
	asText = iota
	asDigits
	// asDerived: nothing follows, because the ID is what a kubelet makes of the pod and the volume's
	// name; see [volume.KubeletID].
	asDerived
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

// isDerived reports whether a kubelet has made the ID in its usual way.
func isDerived(id volume.ID, pod volume.PodUID, volumeName string) bool {
	digits, ok := strings.CutPrefix(string(id), idPrefix)
	if !ok || len(digits) != idDigits {
		return false
	}
	sum := volume.KubeletSum(pod, volumeName)
	var made [idDigits]byte
	hex.Encode(made[:], sum[:])
	return digits == string(made[:])
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

// skipID skips an ID, in whatever form.
func skipID(b []byte) []byte {
	switch b[0] {
	case asDerived:
		return b[1:]
	case asDigits:
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
		return volume.PodUID(uuid(b[1 : 1+podBytes])), b[1+podBytes:]
	}
	text, rest := cutText(b[1:])
	return volume.PodUID(text), rest
}

func uuid(digits []byte) string {
	t := hex.EncodeToString(digits)
	return t[:8] + "-" + t[8:12] + "-" + t[12:16] + "-" + t[16:20] + "-" + t[20:]
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
	view, rest := viewText(b)
	return string(view), rest
}

// viewText is cutText without a copy.
func viewText(b []byte) (text, rest []byte) {
	length, size := binary.Uvarint(b)
	b = b[size:]
	return b[:length], b[length:]
}

func skipText(b []byte) []byte {
	length, size := binary.Uvarint(b)
	return b[uint64(size)+length:]
}

// appendSeconds appends a time of whole seconds after 1970, as what it is before since. Others come
// back as the zero time.
func appendSeconds(b []byte, t, since time.Time) []byte {
	if t.Unix() <= 0 {
		return append(b, 0)
	}
	before := since.Unix() - t.Unix()
	return binary.AppendUvarint(b, 1+uint64(before<<1^before>>63))
}

func cutSeconds(b []byte, since time.Time) (t time.Time, rest []byte) {
	zigzag, size := binary.Uvarint(b)
	if zigzag > 0 {
		zigzag--
		t = time.Unix(since.Unix()-(int64(zigzag>>1)^-int64(zigzag&1)), 0)
	}
	return t, b[size:]
}
