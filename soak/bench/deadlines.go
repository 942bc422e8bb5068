package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"github.com/katbox/katbox/soak/internal/pause"
	"github.com/katbox/katbox/soak/internal/quantile"
)

const (
	// pollInterval is the time between two checks whether something is gone.
	pollInterval = time.Millisecond
	// dueLifespan is that of volumes that fall due.
	dueLifespan = time.Hour
	// lead is how long before the first deadline the daemon is started, at least.
	// It has to be ready by then.
	lead = 2 * time.Second
	// goneLimit is how long after its deadline something may still be there.
	goneLimit = 10 * time.Minute
	// trashDir is where deleted volumes are until they are erased.
	trashDir = ".trash"
)

// lateness is how late deadlines were that fell due at an even rate, in
// milliseconds from the deadline until the directory was seen to be gone.
type lateness struct {
	PerSecond int     `json:"perSecond"`
	Deadlines int     `json:"deadlines"`
	P50       float64 `json:"p50Millis"`
	P99       float64 `json:"p99Millis"`
	Max       float64 `json:"maxMillis"`
	// WithinSecond is the share that was gone within a second.
	WithinSecond float64 `json:"withinSecond"`
}

// measureLateness has volumes fall due, and waits for each in turn. One that went
// before an earlier one counts from when it is looked at, so what is told is no
// less than the truth.
func (s *environment) measureLateness(ctx context.Context) (l lateness, err error) {
	l.PerSecond = s.options.due
	l.Deadlines = int(float64(s.options.due) * s.options.dueFor.Seconds())
	step := time.Second / time.Duration(s.options.due)
	katbox, deadline, err := s.falling(ctx, l.Deadlines, step)
	if err != nil {
		return l, err
	}
	defer func() { err = errors.Join(err, katbox.stop()) }()
	var late []time.Duration
	for i, n := range manyNamed("due", l.Deadlines) {
		due := deadline.Add(time.Duration(i) * step)
		gone, err := waitGone(ctx, filepath.Join(katbox.layout.Work, n.pod), due)
		if err != nil {
			return l, err
		}
		late = append(late, gone.Sub(due))
	}
	slices.Sort(late)
	within, _ := slices.BinarySearch(late, time.Second+1)
	l.P50, l.P99, l.Max = millis(quantile.Of(late, 0.5)), millis(quantile.Of(late, 0.99)), millis(quantile.Of(late, 1))
	l.WithinSecond = float64(within) / float64(len(late))
	s.say("%d deadlines, %d each second: late by %.0f ms at p99", l.Deadlines, l.PerSecond, l.P99)
	return l, nil
}

// falling starts a daemon with retained volumes of which the first falls due at
// the returned time, and each other one a step after the one before.
func (s *environment) falling(ctx context.Context, count int, step time.Duration) (*server, time.Time, error) {
	katbox, err := s.newKatbox()
	if err != nil {
		return nil, time.Time{}, err
	}
	list := manyNamed("due", count)
	if err := fill(katbox.layout.Work, list, false); err != nil {
		return nil, time.Time{}, err
	}
	// The wall clock tells the daemon how long ago it was, so the deadline is one
	// by that. Writing a record takes a few microseconds, and reading it again.
	deadline := time.Now().Add(lead + time.Duration(count)*50*time.Microsecond)
	retained := func(i int) time.Time { return deadline.Add(time.Duration(i)*step - dueLifespan) }
	if err := writeRecords(katbox.layout.Work, list, retained, dueLifespan); err != nil {
		return nil, time.Time{}, err
	}
	if _, err := katbox.start(ctx); err != nil {
		return nil, time.Time{}, err
	}
	if late := time.Since(deadline); late >= 0 {
		err := fmt.Errorf("the daemon was ready %s after the first deadline; the machine is too slow for this", late)
		return nil, time.Time{}, errors.Join(err, katbox.stop())
	}
	return katbox, deadline, nil
}

// waitGone waits until there is no such file, from a time on, and returns when
// that was seen.
func waitGone(ctx context.Context, path string, from time.Time) (time.Time, error) {
	if wait := time.Until(from); wait > 0 {
		if err := pause.For(ctx, wait); err != nil {
			return time.Time{}, err
		}
	}
	for {
		_, err := os.Lstat(path)
		now := time.Now()
		switch {
		case errors.Is(err, os.ErrNotExist):
			return now, nil
		case err != nil:
			return now, fmt.Errorf("look for a volume that falls due: %w", err)
		case now.Sub(from) > goneLimit:
			return now, fmt.Errorf("%s is still there %s after its deadline", path, goneLimit)
		}
		if err := pause.For(ctx, pollInterval); err != nil {
			return now, err
		}
	}
}

// burst is how long it took until volumes that fell due at once were gone, with
// the trash, and how long rm -rf took for as many directories.
type burst struct {
	Volumes     int       `json:"volumes"`
	GoneMillis  []float64 `json:"goneMillis"`
	RmMillis    []float64 `json:"rmMillis"`
	Gone        float64   `json:"medianGoneMillis"`
	Rm          float64   `json:"medianRmMillis"`
	TimesSlower float64   `json:"timesSlower"`
}

// measureBurst lets both take turns.
func (s *environment) measureBurst(ctx context.Context) (burst, error) {
	b := burst{Volumes: s.options.burst}
	turns := []func() error{
		func() error { return s.burstOfKatbox(ctx, &b) },
		func() error { return s.burstOfRm(ctx, &b) },
	}
	for n := range s.options.rounds {
		for turn := range turns {
			if err := turns[(turn+n)%len(turns)](); err != nil {
				return b, err
			}
		}
	}
	b.Gone, b.Rm = median(b.GoneMillis), median(b.RmMillis)
	b.TimesSlower = b.Gone / b.Rm
	s.say("%d volumes due at once: gone in %.0f ms, rm -rf %.0f ms", b.Volumes, b.Gone, b.Rm)
	return b, nil
}

func (s *environment) burstOfKatbox(ctx context.Context, b *burst) (err error) {
	katbox, deadline, err := s.falling(ctx, b.Volumes, 0)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, katbox.stop()) }()
	for _, n := range manyNamed("due", b.Volumes) {
		if _, err := waitGone(ctx, filepath.Join(katbox.layout.Work, n.pod), deadline); err != nil {
			return err
		}
	}
	for {
		left, err := os.ReadDir(filepath.Join(katbox.layout.Work, trashDir))
		switch {
		case err != nil && !errors.Is(err, os.ErrNotExist):
			return fmt.Errorf("look for what is to be erased: %w", err)
		case len(left) == 0:
			b.GoneMillis = append(b.GoneMillis, millis(time.Since(deadline)))
			return nil
		case time.Since(deadline) > goneLimit:
			return fmt.Errorf("%d volumes are still in the trash %s after their deadline", len(left), goneLimit)
		}
		if err := pause.For(ctx, pollInterval); err != nil {
			return err
		}
	}
}

func (s *environment) burstOfRm(ctx context.Context, b *burst) error {
	s.servers++
	dir := filepath.Join(s.layout.Work, fmt.Sprintf("%d-rm", s.servers))
	if err := os.Mkdir(dir, 0o755); err != nil {
		return fmt.Errorf("make a directory for rm: %w", err)
	}
	if err := fill(dir, manyNamed("due", b.Volumes), false); err != nil {
		return err
	}
	began := time.Now()
	if out, err := exec.CommandContext(ctx, "rm", "-rf", dir).CombinedOutput(); err != nil {
		return fmt.Errorf("rm -rf %s: %w: %s", dir, err, out)
	}
	b.RmMillis = append(b.RmMillis, millis(time.Since(began)))
	return nil
}
