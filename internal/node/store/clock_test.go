package store

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"testing"
	"time"

	"github.com/katbox/katbox/internal/model/volume"
)

const year = 365 * 24 * time.Hour

func retained(id string, at time.Time) volume.Record {
	return volume.Record{ID: volume.ID(id), Pod: "p", Phase: volume.Retained, Unpublished: at, Lifespan: time.Hour}
}

// stopped is a clock that stands still at m. If m has no boot it fails.
func stopped(m moment) clock {
	return clock{
		boot: m.boot,
		boottime: func() (int64, error) {
			if m.boot == 0 {
				return 0, errors.New("no boottime")
			}
			return m.boottime, nil
		},
		now: func() time.Time { return m.now },
	}
}

func openStoreAt(t testing.TB, path string, m moment) *Store {
	t.Helper()
	s := openStore(t, path)
	s.clock = stopped(m)
	return s
}

// changeStored changes the fields of a stored value.
func changeStored(t testing.TB, s *Store, id string, change func(fields map[int]any)) {
	t.Helper()
	if err := s.update(func(tx transaction) error {
		fields := make(map[int]any)
		if err := decoding.Unmarshal(bytes.Clone(tx.tx.Bucket(volumesBucket).Get([]byte(id))[valueHeader:]), &fields); err != nil {
			return err
		}
		change(fields)
		return tx.set(volumesBucket, []byte(id), seal(id, valueVersion, marshal(t, fields)))
	}); err != nil {
		t.Fatal(err)
	}
}

// TestTimesAcrossARestart writes a record one minute after its volume was unpublished, and reads it
// ten minutes later.
func TestTimesAcrossARestart(t *testing.T) {
	const wait = 10 * time.Minute
	start := time.Now()
	written := moment{now: start, boot: 7, boottime: int64(time.Hour)}
	unpublished := start.Add(-time.Minute)
	later := func(wall time.Duration, boot uint64, boottime time.Duration) moment {
		return moment{now: start.Add(wall), boot: boot, boottime: written.boottime + int64(boottime)}
	}
	noBoot := moment{now: start}
	const age = time.Minute + wait
	tests := []struct {
		name          string
		unpublished   time.Time
		written, read moment
		age           time.Duration
	}{
		{"no step", unpublished, written, later(wait, 7, wait), age},
		{"step forward", unpublished, written, later(wait+year, 7, wait), age},
		{"step back", unpublished, written, later(wait-year, 7, wait), age},
		{"step back to 1970", unpublished, written,
			moment{now: time.Unix(5, 0), boot: 7, boottime: written.boottime + int64(wait)}, age},
		{"a moment between the readings", unpublished, written, later(wait+maxJitter, 7, wait), age + maxJitter},
		{"a moment the other way", unpublished, written, later(wait-maxJitter, 7, wait), age - maxJitter},
		{"small step forward", unpublished, written, later(wait+maxJitter+1, 7, wait), age},
		{"small step back", unpublished, written, later(wait-maxJitter-1, 7, wait), age},
		{"a moment in the future", start.Add(maxJitter), written, later(0, 7, 0), 0},
		{"suspended in between", unpublished, written, later(wait, 7, wait+time.Hour), age + time.Hour},
		{"before the boot", start.Add(-3 * time.Hour), written, later(wait+year, 7, wait), 3*time.Hour + wait},
		{"no monotonic reading", unpublished.Round(0), written, later(wait+year, 7, wait), age},
		{"in the future", start.Add(time.Hour), written, later(wait+year, 7, wait), wait},
		{"boottime goes back", unpublished, written, later(wait, 7, -time.Hour), 0},
		{"boottime as before", unpublished, written, later(wait, 7, -time.Minute), 0},

		{"rebooted", unpublished, written, later(wait, 8, -time.Hour), age},
		{"rebooted, step forward", unpublished, written, later(wait+year, 8, -time.Hour), age + year},
		{"rebooted, step back", unpublished, written, later(wait-year, 8, -time.Hour), 0},
		{"rebooted, up for longer", unpublished, written, later(wait, 8, year), age},

		{"by an older version", unpublished, noBoot, later(wait, 7, wait), age},
		{"by an older version, step forward", unpublished, noBoot, later(wait+year, 7, wait), age + year},
		{"boot no longer known", unpublished, written, moment{now: start.Add(wait)}, age},
		{"boot never known", unpublished, noBoot, moment{now: start.Add(wait)}, age},
		{"boot never known, step back", unpublished, noBoot, moment{now: start.Add(-wait)}, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			value, err := encodeValue(retained("a", tt.unpublished), tt.written)
			if err != nil {
				t.Fatal(err)
			}
			r, err := decodeValue([]byte("a"), value, tt.read)
			if err != nil || r.Unpublished != tt.read.now.Add(-tt.age) {
				t.Fatalf("%v ago, %v; want %v", tt.read.now.Sub(r.Unpublished), err, tt.age)
			}
			if tt.read.boot == 0 {
				return
			}
			// Written again, it is of the boot that it was read in.
			if value, err = encodeValue(r, tt.read); err != nil {
				t.Fatal(err)
			}
			again := tt.read
			again.now = again.now.Add(2 * year)
			again.boottime += int64(wait)
			r, err = decodeValue([]byte("a"), value, again)
			if err != nil || r.Unpublished != again.now.Add(-tt.age-wait) {
				t.Errorf("written again: %v ago, %v; want %v", again.now.Sub(r.Unpublished), err, tt.age+wait)
			}
		})
	}
}

// TestStoredReadings has readings that no kernel gives.
func TestStoredReadings(t *testing.T) {
	now := time.Now()
	wall := now.Add(-time.Hour).UnixNano()
	tests := []struct {
		name             string
		stored, boottime int64
		age              time.Duration
	}{
		{"none", 0, int64(time.Minute), time.Minute},
		{"long before the boot", -math.MaxInt64 / 2, int64(time.Minute), maxAge},
		{"the first", math.MinInt64, int64(time.Minute), 0},
		{"the last", math.MaxInt64, int64(time.Minute), 0},
		{"the last, and before the boot", math.MaxInt64, -int64(time.Minute), 0},
		{"both the first", math.MinInt64, math.MinInt64, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := moment{now: now, boot: 7, boottime: tt.boottime}.time(wall, 7, tt.stored)
			if want := now.Add(-tt.age); got != want {
				t.Errorf("%v ago, want %v", now.Sub(got), tt.age)
			}
		})
	}
	if got := (moment{now: now, boot: 7, boottime: 1}).time(0, 7, 1); !got.IsZero() {
		t.Errorf("no time became %v", got)
	}
}

// TestClockNeverMakesOlder has time pass between the looks at two clocks.
func TestClockNeverMakesOlder(t *testing.T) {
	start := time.Now()
	passed := time.Duration(0)
	c := clock{
		boot:     7,
		boottime: func() (int64, error) { passed += time.Second; return int64(passed), nil },
		now:      func() time.Time { passed += time.Second; return start.Add(passed) },
	}
	if m := c.writing(); m.boottime < int64(m.now.Sub(start)) {
		t.Errorf("writing: reading %v, want at least %v", time.Duration(m.boottime), m.now.Sub(start))
	}
	now := c.now()
	passed += time.Hour // since the caller looked
	if m := c.reading(now); m.now != now || m.boottime > int64(now.Sub(start)) {
		t.Errorf("reading: reading %v, want at most %v", time.Duration(m.boottime), now.Sub(start))
	}
}

func TestBoottimeFails(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	s := openStore(t, path)
	s.clock.boottime = func() (int64, error) { return 0, errors.New("broken for the test") }
	unpublished := time.Now().Add(-time.Minute)
	commit(t, s, put(retained("a", unpublished)))
	changeStored(t, s, "a", func(fields map[int]any) {
		if fields[8] != nil || fields[9] != nil {
			t.Errorf("stored %v, want no reading", fields)
		}
	})
	if got := load(t, s, time.Now())["a"].Unpublished; got.Sub(unpublished).Abs() > time.Second {
		t.Errorf("unpublished %v, want %v", got, unpublished)
	}
}

func TestReadBoot(t *testing.T) {
	if boot := readBoot(); boot == 0 || boot != readBoot() {
		t.Errorf("boot %x, then %x", boot, readBoot())
	}
	a, b := []byte("5ec56500-0529-4171-af91-606170b14cbc\n"), []byte("5ec56500-0529-4171-af91-606170b14cbd\n")
	const namespace = "time:[4026531834]"
	seen := map[uint64]bool{
		bootNumber(a, namespace): true, bootNumber(b, namespace): true,
		bootNumber(a, "time:[4026532000]"): true, bootNumber(a, ""): true,
	}
	if len(seen) != 4 || seen[0] {
		t.Errorf("numbers %v, want four", seen)
	}
	if got := bootNumber([]byte("\n"), namespace); got != 0 {
		t.Errorf("an empty boot ID gives %x, want 0", got)
	}
}

// TestWallClockStepsAcrossARestart uses the kernel's clocks. That the wall clock was stepped is
// made to look so from the other side: by what it showed before.
func TestWallClockStepsAcrossARestart(t *testing.T) {
	for name, step := range map[string]time.Duration{"none": 0, "forward": year, "back": -year} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "store.db")
			s := openStore(t, path)
			unpublished := time.Now().Add(-time.Minute)
			commit(t, s, put(retained("a", unpublished)))
			changeStored(t, s, "a", func(fields map[int]any) {
				fields[6] = unpublished.Add(-step).UnixNano()
			})
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			got := load(t, openStore(t, path), time.Now())["a"].Unpublished
			// Later by the time between two looks at two clocks, and never earlier, except that what
			// both clocks agree on is the wall clock's.
			early := time.Duration(0)
			if step == 0 {
				early = maxJitter
			}
			if late := got.Sub(unpublished); late < -early || late > 10*time.Second {
				t.Errorf("unpublished %v later than it was", late)
			}
		})
	}
}

// TestKeysStayAcrossRestarts: a list goes on after a restart where it was, whatever passed between
// the readings of the kernel's clocks.
func TestKeysStayAcrossRestarts(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	s := openStore(t, path)
	want := map[volume.ID]volume.Key{}
	for i := range 20 {
		r := retained(fmt.Sprint("v", i), time.Now())
		commit(t, s, put(r))
		want[r.ID] = r.Key()
	}
	for range 3 {
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		s = openStore(t, path)
		for id, r := range load(t, s, time.Now()) {
			if r.Key() != want[id] {
				t.Errorf("%s was retained at %v, after a restart at %v", id, want[id].Unpublished, r.Key().Unpublished)
			}
			commit(t, s, put(r)) // written again, it is the same
		}
	}
}
