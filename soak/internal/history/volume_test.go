package history

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/katbox/katbox/soak/internal/workload"
	"github.com/katbox/katbox/soak/story"
)

func TestContention(t *testing.T) {
	var (
		busy    = status.Error(codes.Aborted, "busy")
		givenUp = status.Error(codes.Canceled, "cancelled")
		later   = status.Error(codes.Unavailable, "no connection")
	)
	call := func(v *Volume, m Method, err error) Call { return v.End(v.Begin(m, false), err) }
	for _, test := range []struct {
		name string
		do   func(v *Volume) Call
		want bool
	}{
		{"alone", func(v *Volume) Call { return call(v, Publish, busy) }, false},
		{"with another", func(v *Volume) Call {
			v.Begin(Publish, false)
			return call(v, Unpublish, busy)
		}, true},
		{"another came later", func(v *Volume) Call {
			first := v.Begin(Publish, false)
			call(v, Unpublish, busy)
			return v.End(first, nil)
		}, true},
		{"after another", func(v *Volume) Call {
			call(v, Publish, nil)
			return call(v, Publish, busy)
		}, false},
		{"after one that was given up", func(v *Volume) Call {
			call(v, Publish, givenUp)
			return call(v, Publish, busy)
		}, true},
		{"after one whose connection broke", func(v *Volume) Call {
			call(v, Publish, later)
			return call(v, Publish, busy)
		}, true},
		{"long after one that was given up", func(v *Volume) Call {
			call(v, Publish, givenUp)
			time.Sleep(settleLimit)
			return call(v, Publish, busy)
		}, false},
		{"given up, but another was served since", func(v *Volume) Call {
			call(v, Publish, givenUp)
			time.Sleep(time.Millisecond)
			call(v, Publish, nil)
			return call(v, Publish, busy)
		}, false},
		{"beside a question about the node", func(v *Volume) Call {
			v.Begin(GetCapabilities, false)
			return call(v, Publish, busy)
		}, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				if got := test.do(&Volume{}); got.Contended != test.want {
					t.Errorf("contended: %t, want %t", got.Contended, test.want)
				}
			})
		})
	}
}

func TestSentAndSucceeded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := &Volume{}
		if !v.FirstSent(Unpublish).IsZero() || !v.LastOK(Unpublish).IsZero() {
			t.Error("a volume without calls has times of calls")
		}
		began := time.Now()
		for range 3 {
			c := v.Begin(Unpublish, false)
			time.Sleep(time.Second)
			v.End(c, nil)
		}
		v.End(v.Begin(Unpublish, false), errors.New("no"))
		if got := v.FirstSent(Unpublish).Sub(began); got != 0 {
			t.Errorf("first sent after %s, want 0s", got)
		}
		if got := v.LastOK(Unpublish).Sub(began); got != 3*time.Second {
			t.Errorf("last succeeded after %s, want 3s", got)
		}
	})
}

func TestTroubles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := &Volume{}
		before := time.Now()
		time.Sleep(time.Second)
		relieve := v.Afflict(workload.BusyTarget, "a file is open")
		during := time.Now()
		time.Sleep(time.Second)
		relieve()
		time.Sleep(time.Second)
		after := time.Now()
		for _, test := range []struct {
			name     string
			from, to time.Time
			kind     workload.FaultKind
			want     bool
		}{
			{"during", during, during, workload.BusyTarget, true},
			{"around", before, after, workload.BusyTarget, true},
			{"before", before, before, workload.BusyTarget, false},
			{"after", after, after, workload.BusyTarget, false},
			{"another kind", before, after, workload.ForeignMount, false},
		} {
			if got := v.Troubled(test.from, test.to, test.kind); got != test.want {
				t.Errorf("%s: %t, want %t", test.name, got, test.want)
			}
		}
		v.Afflict(workload.VolumeRemoved, "with everything in it")
		if now := time.Now(); !v.Troubled(now.Add(time.Hour), now.Add(time.Hour), workload.VolumeRemoved) {
			t.Error("a fault without an end is over")
		}
		if got := v.Troubles(); len(got) != 2 || got[0].To.IsZero() || !got[1].To.IsZero() {
			t.Errorf("troubles %+v, want one that is over and one that is not", got)
		}
	})
}

func TestStory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := &Volume{ID: "csi-1"}
		v.Note("pod created")
		time.Sleep(time.Second)
		slow := v.Begin(Publish, true)
		time.Sleep(time.Second)
		v.End(v.Begin(Unpublish, false), status.Error(codes.Aborted, "busy"))
		v.End(v.Begin(GetCapabilities, false), nil)
		time.Sleep(time.Second)
		got := strings.Join(v.Story(), "\n")
		// Midnight of the bubble's first day, in whatever zone the machine has.
		at := func(s int) string {
			return story.Clock(time.Date(2000, 1, 1, 0, 0, s, 0, time.UTC).Local())
		}
		want := at(0) + "  pod created\n" +
			at(1) + "  NodePublishVolume   is without an answer\n" +
			at(2) + "  NodeUnpublishVolume       0s  Aborted: busy"
		if got != want {
			t.Errorf("story:\n%s\nwant:\n%s", got, want)
		}
		v.End(slow, status.Error(codes.Canceled, "context canceled"))
		if got, want := v.Story()[1], "2s  Canceled: context canceled (cancelled by the client)"; !strings.HasSuffix(got, want) {
			t.Errorf("%q, want it to end in %q", got, want)
		}
	})
}

func TestLongStory(t *testing.T) {
	v := &Volume{}
	for i := range longestStory + 10 {
		v.Note("event %d.", i)
	}
	story := strings.Join(v.Story(), "\n")
	for _, want := range []string{"event 0.", "event 31.", "... 10 events left out ...", "event 42.", "event 73."} {
		if !strings.Contains(story, want) {
			t.Errorf("the story has no %q:\n%s", want, story)
		}
	}
	if strings.Contains(story, "event 32.") {
		t.Errorf("the story has what should be left out:\n%s", story)
	}
}

func TestFinal(t *testing.T) {
	for code, want := range map[codes.Code]bool{
		codes.Internal: true, codes.InvalidArgument: true, codes.Unknown: true, codes.NotFound: true,
		codes.AlreadyExists: true, codes.FailedPrecondition: true,
		codes.Aborted: false, codes.Canceled: false, codes.DeadlineExceeded: false,
		codes.Unavailable: false, codes.ResourceExhausted: false,
	} {
		if got := Final(code); got != want {
			t.Errorf("%s: %t, want %t", code, got, want)
		}
	}
}
