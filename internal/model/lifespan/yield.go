package lifespan

import "github.com/katbox/katbox/internal/model/volume"

const (
	// fewDeletions is how many volumes go before it is judged whether that makes room, and one part in
	// batchPart of those that are retained is how many may be on their way at first, where that is more.
	fewDeletions, batchPart = 3, 8
	// leastYield is the part of what was promised that has to come: a volume may be compressed or
	// partly in use, and pods write meanwhile.
	leastYield = 16
	// judgeable is the least promise that is judged. Below it others write more than comes free.
	judgeableBytes, judgeableInodes = 256 << 10, 16
)

// Verdict says whether deletions make the room that they promise.
type Verdict uint8

const (
	// NoVerdict: too little was deleted to tell.
	NoVerdict Verdict = iota
	// MakesRoom: they do, at least in part.
	MakesRoom
	// MakesNone: they do not. A process has the files open, or something else shares their extents.
	MakesNone
)

// Yield compares the room that volumes promise which go early with the room that comes.
type Yield struct {
	// Volumes are erased, promised Promised by their sizes, and Came came while they went.
	Volumes        int
	Promised, Came volume.Size
	// unknown are those of them whose size is not known.
	unknown int
}

// Shown notes that a measurement shows what a volume took. The zero Size is one that is not known.
func (y *Yield) Shown(size volume.Size) {
	y.Volumes++
	if size.Inodes == 0 {
		y.unknown++
	}
	y.Promised = y.Promised.Add(size)
}

// came notes what came free while those were on their way that go early. What is more than all of them promise is of
// others, and says nothing about volumes that begin later.
func (y *Yield) came(room volume.Size, early sum) {
	y.Came = y.Came.Add(room)
	if y.unknown+early.unknown == 0 {
		most := y.Promised.Add(early.size)
		y.Came = volume.Size{Bytes: min(y.Came.Bytes, most.Bytes), Inodes: min(y.Came.Inodes, most.Inodes)}
	}
}

// enough reports whether enough came for what is lacking. known is false where the promise is too small to
// be judged by. Volumes whose size is not known may have been small: less has to come of each, and yet more than of the
// directory of one whose files stay.
func (y *Yield) enough(lacking volume.Size) (enough, known bool) {
	promised, came, lacks, least := y.Promised.Bytes, y.Came.Bytes, lacking.Bytes, int64(judgeableBytes)
	if lacking.Bytes == 0 && lacking.Inodes > 0 {
		promised, came, lacks, least = y.Promised.Inodes, y.Came.Inodes, lacking.Inodes, judgeableInodes
	}
	wanted := promised
	if lacks > 0 {
		wanted, promised = min(promised+int64(y.unknown)*least/2, lacks), min(promised+int64(y.unknown)*least, lacks)
	}
	return came >= wanted/leastYield, promised >= least
}

// Judge returns whether deletions make room, where so much is lacking. It begins anew with each verdict. after is how many
// deletions are enough for a bad one.
func (y *Yield) Judge(lacking volume.Size, after int) Verdict {
	enough, known := y.enough(lacking)
	switch {
	case y.Volumes == 0 || !known:
		return NoVerdict
	case enough:
		// What came beyond that is of those that the next measurement shows.
		*y = Yield{Came: volume.Size{Bytes: max(y.Came.Bytes-y.Promised.Bytes, 0), Inodes: max(y.Came.Inodes-y.Promised.Inodes, 0)}}
		return MakesRoom
	case y.Volumes < after:
		return NoVerdict
	}
	return MakesNone
}
