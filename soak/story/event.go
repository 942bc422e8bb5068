package story

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Verb is what happened.
type Verb string

// What an eye tells. Words in the past tense are answers and sights; the others come before a call that
// may change the volume.
const (
	Publish   Verb = "publish"   // about to be asked for
	Published Verb = "published" // answered; N of its markers are there
	Wrote     Verb = "wrote"     // N markers are synced
	Unpublish Verb = "unpublish" // about to be asked for; Lifespan is the daemon's
	Retained  Verb = "retained"  // the unpublish was answered
	Forget    Verb = "forget"    // the pod directory goes without an unpublish; noticed at Until at the latest

	Cut   Verb = "cut"   // the power was, before this
	Ready Verb = "ready" // the daemon is

	Whole   Verb = "whole"   // all markers are there
	Partial Verb = "partial" // some are not, see Text
	Gone    Verb = "gone"    // there is no data directory
	Failed  Verb = "failed"  // an answer or a sight that should not be, see Text
	Ended   Verb = "end"     // nothing looks any more
)

// Event is something that happened to a volume, or was seen of it.
type Event struct {
	At time.Time
	// Until is when a look was over that began at At.
	Until time.Time
	// Volume is its name, for the eye alone.
	Volume string
	What   Verb
	// N counts markers.
	N int
	// Lifespan is what an unpublish at that time gives.
	Lifespan time.Duration
	Text     string
}

// String is the event as a line, without its end.
func (e Event) String() string {
	line := fmt.Sprintf("%d.%09d %s %s", e.At.Unix(), e.At.Nanosecond(), orDash(e.Volume), e.What)
	switch e.What {
	case Published, Wrote:
		line += " " + strconv.Itoa(e.N)
	case Unpublish, Retained, Forget:
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
