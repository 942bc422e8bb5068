package main

import (
	"errors"
	"testing"
	"time"
)

// finished is a call that took so long.
func finished(m method, took time.Duration, err error) entry {
	now := time.Now()
	return entry{method: m, from: now.Add(-took), to: now, err: err}
}

func TestSamplesAreOfTheirInterval(t *testing.T) {
	s, f, d := newStats(), &findings{}, &daemon{}
	take := func() sample {
		takeSample(d, t.TempDir(), s, f)
		return s.samples[len(s.samples)-1]
	}
	if first := take(); first.Publish != nil || first.Calls != 0 || first.Daemon != nil || first.Disk == nil {
		t.Errorf("before anything: %+v", first)
	}
	for n := range 100 {
		s.add(finished(publish, time.Duration(n+1)*time.Millisecond, nil), false)
	}
	s.add(finished(unpublish, time.Hour, errors.New("no")), false)
	f.add(leakedMount, nil, "")
	second := take()
	if second.Calls != 101 || second.Errors != 1 || second.Violations != 1 || second.Unpublish != nil {
		t.Errorf("after 100 publishes and a failed unpublish: %+v", second)
	}
	if want := (interval{Calls: 100, P50Millis: 50, P99Millis: 99}); second.Publish == nil || *second.Publish != want {
		t.Errorf("publish %+v, want %+v", second.Publish, want)
	}
	s.add(finished(publish, 7*time.Millisecond, nil), false)
	third := take()
	if want := (interval{Calls: 1, P50Millis: 7, P99Millis: 7}); third.Publish == nil || *third.Publish != want {
		t.Errorf("publish %+v, want only the call since the last sample", third.Publish)
	}
	if third.Calls != 102 || third.Seconds < second.Seconds {
		t.Errorf("%+v, want more than %+v", third, second)
	}
	if got := len(s.methods[publish].latencies); got != 101 {
		t.Errorf("%d latencies for the table, want all 101", got)
	}
}

func TestSamplesOfARun(t *testing.T) {
	s, _ := soakFake(t, noBug, func(o *options) { o.kills = 2 })
	var published, retained, threads int
	var cpu float64
	for i, one := range s.samples {
		published, retained = max(published, one.Mounted), max(retained, one.Retained)
		if one.Mounted < 0 || one.Retained < 0 {
			t.Errorf("sample %d: %+v", i, one)
		}
		if one.Daemon != nil {
			if one.Daemon.CPUSeconds < cpu {
				t.Errorf("sample %d: CPU time fell from %g s to %g s, perhaps with a kill", i, cpu, one.Daemon.CPUSeconds)
			}
			cpu, threads = one.Daemon.CPUSeconds, max(threads, one.Daemon.Threads)
		}
	}
	if len(s.samples) < 5 || retained == 0 || threads == 0 {
		t.Errorf("%d samples with at most %d mounted and %d retained volumes, %d threads", len(s.samples), published, retained, threads)
	}
	last := s.samples[len(s.samples)-1]
	if last.Pods != 16 || last.Mounted != 0 || last.Retained != 0 || last.Daemon != nil {
		t.Errorf("the last sample is %+v, want 16 pods over and nothing left", last)
	}
	if s.consumed.peak == 0 || s.consumed.threads == 0 || s.consumed.cpu == 0 || seconds(s.consumed.cpu) < cpu-0.02 {
		t.Errorf("consumed %+v, with %g s CPU time in the last sample", s.consumed, cpu)
	}
	if len(s.marks) != 2 || s.marks[1].Ready == nil || *s.marks[1].Ready < s.marks[1].Killed {
		t.Errorf("marks %+v, want two kills with their restarts", s.marks)
	}
}
