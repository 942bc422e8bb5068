package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"testing"
	"time"
)

// soakFake runs a whole soak, but for the namespace, against a fake daemon with
// the given bug.
func soakFake(t *testing.T, bug string, change func(*options)) (*stats, *findings) {
	t.Helper()
	o := options{
		pods: 16, parallel: 16, volumes: 2, lifespan: 1500 * time.Millisecond,
		repeat: 0.6, cancel: 0.2, seed: 11, log: "daemon.log",
		// A symlink cannot be read-only.
		readOnly:  0,
		tolerance: 700 * time.Millisecond,
		firstWait: 5 * time.Millisecond,
	}
	if change != nil {
		change(&o)
	}
	// The path of t.TempDir is too long for a socket.
	dir, err := os.MkdirTemp("", "soak-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	o.dir = dir
	l, err := makeLayout(o)
	if err != nil {
		t.Fatal(err)
	}
	s, f := newStats(), &findings{}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := proveWithDaemon(ctx, o, l, fakeBinary(t, bug), s, f, io.Discard); err != nil && !errors.Is(err, errDaemonDied) {
		t.Fatalf("soak: %v", err)
	}
	var text bytes.Buffer
	report(&text, o, s, f, time.Second)
	for _, told := range stories(f.all())[:min(mostStories, len(stories(f.all())))] {
		if first, _, _ := strings.Cut(told.what, "\n"); !strings.Contains(text.String(), first) {
			t.Errorf("the report does not tell %q:\n%s", first, &text)
		}
	}
	return s, f
}

func TestHonestDaemon(t *testing.T) {
	s, f := soakFake(t, noBug, func(o *options) { o.kills = 2 })
	if f.sum() != 0 {
		t.Errorf("violations: %+v", f.all())
	}
	if s.pods != 16 || s.volumes != 32 || s.kills != 2 {
		t.Errorf("%d pods, %d volumes, %d kills; want 16, 32, 2", s.pods, s.volumes, s.kills)
	}
	if s.seen != 32 || s.expired != 32 || len(s.late) != 32 {
		t.Errorf("%d markers seen, %d volumes expired, %d times; want 32 of each", s.seen, s.expired, len(s.late))
	}
	var together, inTurn, cancelled int
	for i := range 16 {
		for _, v := range (plan{options{seed: 11, volumes: 2, repeat: 0.6, cancel: 0.2}}).pod(i).volumes {
			for _, c := range []callPlan{v.publish, v.unpublish} {
				switch c.repeat {
				case twiceTogether:
					together++
				case twiceInTurn:
					inTurn++
				}
				if c.cancel {
					cancelled++
				}
			}
		}
	}
	if s.doubled != together+inTurn {
		t.Errorf("%d calls doubled, %d were planned", s.doubled, together+inTurn)
	}
	sent := s.methods[publish].calls + s.methods[unpublish].calls
	if least := 2*32 + together + inTurn + cancelled; sent < least {
		t.Errorf("%d calls sent, want at least %d: each volume's two, the doubled and the cancelled ones", sent, least)
	}
	if got, least := s.methods[getCapabilities].calls, 2*32; got < least {
		t.Errorf("%d NodeGetCapabilities, want at least %d", got, least)
	}
}

func TestBrokenDaemons(t *testing.T) {
	for _, test := range []struct {
		bug   string
		kills int
		want  promise
	}{
		{"refuses repeats", 0, refusedCall},
		{"is never ready to unpublish", 0, neverSucceeded},
		{"mounts nothing", 0, lostMarker},
		{"loses a file", 0, lostMarker},
		{"leaves targets", 0, leftTarget},
		{"hurries", 0, deletedEarly},
		{"prolongs", 0, keptTooLong},
		{"forgets deadlines", 1, keptTooLong},
		{"keeps trash", 0, leftData},
		{"stillborn", 0, brokenDaemon},
		{"crashes", 0, brokenDaemon},
		{"ends badly", 0, brokenDaemon},
	} {
		t.Run(test.bug, func(t *testing.T) {
			t.Parallel()
			_, f := soakFake(t, test.bug, func(o *options) {
				o.pods, o.lifespan = 10, 400*time.Millisecond
				o.kills = test.kills
			})
			if f.number(test.want) == 0 {
				t.Errorf("violations %+v, want: %s", f.all(), test.want)
			}
		})
	}
}

func TestDeadDaemonShowsItsLog(t *testing.T) {
	_, f := soakFake(t, "crashes", nil)
	told := stories(f.all())
	if len(told) == 0 || told[0].promise != brokenDaemon || !strings.Contains(told[0].what, "the tenth publish is one too many") {
		t.Errorf("stories %+v, want first the panic from the daemon's log", told)
	}
}

func TestLastWords(t *testing.T) {
	long := strings.Repeat("x", 2*longestQuote)
	for _, test := range []struct{ name, log, want string }{
		{"short", "one\ntwo\n", "one\ntwo"},
		{"long", "begin" + long + "end\n", long[:longestQuote-3] + "end"},
		{"panic", "one\npanic: oh\n\ngoroutine 1\n", "panic: oh\n\ngoroutine 1"},
		{"panic at the start", "panic: oh\n", "panic: oh"},
		{"long panic", "one\npanic: oh" + long, "panic: oh" + long[:longestQuote-9]},
		{"only mentioned", "a panic: no\nend", "a panic: no\nend"},
		{"fatal error", "one\nfatal error: oh\n", "fatal error: oh"},
		{"empty", "", ""},
	} {
		if got := lastWords(test.log); got != test.want {
			t.Errorf("%s: %.60q (%d bytes), want %.60q (%d bytes)", test.name, got, len(got), test.want, len(test.want))
		}
	}
}

func TestTimeLimit(t *testing.T) {
	var out bytes.Buffer
	n, err := run(context.Background(), options{
		daemon: fakeBinary(t, noBug), pods: 1, parallel: 1, volumes: 1, lifespan: time.Hour, seed: 5,
		log: "daemon.log", timeout: time.Second, firstWait: time.Millisecond,
	}, &out)
	if n != 1 || err != nil || !strings.Contains(out.String(), "did not end in time, within 1s") {
		t.Errorf("%d violations, %v, want one about the time:\n%s", n, err, &out)
	}
	if !strings.HasPrefix(out.String(), "seed 5\n") {
		t.Errorf("the seed does not come first:\n%s", &out)
	}
	_, dir, _ := strings.Cut(out.String(), "everything is kept in ")
	dir, _, _ = strings.Cut(dir, ",")
	if there, err := exists(dir); dir == "" || err != nil || !there {
		t.Errorf("directory %q is gone after a violation (%v)", dir, err)
	}
	os.RemoveAll(dir)
}

// TestTimeLimitTellsWhatHung: the volumes that made the run too long are what
// its reader wants to know.
func TestTimeLimitTellsWhatHung(t *testing.T) {
	var out bytes.Buffer
	n, err := run(context.Background(), options{
		daemon: fakeBinary(t, "is never ready to unpublish"), pods: 1, parallel: 1, volumes: 1, lifespan: time.Hour,
		log: "daemon.log", timeout: 2 * time.Second, firstWait: 200 * time.Millisecond,
	}, &out)
	if n == 0 || err != nil || !strings.Contains(out.String(), "until the run was over") {
		t.Errorf("%d violations, %v, want one that a call failed until the end:\n%s", n, err, &out)
	}
	_, dir, _ := strings.Cut(out.String(), "everything is kept in ")
	dir, _, _ = strings.Cut(dir, ",")
	os.RemoveAll(dir)
}

func TestInterruption(t *testing.T) {
	dir, err := os.MkdirTemp("", "soak-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	ctx, cancel := context.WithTimeout(context.Background(), 500*time.Millisecond)
	defer cancel()
	n, err := run(ctx, options{
		daemon: fakeBinary(t, noBug), dir: dir, pods: 1000, parallel: 2, volumes: 1, lifespan: time.Hour,
		log: "daemon.log", timeout: time.Minute, firstWait: time.Millisecond,
	}, io.Discard)
	if n != 0 || err == nil || !strings.Contains(err.Error(), errInterrupted.Error()) {
		t.Errorf("%d violations and %v, want no violations and %v", n, err, errInterrupted)
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 0 {
		t.Errorf("left in the directory: %v, %v; want nothing, but the directory itself", left, err)
	}
}
