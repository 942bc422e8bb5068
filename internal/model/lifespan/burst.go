package lifespan

import (
	"time"

	"github.com/katbox/katbox/internal/model/volume"
)

const (
	// shortestLook and closestLook are the shortest times between two looks at a disk: one that is
	// nearly full, and one that is also being filled.
	shortestLook, closestLook = 100 * time.Millisecond, 10 * time.Millisecond
	// longestUnderPressure is the longest time between two looks while less is free than is wanted:
	// the kubelet looks every ten seconds and evicts pods at once.
	longestUnderPressure = time.Second
	// stride is the shortest time over which a speed is measured: a file that is written at once is no
	// pod that fills the disk.
	stride = time.Second
	// halving is the time in which a speed that is not reached any more is halved.
	halving = 2 * time.Second
)

// Burst says what pods may write before deletions make room. The zero Burst expects nothing.
type Burst struct {
	// Fastest is how much is written in a second at most, as far as nothing faster was seen: the looks
	// at a disk come so often that this reaches no mark between two of them.
	Fastest volume.Size
	// Reaction is how long it takes from a write until a deletion has made room for it: a look, the
	// records, and the erasure.
	Reaction time.Duration
}

// DefaultBurst is for real disks. One process writes 1 to 3 GB/s into the kernel's page cache. A
// deletion waits for a sync of records, which takes a second on a disk that is written to at its
// full speed.
var DefaultBurst = Burst{Fastest: volume.Size{Bytes: 2 << 30, Inodes: 200_000}, Reaction: 2 * time.Second}

// Soon returns how much is written before deletions make room, at a speed in a second.
func (b Burst) Soon(speed volume.Size) volume.Size {
	return volume.Size{Bytes: times(speed.Bytes, b.Reaction.Seconds()), Inodes: times(speed.Inodes, b.Reaction.Seconds())}
}

// Filling is how fast a file system fills. The zero Filling has seen nothing.
type Filling struct {
	// from is the look that the speed is measured from, at its time; last is when the last one was.
	from     volume.Size
	at, last time.Time
	speed    volume.Size
}

// Saw notes how much was free at a time, no earlier than all before.
func (f *Filling) Saw(at time.Time, free volume.Size) {
	if f.at.IsZero() {
		f.from, f.at, f.last = free, at, at
		return
	}
	took := max(at.Sub(f.at), stride).Seconds()
	left := halved(at.Sub(f.last))
	f.speed = volume.Size{
		Bytes:  max(times(f.speed.Bytes, left), times(f.from.Bytes-free.Bytes, 1/took)),
		Inodes: max(times(f.speed.Inodes, left), times(f.from.Inodes-free.Inodes, 1/took)),
	}
	f.last = at
	// What came free must not hide what is written after it.
	f.from = f.from.Max(free)
	if at.Sub(f.at) >= stride {
		f.from, f.at = free, at
	}
}

// Speed is how much was written in a second. Of what comes free at the same time it does not know.
// It falls slowly: a pod that has paused may go on.
func (f *Filling) Speed() volume.Size { return f.speed }

// NextLook returns how long a file system that was seen with so much free, and fills at a speed, need
// not be looked at: until the next mark is reached by what is written fastest, and longest at most.
func (l Limits) NextLook(is volume.Space, speed volume.Size, longest time.Duration) time.Duration {
	if l.Headroom == 0 {
		return longest
	}
	next := longest
	for _, v := range l.views(is) {
		bytes, inodes := v.marks(v.Space)
		next = min(next, bytes.nextLook(v.Free.Bytes, speed.Bytes, l.Burst.Fastest.Bytes),
			inodes.nextLook(v.Free.Inodes, speed.Inodes, l.Burst.Fastest.Inodes))
	}
	return next
}

// nextLook is [Limits.NextLook] of one resource.
func (m marks) nextLook(free, speed, fastest int64) time.Duration {
	wait := time.Duration(1<<63 - 1)
	if m.total == 0 {
		return wait
	}
	left := free
	switch {
	case free >= m.wanted:
		left -= m.wanted
	case free > m.floor:
		left -= m.floor
	}
	if free < m.wanted {
		wait = longestUnderPressure
	}
	switch {
	case fastest == 0 || free == 0:
	case speed > fastest/urgent: // it is being filled
		wait = min(wait, max(timeFor(left, 2*max(speed, fastest)), closestLook))
	default:
		wait = min(wait, max(timeFor(left, fastest), shortestLook))
	}
	return wait
}

// timeFor is how long an amount lasts at a speed in a second.
func timeFor(amount, speed int64) time.Duration {
	seconds := float64(amount) / float64(speed)
	if seconds > time.Hour.Seconds() {
		return time.Hour
	}
	return time.Duration(seconds * float64(time.Second))
}

// halved is what is left of a speed after a time.
func halved(after time.Duration) float64 {
	share := 1.0
	for ; after >= halving && share > 0; after -= halving {
		share /= 2
	}
	return share * (1 - after.Seconds()/halving.Seconds()/2)
}

func times(amount int64, factor float64) int64 {
	product := float64(max(amount, 0)) * factor
	if product >= 1<<62 {
		return 1 << 62
	}
	return int64(product)
}
