package workload

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math"
	"math/rand/v2"
	"time"
)

// stream is a source of random numbers of its own for each purpose and, for
// example, pod and volume: how many numbers one decision draws then does not
// change another.
func (p Plan) stream(purpose string, numbers ...uint64) *rand.Rand {
	name := binary.LittleEndian.AppendUint64(nil, p.seed)
	for _, n := range numbers {
		name = binary.LittleEndian.AppendUint64(name, n)
	}
	return rand.New(rand.NewChaCha8(sha256.Sum256(append(name, purpose...))))
}

// The functions below draw exactly one number each, which those of package rand
// do not promise. Where several decisions share a stream, another limit or
// share then leaves the following ones as they were.

// chance is true with the given share.
func chance(r *rand.Rand, share float64) bool { return r.Float64() < share }

// between draws a whole number from low to high, both included.
func between(r *rand.Rand, low, high int64) int64 {
	return min(low+int64(r.Float64()*float64(high-low+1)), high)
}

// upTo draws a duration from a nanosecond to limit.
func upTo(r *rand.Rand, limit time.Duration) time.Duration {
	return time.Duration(between(r, 1, int64(limit)))
}

// exponential draws from the exponential distribution with the mean 1.
func exponential(r *rand.Rand) float64 { return -math.Log1p(-r.Float64()) }

// toDuration keeps what a distribution draws at its far end from overflowing.
func toDuration(nanoseconds float64) time.Duration {
	if nanoseconds >= math.MaxInt64 {
		return math.MaxInt64
	}
	return time.Duration(nanoseconds)
}

// newUID draws a random UUID, version 4, as the API server gives to pods.
func newUID(r *rand.Rand) string {
	var b [16]byte
	binary.LittleEndian.PutUint64(b[:], r.Uint64())
	binary.LittleEndian.PutUint64(b[8:], r.Uint64())
	b[6] = b[6]&0x0f | 0x40
	b[8] = b[8]&0x3f | 0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// volumeID names a volume as the kubelet does: the same volume of the same pod
// always gets the same ID (kubernetes pkg/volume/csi/csi_mounter.go, makeVolumeHandle).
func volumeID(name, uid string) string {
	sum := sha256.Sum256([]byte(uid + name))
	return "csi-" + hex.EncodeToString(sum[:])
}
