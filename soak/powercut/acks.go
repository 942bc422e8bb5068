package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/katbox/katbox/soak/story"
)

// note is an ack for people.
const note story.Verb = "note"

// parseAcks reads what run printed. The cut may have gone through the last
// line: without its end it does not count, as run begins nothing before a line is
// out.
func parseAcks(text string) ([]story.Event, error) {
	var events []story.Event
	for i, line := range strings.SplitAfter(text, "\n") {
		if !strings.HasSuffix(line, "\n") {
			break
		}
		e, err := parseAck(strings.TrimSuffix(line, "\n"))
		if err != nil {
			return nil, fmt.Errorf("line %d of the acks: %w", i+1, err)
		}
		events = append(events, e)
	}
	return events, nil
}

// byNewClock gives the acks the times of the wall clock after the boot, if that shows less than before: a machine whose
// clock ran ahead gets the right time when it boots. No deadline moves with it, so all acks are moved back, until none
// is later than the boot.
func byNewClock(acks []story.Event, booted time.Time) {
	var back time.Duration
	for _, e := range acks {
		back = max(back, e.At.Sub(booted))
	}
	for i := range acks {
		acks[i].At, acks[i].Until = acks[i].At.Add(-back), acks[i].Until.Add(-back)
	}
}

func parseAck(line string) (story.Event, error) {
	fields := strings.SplitN(line, " ", 4)
	if len(fields) < 3 {
		return story.Event{}, fmt.Errorf("%q is no ack", line)
	}
	at, err := parseTime(fields[0])
	if err != nil {
		return story.Event{}, fmt.Errorf("%q is no ack: %w", line, err)
	}
	e := story.Event{At: at, Until: at, Volume: fields[1], What: story.Verb(fields[2])}
	if e.Volume == "-" {
		e.Volume = ""
	}
	rest := ""
	if len(fields) == 4 {
		rest = fields[3]
	}
	value, text, _ := strings.Cut(rest, " ")
	switch e.What {
	case story.Published, story.Wrote, story.Create, story.Created, story.Grow, story.Grown:
		e.Text = text
		e.N, err = strconv.Atoi(value)
	case story.Unpublish, story.Retained, story.Detach, story.LetGo, story.Decide:
		e.Text = text
		e.Lifespan, err = time.ParseDuration(value)
	case story.Failed, story.Attach, story.Decided, note:
		e.Text = rest
	case story.Publish, story.Gone, story.Attached, story.Detached, story.Refused, story.Delete, story.Deleted:
	default:
		err = fmt.Errorf("%q is not printed", e.What)
	}
	if err != nil {
		return story.Event{}, fmt.Errorf("%q is no ack: %w", line, err)
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
