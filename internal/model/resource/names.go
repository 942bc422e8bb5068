package resource

import (
	"cmp"
	"crypto/sha256"
	"encoding/base32"
	"encoding/binary"
	"fmt"
	"strings"

	"github.com/katbox/katbox/internal/model/api"
	"github.com/katbox/katbox/internal/model/volume"
)

const (
	// maxPodName is how much of the pod's name is in the name of a volume, so that the whole has at most
	// 253 bytes.
	maxPodName = 240
	// nodeDigits and idDigits are how many digits of base 32 follow.
	nodeDigits = 4
	idDigits   = 8
	// unknownPod stands for the name of a pod that is not known.
	unknownPod = "unknown"
)

// digits are the digits of base 32 that people hardly confuse: without i, l, o and u.
var digits = base32.NewEncoding("0123456789abcdefghjkmnpqrstvwxyz").WithPadding(base32.NoPadding)

// Name returns the name of a volume. A claim's name stands for that of a pod.
func Name(v api.Volume) string {
	pod := volume.ObjectName(cmp.Or(v.Pod, v.Claim))
	if pod == "" {
		pod = unknownPod
	}
	return pod[:min(len(pod), maxPodName)] + "." + format(uint64(NodeHash(v.Node)), nodeDigits) + format(IDHash(v.ID), idDigits)
}

// NodeHash returns the first 20 bits of the hash of a node's name.
func NodeHash(node string) uint32 { return uint32(hash(node) >> (64 - 5*nodeDigits)) }

// IDHash returns the first 40 bits of the hash of a volume's ID.
func IDHash(id string) uint64 { return hash(id) >> (64 - 5*idDigits) }

// ParseName takes the name of a volume apart. The pod's name begins with podPrefix. It is podPrefix
// if exact is true. podPrefix is empty if the pod may not be known.
func ParseName(name string) (podPrefix string, exact bool, nodeHash uint32, idHash uint64, err error) {
	dot := strings.LastIndexByte(name, '.')
	pod, rest := name[:max(dot, 0)], name[dot+1:]
	node, ok := parse(rest[:min(len(rest), nodeDigits)], nodeDigits)
	id, ok2 := parse(rest[min(len(rest), nodeDigits):], idDigits)
	if !ok || !ok2 || len(pod) > maxPodName || volume.ObjectName(pod) == "" {
		return "", false, 0, 0, fmt.Errorf(
			"%q is not the name of a retained volume: that is the name of a pod or a claim, a dot, and %d digits and letters", name,
			nodeDigits+idDigits)
	}
	if pod == unknownPod {
		return "", false, uint32(node), id, nil
	}
	return pod, len(pod) < maxPodName, uint32(node), id, nil
}

// hash returns the first 64 bits of the hash of a text.
func hash(text string) uint64 {
	sum := sha256.Sum256([]byte(text))
	return binary.BigEndian.Uint64(sum[:])
}

// format returns the last n digits of a number.
func format(number uint64, n int) string {
	var bits [8]byte
	binary.BigEndian.PutUint64(bits[:], number<<(64-5*n))
	return digits.EncodeToString(bits[:])[:n]
}

// parse reads a number of n digits.
func parse(text string, n int) (number uint64, ok bool) {
	if len(text) != n {
		return 0, false
	}
	for _, c := range []byte(text) {
		digit := strings.IndexByte("0123456789abcdefghjkmnpqrstvwxyz", c)
		if digit < 0 {
			return 0, false
		}
		number = number<<5 | uint64(digit)
	}
	return number, true
}
