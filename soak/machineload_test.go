package main

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/katbox/katbox/soak/internal/history"
)

func TestWeather(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		takes := func(after time.Duration) time.Duration {
			switch {
			case after > 10*time.Second && after < 11*time.Second:
				return 5 * time.Second
			default:
				return 900 * time.Millisecond
			}
		}
		w := machineLoad{timeline: &history.Timeline{}, write: func() error {
			time.Sleep(takes(time.Since(began)))
			return nil
		}}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := w.watch(ctx); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		spans := w.timeline.Spans()
		if len(spans) != 1 || spans[0].To.Sub(spans[0].From) != 4*time.Second {
			t.Errorf("timeline %+v, want one slow time of 4 s: the write that took 5 s, from its second second on", spans)
		}

		w.timeline = &history.Timeline{}
		due := time.Now().Add(-2 * lateTimer)
		if err := w.look(due); err != nil || len(w.timeline.Spans()) != 1 || !w.timeline.Spans()[0].From.Equal(due) {
			t.Errorf("%v, timeline %+v; want it to tell of a timer that was late", err, w.timeline.Spans())
		}

		w.write = func() error { return errors.New("no disk") }
		if err := w.watch(t.Context()); err == nil {
			t.Error("no error from a disk that cannot be written")
		}
	})
}
