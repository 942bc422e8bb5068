package main

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// point is what was measured at a spot.
type point struct {
	spot
	Katbox measured `json:"katbox"`
	Floor  measured `json:"floor"`
	// Bind is a floor that records nothing, in turns with the two.
	Bind measured `json:"bind"`
	// Empty is another Katbox, in turns with the two, with nothing held or retained, now
	// or before.
	// It is nil where the first has nothing either.
	Empty *measured `json:"empty,omitempty"`
	// Logs is another Katbox, in turns with the first, that keeps what containers print. It is
	// nil at other spots.
	Logs *measured `json:"logs,omitempty"`
	// Lists is nil where nothing is retained.
	Lists *lists `json:"lists,omitempty"`
}

// measured is what one server did and used there.
type measured struct {
	Rounds []round `json:"rounds"`
	// Median has the median of each number, by itself.
	Median round `json:"median"`
	// Memory and threads are those after the rounds, in bytes.
	RSSBytes       int64 `json:"rssBytes"`
	AnonymousBytes int64 `json:"anonymousBytes"`
	Threads        int   `json:"threads"`
	// IdlePercent is the share of a core that it used without calls.
	IdlePercent float64 `json:"idlePercent"`
	// Busy says that it still had work of its own when its rounds began, and
	// Restless that it had some all the time without calls.
	Busy     bool `json:"busy,omitempty"`
	Restless bool `json:"restless,omitempty"`
	// ReadyMillis is how long its starts took, with what was retained and held.
	ReadyMillis []float64 `json:"readyMillis"`
}

// measure measures at one spot.
func (s *environment) measure(ctx context.Context, at spot) (p point, err error) {
	p.spot = at
	katbox, err := s.newKatbox()
	if err != nil {
		return p, err
	}
	floor, err := s.newFloor()
	if err != nil {
		return p, err
	}
	began := time.Now()
	if err := s.retain(katbox, floor, at.Retained); err != nil {
		return p, err
	}
	if err := s.pass(katbox, at.Peak); err != nil {
		return p, err
	}
	if at.Retained > 0 {
		s.say("prepared %d retained volumes in %s", at.Retained, time.Since(began).Round(100*time.Millisecond))
	}
	bare, err := s.newBind()
	if err != nil {
		return p, err
	}
	pair := []*server{katbox, floor, bare}
	turns := []taker{{katbox, &p.Katbox}, {floor, &p.Floor}, {bare, &p.Bind}}
	defer func() {
		for _, t := range turns {
			err = errors.Join(err, t.stop())
		}
	}()
	for _, other := range []struct {
		wanted  bool
		newOne  func() (*server, error)
		results **measured
	}{{at.Held > 0 || at.Retained > 0 || at.Peak > 0, s.newKatbox, &p.Empty}, {at.Printing, s.newLogging, &p.Logs}} {
		if !other.wanted {
			continue
		}
		one, err := other.newOne()
		if err != nil {
			return p, err
		}
		*other.results = &measured{}
		turns = append(turns, taker{one, *other.results})
		if err := starts(ctx, one, 1, *other.results); err != nil {
			return p, err
		}
	}
	for _, f := range turns[1:3] {
		if err := starts(ctx, f.server, 1, f.result); err != nil {
			return p, err
		}
	}
	times := 1
	if at.Retained > 0 {
		times = s.options.rounds
	}
	if err := starts(ctx, katbox, times, &p.Katbox); err != nil {
		return p, err
	}
	for i, result := range []*measured{&p.Katbox, &p.Floor, &p.Bind} {
		if err := pair[i].hold(ctx, at.Callers, at.Held); err != nil {
			return p, err
		}
		rested, err := pair[i].rest(ctx, s.options.settle)
		if err != nil {
			return p, err
		}
		result.Busy = !rested
	}
	stopWriting := func() error { return nil }
	if at.Writing {
		stopWriting = s.writeWithoutEnd()
	}
	if err := errors.Join(s.takeTurns(ctx, turns, at.Callers), stopWriting()); err != nil {
		return p, err
	}
	s.say("%d callers, %d held, %d retained, %d before: %.0f calls/s and %.0f µs of CPU each, "+
		"the floor %.0f and %.0f, without records %.0f and %.0f",
		p.Callers, p.Held, p.Retained, p.Peak, p.Katbox.Median.CallsPerSecond, p.Katbox.Median.CPUMicrosPerCall,
		p.Floor.Median.CallsPerSecond, p.Floor.Median.CPUMicrosPerCall, p.Bind.Median.CallsPerSecond, p.Bind.Median.CPUMicrosPerCall)
	if at.Retained > 0 {
		if p.Lists, err = s.measureLists(ctx, katbox, at); err != nil {
			return p, fmt.Errorf("lists: %w", err)
		}
	}
	return p, s.atRest(ctx, pair, &p)
}

// taker is a server that takes turns with others, and where its rounds are noted.
type taker struct {
	*server
	result *measured
}

// starts starts a server so many times, and leaves it running.
func starts(ctx context.Context, v *server, times int, result *measured) error {
	for i := range times {
		if i > 0 {
			if err := v.stop(); err != nil {
				return err
			}
		}
		took, err := v.start(ctx)
		if err != nil {
			return err
		}
		result.ReadyMillis = append(result.ReadyMillis, millis(took))
	}
	return nil
}

// takeTurns has all do their rounds: another one goes first each time, so that what
// changes with time does the same to all.
func (s *environment) takeTurns(ctx context.Context, turns []taker, callers int) error {
	sizes := make([]int, len(turns))
	for i, t := range turns {
		// It warms up, and tells how much is enough.
		warm, err := t.round(ctx, callers, 8*callers)
		if err != nil {
			return err
		}
		sizes[i] = volumesFor(warm, callers, s.options.round)
	}
	for n := range s.options.rounds {
		for turn := range turns {
			i := (turn + n) % len(turns)
			r, err := turns[i].round(ctx, callers, sizes[i])
			if err != nil {
				return err
			}
			turns[i].result.Rounds = append(turns[i].result.Rounds, r)
		}
	}
	for _, t := range turns {
		t.result.Median = medianRound(t.result.Rounds)
	}
	return nil
}

// volumesFor is how many volumes fill a round, by the speed of another one.
func volumesFor(warm round, callers int, length time.Duration) int {
	const callsEach = 2
	wanted := int(warm.CallsPerSecond * length.Seconds() / callsEach)
	return min(max(wanted, 4*callers), mostVolumes)
}

// atRest measures what both use without calls: at the same time, as nothing else
// goes on.
func (s *environment) atRest(ctx context.Context, pair []*server, p *point) error {
	results := []*measured{&p.Katbox, &p.Floor, &p.Bind}
	before := make([]time.Duration, len(pair))
	for i, v := range pair {
		if u, ok := v.driver.Usage(); ok {
			results[i].RSSBytes, results[i].AnonymousBytes, results[i].Threads = u.RSS, u.Anonymous, u.Threads
		}
		limit := s.options.settle
		if results[i].Busy {
			limit = 0 // it was waited for already
		}
		rested, err := v.rest(ctx, limit)
		if err != nil {
			return err
		}
		results[i].Restless = !rested
	}
	began := time.Now()
	for i, v := range pair {
		var err error
		if before[i], err = v.cpu(); err != nil {
			return err
		}
	}
	if _, err := pair[0].share(ctx, s.options.idle); err != nil {
		return err
	}
	for i, v := range pair {
		after, err := v.cpu()
		if err != nil {
			return err
		}
		results[i].IdlePercent = 100 * (after - before[i]).Seconds() / time.Since(began).Seconds()
	}
	return nil
}
