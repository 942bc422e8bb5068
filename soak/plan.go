package main

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"time"
)

// The bounds of what the seed decides.
const (
	longestLife      = 50 * time.Millisecond
	latestCancel     = 5 * time.Millisecond
	longestKillDelay = 20 * time.Millisecond
)

// plan decides everything random of a run. It is a pure function of the options:
// each pod has a stream of random numbers of its own, so that its decisions do
// not depend on which pod came first.
type plan struct {
	options options
}

// podPlan is what one pod will do.
type podPlan struct {
	index   int
	uid     string
	life    time.Duration
	volumes []volumePlan
}

// volumePlan is what one volume of a pod will go through.
type volumePlan struct {
	name      string
	id        string
	readOnly  bool
	marker    string
	publish   callPlan
	unpublish callPlan
}

// callPlan is how the client treats one call.
type callPlan struct {
	repeat repeat
	// cancel says that the first try is given up after cancelAfter.
	cancel      bool
	cancelAfter time.Duration
}

// repeat says how often a call is sent.
type repeat int

const (
	once repeat = iota
	twiceTogether
	twiceInTurn
)

// killPlan is when the daemon gets killed: so long after so many pods are over.
type killPlan struct {
	pods  int
	delay time.Duration
}

// killStream is the stream of random numbers for the kills; pods have those
// from 1 on.
const killStream = 0

func (p plan) stream(n uint64) *rand.Rand {
	var key [32]byte
	binary.LittleEndian.PutUint64(key[:], p.options.seed)
	binary.LittleEndian.PutUint64(key[8:], n)
	return rand.New(rand.NewChaCha8(key))
}

// pod decides about the pod with the given index, from 0 on.
func (p plan) pod(index int) podPlan {
	r := p.stream(uint64(index) + 1)
	pod := podPlan{index: index, uid: newUID(r), life: upTo(r, longestLife)}
	for i := range p.options.volumes {
		name := fmt.Sprintf("data-%d", i)
		pod.volumes = append(pod.volumes, volumePlan{
			name:      name,
			id:        volumeID(name, pod.uid),
			readOnly:  r.Float64() < p.options.readOnly,
			marker:    fmt.Sprintf("%016x", r.Uint64()),
			publish:   p.call(r),
			unpublish: p.call(r),
		})
	}
	return pod
}

func (p plan) call(r *rand.Rand) callPlan {
	// Each number is drawn whether it is needed or not: changing one share then
	// leaves all the other decisions as they were.
	repeated, together := r.Float64() < p.options.repeat, r.Float64() < 0.5
	c := callPlan{cancel: r.Float64() < p.options.cancel, cancelAfter: upTo(r, latestCancel)}
	switch {
	case repeated && together:
		c.repeat = twiceTogether
	case repeated:
		c.repeat = twiceInTurn
	}
	return c
}

// kills spreads the kills over the churn, each somewhere in its own part.
func (p plan) kills() []killPlan {
	r := p.stream(killStream)
	kills := make([]killPlan, 0, p.options.kills)
	for i := range p.options.kills {
		part := (float64(i) + r.Float64()) / float64(p.options.kills)
		kills = append(kills, killPlan{
			pods:  min(int(part*float64(p.options.pods)), p.options.pods-1),
			delay: upTo(r, longestKillDelay),
		})
	}
	return kills
}

// upTo draws a duration between 0 and limit.
func upTo(r *rand.Rand, limit time.Duration) time.Duration {
	return time.Duration(r.Int64N(int64(limit) + 1))
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
