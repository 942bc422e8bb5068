package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// verb is what happened.
type verb string

// What run prints. The promises begin with the words in the past; the others
// come before a step that may end one.
const (
	publish   verb = "publish"   // about to be asked for
	published verb = "published" // n of its markers are there
	wrote     verb = "wrote"     // n markers are synced
	unpublish verb = "unpublish" // about to be asked for; the lifespan is the daemon's
	retained  verb = "retained"  // the unpublish was answered
	gone      verb = "gone"      // there is no data directory
	failed    verb = "failed"    // an answer or a sight that should not be, see text
	note      verb = "note"      // for people
	locally   verb = "local"     // something of a local volume, as JSON in text
)

// What only check sees or does.
const (
	cut     verb = "cut"     // the power was, before this
	ready   verb = "ready"   // the daemon is
	whole   verb = "whole"   // all markers are there
	partial verb = "partial" // some are not, see text
	forget  verb = "forget"  // the pod directory goes without an unpublish
	ended   verb = "end"     // nobody looks any more
)

// event is something that happened to a volume, or was seen of it.
type event struct {
	at time.Time
	// until is when a look was over that began at at.
	until  time.Time
	volume string
	what   verb
	// n counts markers.
	n int
	// lifespan is what an unpublish at that time gives.
	lifespan time.Duration
	text     string
}

// String is the event as a line, without its end.
func (e event) String() string {
	line := fmt.Sprintf("%d.%09d %s %s", e.at.Unix(), e.at.Nanosecond(), orDash(e.volume), e.what)
	switch e.what {
	case published, wrote:
		line += " " + strconv.Itoa(e.n)
	case unpublish, retained, forget:
		line += " " + e.lifespan.String()
	}
	if e.text != "" {
		line += " " + strings.ReplaceAll(e.text, "\n", "; ")
	}
	return line
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// parseEvents reads what run printed. The cut may have gone through the last
// line: without its end it does not count, as run begins nothing before a line is
// out.
func parseEvents(text string) ([]event, error) {
	var events []event
	for i, line := range strings.SplitAfter(text, "\n") {
		if !strings.HasSuffix(line, "\n") {
			break
		}
		e, err := parseEvent(strings.TrimSuffix(line, "\n"))
		if err != nil {
			return nil, fmt.Errorf("line %d of the acks: %w", i+1, err)
		}
		events = append(events, e)
	}
	return events, nil
}

func parseEvent(line string) (event, error) {
	fields := strings.SplitN(line, " ", 4)
	if len(fields) < 3 {
		return event{}, fmt.Errorf("%q is no ack", line)
	}
	at, err := parseTime(fields[0])
	if err != nil {
		return event{}, fmt.Errorf("%q is no ack: %w", line, err)
	}
	e := event{at: at, until: at, volume: fields[1], what: verb(fields[2])}
	if e.volume == "-" {
		e.volume = ""
	}
	rest := ""
	if len(fields) == 4 {
		rest = fields[3]
	}
	switch e.what {
	case published, wrote:
		e.n, err = strconv.Atoi(rest)
	case unpublish, retained:
		e.lifespan, err = time.ParseDuration(rest)
	case failed, note, locally:
		e.text = rest
	case publish, gone:
	default:
		err = fmt.Errorf("nobody prints %q", e.what)
	}
	if err != nil {
		return event{}, fmt.Errorf("%q is no ack: %w", line, err)
	}
	return e, nil
}

func parseTime(text string) (time.Time, error) {
	seconds, nanos, _ := strings.Cut(text, ".")
	s, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil {
		return time.Time{}, err
	}
	ns, err := strconv.ParseInt(nanos, 10, 64)
	if err != nil {
		return time.Time{}, err
	}
	return time.Unix(s, ns), nil
}
