package main

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/katbox/katbox/soak/story"
)

func TestAcksComeBack(t *testing.T) {
	t.Parallel()
	at := time.Unix(1700000000, 7)
	events := []story.Event{
		{At: at, What: note, Text: "seed 5"},
		{At: at, Volume: "long/pod/a", What: story.Publish},
		{At: at, Volume: "long/pod/a", What: story.Published, N: 0},
		{At: at, Volume: "long/pod/a", What: story.Wrote, N: 12},
		{At: at, Volume: "long/pod/a", What: story.Unpublish, Lifespan: 1500 * time.Millisecond},
		{At: at, Volume: "long/pod/a", What: story.Retained, Lifespan: time.Hour},
		{At: at, Volume: "long/pod/a", What: story.Gone},
		{At: at, Volume: "long/pod/a", What: story.Failed, Text: "it is  odd"},
		{At: at, Volume: "long/pod/a", What: story.Attach, Text: "other-pod"},
		{At: at, Volume: "long/pod/a", What: story.Attached},
		{At: at, Volume: "long/pod/a", What: story.Detach, Lifespan: time.Second},
		{At: at, Volume: "long/pod/a", What: story.Detached},
		{At: at, Volume: "long/pod/a", What: story.LetGo, Lifespan: time.Minute, Text: "Succeeded"},
		{At: at, Volume: "pool/p/volumes/a", What: story.Create, N: 5 << 30, Text: "pool/p/snapshots/s"},
		{At: at, Volume: "pool/p/volumes/a", What: story.Refused},
		{At: at, Volume: "pool/p/volumes/a", What: story.Create, N: 5},
		{At: at, Volume: "pool/p/volumes/a", What: story.Created, N: 5},
		{At: at, Volume: "pool/p/volumes/a", What: story.Grow, N: 6},
		{At: at, Volume: "pool/p/volumes/a", What: story.Grown, N: 6},
		{At: at, Volume: "pool/p/volumes/a", What: story.Decide, Text: `{"retained": {"since": 1}}`},
		{At: at, Volume: "pool/p/volumes/a", What: story.Decided, Text: `{"retained": {"since": 1}}`},
		{At: at, Volume: "pool/p/volumes/a", What: story.Decide},
		{At: at, Volume: "pool/p/volumes/a", What: story.Decided},
		{At: at, Volume: "pool/p/volumes/a", What: story.Delete},
		{At: at, Volume: "pool/p/volumes/a", What: story.Deleted},
	}
	var lines strings.Builder
	for i := range events {
		events[i].Until = at
		lines.WriteString(events[i].String() + "\n")
	}
	got, err := parseAcks(lines.String())
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, events) {
		t.Errorf("got  %v\nwant %v", got, events)
	}
}

// TestCutLine: nothing was begun yet that a line announces which is not whole.
func TestCutLine(t *testing.T) {
	t.Parallel()
	got, err := parseAcks("1700000000.000000000 short/p/a publish\n1700000000.000000000 short/p/a wrote 1")
	if err != nil || len(got) != 1 || got[0].What != story.Publish {
		t.Errorf("got %v, %v; want the first line alone", got, err)
	}
}

func TestNoAcks(t *testing.T) {
	t.Parallel()
	for _, line := range []string{
		"", "hello", "1 a publish", "1.x a publish", "x.1 a publish", "1.1 a", "1.1 a hurrah", "1.1 a whole",
		"1.1 a wrote", "1.1 a wrote x", "1.1 a unpublish 5", "1.1 a retained",
	} {
		if got, err := parseAcks(line + "\n"); err == nil {
			t.Errorf("%q is taken for %v", line, got)
		}
	}
}

// TestNewClock: acks of a clock that ran ahead are moved to the clock after the boot, all by the same time.
func TestNewClock(t *testing.T) {
	t.Parallel()
	at := func(seconds int64) time.Time { return time.Unix(1700000000+seconds, 0) }
	for name, tt := range map[string]struct{ booted, first, last int64 }{
		"goes on":         {100, 10, 40},
		"shows the same":  {40, 10, 40},
		"shows less":      {25, -5, 25},
		"shows much less": {-86400, -86430, -86400},
	} {
		acks := []story.Event{{At: at(10), Until: at(10)}, {At: at(40), Until: at(40)}}
		byNewClock(acks, at(tt.booted))
		want := []story.Event{{At: at(tt.first), Until: at(tt.first)}, {At: at(tt.last), Until: at(tt.last)}}
		if !reflect.DeepEqual(acks, want) {
			t.Errorf("a clock that %s: %v, want %v", name, acks, want)
		}
	}
	byNewClock(nil, at(0))
}
