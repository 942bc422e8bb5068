package volume

import (
	"fmt"
	"time"
)

// Archive says after which outcomes a copy of the volume goes to the archive. Its number is part of the record format; a
// higher one archives more.
type Archive uint8

const (
	// ArchiveNever archives nothing.
	ArchiveNever Archive = iota
	// ArchiveOnFailure archives it unless the pod Succeeded.
	ArchiveOnFailure
	// ArchiveAlways archives it whatever the outcome is.
	ArchiveAlways
)

// String returns the word that a pod's attribute has for it.
func (a Archive) String() string {
	if a <= ArchiveAlways {
		return [...]string{"Never", "OnFailure", "Always"}[a]
	}
	return fmt.Sprintf("Archive(%d)", uint8(a))
}

// ParseArchive returns the Archive with that word.
func ParseArchive(word string) (Archive, bool) {
	for a := ArchiveNever; a <= ArchiveAlways; a++ {
		if a.String() == word {
			return a, true
		}
	}
	return ArchiveNever, false
}

// outcomeWait is how long after its unpublish a volume waits for an outcome that is not known: it decides what is archived, and the
// archive says it for good. It usually comes within seconds.
const outcomeWait = time.Minute

// endWait is how long after they were kept the logs of a pod wait for how it has ended, which comes moments after its outcome.
const endWait = 10 * time.Second

// Archived reports whether the archive had a copy when that was last known.
func (r *Record) Archived() bool { return !r.ArchivedUntil.IsZero() }

// ToArchive reports whether a volume is to be archived once it is retained, by what is known of it.
func (r *Record) ToArchive() bool { return r.WantsArchive() && r.Owner.Verdict == Confirmed }

// WantsArchive reports whether a volume is to be archived, if only a gateway confirms whose it is. One that a person has released is
// not wanted any more.
func (r *Record) WantsArchive() bool {
	return r.Terms.Archive.wants(r.Outcome) && !r.Archived() && r.Attach == (Place{}) && r.Hold.Kind != Released
}

func (a Archive) wants(o Outcome) bool {
	return a == ArchiveAlways || a == ArchiveOnFailure && o != Succeeded
}

// ArchiveAfter is how long after its unpublish a volume is archived at the earliest.
func (r *Record) ArchiveAfter() time.Duration {
	if r.Outcome == OutcomeUnknown {
		return outcomeWait
	}
	if r.IsLogs() {
		return endWait
	}
	return 0
}

// ArchiveRank orders the volumes that are to be archived: those of failures come first, those of successes last.
func (r *Record) ArchiveRank() int {
	switch r.Outcome {
	case Failed:
		return 0
	case Succeeded:
		return 2
	}
	return 1
}

// InArchive returns the record of a volume that the archive has a copy of until then, which is kept in whole hours. Its seal
// has done its duty.
func (r Record) InArchive(until time.Time) Record {
	r.ArchivedUntil = time.Unix(until.Unix()/3600*3600, 0)
	r.Owner.Seal = ""
	return r
}

// Waiting is what waits to be archived on a node.
type Waiting struct {
	// Next is the volume that is archived next, and Rank its [Record.ArchiveRank]; empty if none can be now. Later is after how long
	// one can be; zero if there is none that waits for its time.
	Next  ID
	Rank  int
	Later time.Duration
	// Volumes is how many there are, Bytes what they take as far as that is known. Oldest and Newest are when they were
	// retained; both are zero without volumes.
	Volumes        int
	Bytes          int64
	Oldest, Newest time.Time
	// Unanswered and Denied are how many others are not archived because no gateway has said whose they are, or because the API server
	// knew no such pod.
	Unanswered, Denied int
}

// With returns what waits here and among older volumes.
func (w Waiting) With(older Waiting) Waiting {
	w.Unanswered, w.Denied = w.Unanswered+older.Unanswered, w.Denied+older.Denied
	if older.Next != "" && (w.Next == "" || older.Rank < w.Rank) {
		w.Next, w.Rank = older.Next, older.Rank
	}
	if w.Later == 0 || older.Later > 0 && older.Later < w.Later {
		w.Later = older.Later
	}
	if older.Volumes == 0 {
		return w
	}
	if w.Volumes == 0 {
		w.Newest = older.Newest
	}
	w.Volumes, w.Bytes, w.Oldest = w.Volumes+older.Volumes, w.Bytes+older.Bytes, older.Oldest
	return w
}
