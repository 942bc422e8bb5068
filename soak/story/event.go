package story

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Verb is what happened.
type Verb string

// Calls. The first of two comes before the call and says that from now on it may be carried out; the second one says
// that it was answered with success. Without the second one nothing is known.
const (
	Publish   Verb = "publish"
	Published Verb = "published" // N of its markers are there
	Refused   Verb = "refused"   // the publish, create or growth was, with an answer that says that all is as before
	Unpublish Verb = "unpublish" // Lifespan is what it gives; told more than once if it may give one of several
	Retained  Verb = "retained"
	Attach    Verb = "attach" // another pod asks to see it while it is retained
	Attached  Verb = "attached"
	Detach    Verb = "detach" // Lifespan is for how long it is kept after that at least
	Detached  Verb = "detached"
	Decide    Verb = "decide" // a person asks to hold it as Text says, and keep it for a Lifespan from now on at least, if that is given
	LetGo     Verb = "let-go" // a person asks to hold it as Text says, and to let it go a Lifespan from now
	Decided   Verb = "decided"

	// These are for a persistent volume or a snapshot. N is its size.
	Create  Verb = "create" // Text is what its data begins with
	Created Verb = "created"
	Grow    Verb = "grow"
	Grown   Verb = "grown"
	Delete  Verb = "delete"
	Deleted Verb = "deleted"
)

// What happens without a call.
const (
	Wrote     Verb = "wrote"      // N markers are synced
	Looks     Verb = "looks"      // it shows another volume's data, and has none of its own
	FoundLive Verb = "found live" // it is mounted for a pod, and the daemon has no record of it
	FoundKept Verb = "found"      // the daemon has no record of its data, and keeps that for a Lifespan from now on at least
	Forget    Verb = "forget"     // the pod directory goes without an unpublish; noticed at Until at the latest
	Pressed   Verb = "pressed"    // the disk is full: from now on it may go, if it is retained
	Hindered  Verb = "hindered"   // from At to Until, zero while it lasts, the daemon could not delete it; after that it needs a Lifespan

	Killed   Verb = "killed"   // the daemon was, before this
	Rebooted Verb = "rebooted" // the node was in good order: nothing is mounted any more
	Cut      Verb = "cut"      // the power was: nothing is mounted any more, and what was not synced is lost
	Ready    Verb = "ready"    // the daemon is
	Ended    Verb = "end"      // nothing looks any more
)

// Sights. A look began at At and was over at Until.
const (
	Whole   Verb = "whole"   // all markers are in the data directory
	Partial Verb = "partial" // some are not, see Text
	Empty   Verb = "empty"   // nothing is in the data directory, where there should be markers
	Gone    Verb = "gone"    // there is no data directory

	Shown   Verb = "shown"   // the target is mounted, and the pod sees what it should
	Wrong   Verb = "wrong"   // it is mounted, and the pod sees something else, see Text
	Missing Verb = "missing" // it is not mounted

	KnownLive  Verb = "record live"     // the record says that a pod may be using it
	KnownKept  Verb = "record retained" // ... that it is retained, and held as Text says
	KnownGoing Verb = "record deleting" // ... that it is being deleted
	Listed     Verb = "volume"          // a persistent volume or a snapshot is there, with N bytes and held as Text
	Unknown    Verb = "no record"

	Failed Verb = "failed" // an answer or a sight that should not be, see Text
)

// Event is something that happened to a volume, or was seen of it.
type Event struct {
	At time.Time
	// Until is when a look, or what lasted, was over that began at At.
	Until time.Time
	// Volume is its name, for the eye alone.
	Volume string
	What   Verb
	// N counts markers, or bytes.
	N        int
	Lifespan time.Duration
	Text     string
}

// String is the event as a line, without its end.
func (e Event) String() string {
	line := fmt.Sprintf("%d.%09d %s %s", e.At.Unix(), e.At.Nanosecond(), orDash(e.Volume), e.What)
	switch e.What {
	case Published, Wrote, Create, Created, Grow, Grown, Listed:
		line += " " + strconv.Itoa(e.N)
	case Unpublish, Retained, Forget, Detach, Decide, LetGo, FoundKept, Hindered:
		line += " " + e.Lifespan.String()
	}
	if e.Text != "" {
		line += " " + strings.ReplaceAll(e.Text, "\n", "; ")
	}
	return line
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}
