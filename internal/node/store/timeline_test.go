package store

import (
	"bytes"
	"math"
	"math/rand/v2"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"go.etcd.io/bbolt"
)

// TestReboots retains a volume and says how long ago that seems to be in the end. The machine's own
// checks say the same in general.
func TestReboots(t *testing.T) {
	const day = 24 * time.Hour
	tests := []struct {
		name string
		play func(*machine)
		age  time.Duration
	}{
		{"no reboot", func(m *machine) { m.run(day); m.down(day) }, 2 * day},
		{"stepped, then restarted", func(m *machine) {
			m.wrong = year
			m.down(time.Hour)
			m.wrong = -year
			m.down(time.Hour)
		}, 2 * time.Hour},
		{"the clock right", func(m *machine) { m.run(day); m.reboot(5*time.Minute, 0) }, day + 6*time.Minute},
		{"the clock wrong throughout", func(m *machine) {
			m.wrong = -year
			m.retain()
			m.reboot(5*time.Minute, -year)
		}, 6 * time.Minute},
		{"off for long", func(m *machine) { m.reboot(day, 0) }, maxUnseen + time.Minute},
		{"a year ahead at the boot", func(m *machine) { m.run(day); m.reboot(0, year) }, day + maxUnseen + time.Minute},
		{"a year behind at the boot", func(m *machine) { m.run(day); m.reboot(5*time.Minute, -year) }, day},
		{"behind at the boot, then set", func(m *machine) {
			m.reboot(5*time.Minute, -50*year)
			m.wrong = 0
			m.run(time.Hour)
			m.down(time.Hour)
			m.reboot(5*time.Minute, 0)
		}, 2*time.Hour + 6*time.Minute},
		{"ahead at the boot, then set", func(m *machine) {
			m.reboot(0, 10*year)
			m.wrong = 0
			m.run(time.Hour)
		}, maxUnseen + time.Minute + time.Hour},
		{"stepped forward before the reboot", func(m *machine) {
			m.run(time.Hour)
			m.wrong = year
			m.run(time.Hour)
			m.reboot(5*time.Minute, year)
		}, 2*time.Hour + 6*time.Minute},
		{"stepped forward before the reboot, and not noted", func(m *machine) {
			m.wrong = year
			m.reboot(5*time.Minute, year)
		}, maxUnseen + time.Minute},
		{"started long after the boot", func(m *machine) {
			m.run(day)
			m.stop()
			m.boot++
			m.booted = m.now
			m.now = m.now.Add(3 * time.Hour)
			m.start()
		}, day + 3*time.Hour},
		{"always behind", func(m *machine) {
			for range 100 {
				m.run(time.Hour)
				m.show(time.Unix(5, 0))
				m.reboot(time.Minute, m.wrong)
			}
		}, 100 * time.Hour},
		{"a boot ID for each container", func(m *machine) {
			m.run(time.Hour)
			for range 10 {
				m.pretend(time.Minute)
				m.run(time.Hour)
			}
		}, 11*time.Hour + 10*time.Minute},
		{"a boot ID for each container, stepped forward", func(m *machine) {
			m.run(time.Hour)
			m.wrong = year
			m.pretend(time.Minute)
		}, time.Hour + time.Minute + maxUnseen},
		{"a boot ID for each container, stepped back", func(m *machine) {
			m.run(time.Hour)
			m.wrong = -year
			m.pretend(time.Minute)
		}, time.Hour},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m := newMachine(t)
			m.retain()
			tt.play(m)
			m.check()
			if got := m.wall().Sub(load(t, m.s, m.wall())["0"].Unpublished); got != tt.age {
				t.Errorf("unpublished %v ago, want %v", got, tt.age)
			}
		})
	}
}

// play does with a machine what the bytes say.
func play(m *machine, moves []byte) {
	wrong := []time.Duration{0, 5 * time.Minute, -5 * time.Minute, 2 * time.Hour, -2 * time.Hour, year, -year, -20 * year}
	durations := []time.Duration{0, time.Second, 4 * time.Minute, 20 * time.Minute, time.Hour, 10 * time.Hour, 3 * 24 * time.Hour}
	for ; len(moves) > 1; moves = moves[2:] {
		d, w := durations[int(moves[1])%len(durations)], wrong[int(moves[1])/len(durations)%len(wrong)]
		switch moves[0] % 8 {
		case 0:
			m.retain()
		case 1:
			m.run(min(d, 10*time.Hour))
		case 2:
			m.wrong = w
		case 3:
			m.down(d)
		case 4:
			m.reboot(d, w)
		case 5:
			m.reboot(d, m.wrong)
		case 6:
			m.pretend(d)
		case 7:
			m.rewrite("0")
		}
		m.check()
	}
}

func TestAnyReboots(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 50 {
		moves := make([]byte, 80)
		for i := range moves {
			moves[i] = byte(rng.Uint32())
		}
		m := newMachine(t)
		m.retain()
		play(m, moves)
		if t.Failed() {
			t.Fatalf("moves %v", moves)
		}
	}
}

// FuzzReboots looks for an order of events that breaks a promise.
func FuzzReboots(f *testing.F) {
	f.Add([]byte{0, 0, 2, 35, 4, 3, 2, 0, 3, 4, 5, 1})
	f.Fuzz(func(t *testing.T, moves []byte) { play(newMachine(t), moves[:min(len(moves), 60)]) })
}

// TestLookWhileIdle has nothing but time pass in an open store.
func TestLookWhileIdle(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		c := clock{boot: 1, now: time.Now, boottime: func() (int64, error) { return int64(time.Since(begin)), nil }}
		s, err := open(path, c)
		if err != nil {
			t.Fatal(err)
		}
		commit(t, s, put(retained("a", begin)))
		time.Sleep(3*lookInterval + time.Second)
		synctest.Wait()
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		// The wall clock does not tell how long that was.
		c = stopped(moment{now: begin, boot: 2})
		s, err = open(path, c)
		if err != nil {
			t.Fatal(err)
		}
		if got := begin.Sub(load(t, s, begin)["a"].Unpublished); got != 3*lookInterval {
			t.Errorf("unpublished %v ago, want %v", got, 3*lookInterval)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		// The timer may have been on its way.
		s.look()
		if s.timer.Stop() {
			t.Error("a closed store is going to look again")
		}
	})
}

// TestTimelineNeverMakesOlder has time pass between the looks at two clocks.
func TestTimelineNeverMakesOlder(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	begin := time.Now()
	passed := time.Duration(0)
	pass := func() time.Duration { passed += time.Second; return passed }
	start := func(boot uint64) *Store {
		booted := passed
		s, err := open(path, clock{
			boot:     boot,
			boottime: func() (int64, error) { return int64(pass() - booted), nil },
			now:      func() time.Time { return begin.Add(pass()) },
		})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	s := start(1)
	unpublished := s.clock.now()
	commit(t, s, put(retained("a", unpublished)))
	for boot := range uint64(5) {
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		s = start(2 + boot)
	}
	defer s.Close()
	now := s.clock.now()
	age, got := now.Sub(unpublished), now.Sub(load(t, s, now)["a"].Unpublished)
	// Each of the five reboots may lose the time between two looks.
	if got > age || got < age-5*5*time.Second {
		t.Errorf("unpublished %v ago, want %v at most", got, age)
	}
}

// setTimeline replaces what was noted of the clocks; nil for nothing.
func setTimeline(t testing.TB, path string, value []byte) {
	t.Helper()
	db, err := bbolt.Open(path, 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Update(func(tx *bbolt.Tx) error {
		if value == nil {
			return tx.Bucket(metaBucket).Delete(timelineKey)
		}
		return tx.Bucket(metaBucket).Put(timelineKey, value)
	}); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}

func sealLook(t testing.TB, l storedLook) []byte {
	return sealValue(timelineKey, marshal(t, l))
}

// TestUnusableTimeline has the wall clock decide after a reboot, and a timeline begin that goes on
// from there.
func TestUnusableTimeline(t *testing.T) {
	good := storedLook{Number: 1, Boot: 1, Ahead: 5, Boottime: 6, Wall: 7}
	with := func(change func(*storedLook)) []byte {
		l := good
		change(&l)
		return sealLook(t, l)
	}
	if _, ok := decodeLook(sealLook(t, good)); !ok {
		t.Fatal("the good one is refused")
	}
	flipped := sealLook(t, good)
	flipped[len(flipped)-1] ^= 1
	newer := sealLook(t, good)
	newer[0]++
	for name, value := range map[string][]byte{
		"none":               nil,
		"empty":              {},
		"flipped":            flipped,
		"a newer version":    newer,
		"of another key":     sealValue(formatKey, marshal(t, good)),
		"not CBOR":           sealValue(timelineKey, []byte{0xff}),
		"another type":       sealValue(timelineKey, marshal(t, "text")),
		"no number":          with(func(l *storedLook) { l.Number = 0 }),
		"no boot":            with(func(l *storedLook) { l.Boot = 0 }),
		"no wall clock":      with(func(l *storedLook) { l.Wall = 0 }),
		"wall clock too low": with(func(l *storedLook) { l.Wall = -1 }),
		"ahead too far":      with(func(l *storedLook) { l.Ahead = math.MaxInt64 }),
		"behind too far":     with(func(l *storedLook) { l.Ahead = math.MinInt64 }),
		"boot time too high": with(func(l *storedLook) { l.Boottime = math.MaxInt64 }),
		"boot time too low":  with(func(l *storedLook) { l.Boottime = -1 }),
		"too high together":  with(func(l *storedLook) { l.Ahead, l.Boottime = maxReading, maxReading }),
	} {
		t.Run(name, func(t *testing.T) {
			m := newMachine(t)
			m.reboot(0, 0)
			m.retain()
			m.run(time.Hour)
			m.stop()
			setTimeline(t, m.path, value)
			m.boot++
			m.booted = m.now
			m.start()
			// Written now, it is on the new timeline.
			m.rewrite("0")
			m.run(time.Hour)
			m.reboot(0, 50*year)
			m.check()
		})
	}
}

// TestTimelineBeginsInTheRunningBoot updates from a version without one.
func TestTimelineBeginsInTheRunningBoot(t *testing.T) {
	m := newMachine(t)
	m.retain()
	m.run(time.Hour)
	m.stop()
	setTimeline(t, m.path, nil)
	m.wrong = year
	m.start()
	m.run(time.Hour)
	m.wrong = 0
	m.reboot(0, 0)
}

// TestOlderVersionInBetween has one write a record by CLOCK_BOOTTIME itself, in a boot that the
// timeline did not begin in.
func TestOlderVersionInBetween(t *testing.T) {
	m := newMachine(t)
	m.run(time.Hour)
	m.reboot(0, 0)
	m.retain()
	m.run(time.Minute)
	older := moment{now: m.wall(), boot: m.boot, boottime: int64(m.uptime())}
	value, err := encodeValue(retained("1", m.wall()), older)
	if err != nil {
		t.Fatal(err)
	}
	if err := m.s.update(func(tx transaction) error {
		return tx.set(volumesBucket, []byte("1"), value)
	}); err != nil {
		t.Fatal(err)
	}
	m.records["1"] = &promised{unpublished: m.now}
	m.noted()
	m.wrong = year
	m.down(time.Hour)
	m.wrong = -year
	m.down(time.Hour)

	// What this version wrote has, for the older one, the boot that the timeline began in, which is
	// over: it goes by the wall clock.
	value = nil
	if err := m.s.db.view(func(tx *bbolt.Tx) error {
		value = bytes.Clone(tx.Bucket(volumesBucket).Get([]byte("0")))
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	older = moment{now: m.now, boot: m.boot, boottime: int64(m.uptime())}
	r, err := decodeValue([]byte("0"), value, older)
	if want := m.records["0"].unpublished; err != nil || !r.Unpublished.Equal(want) {
		t.Errorf("an older version reads %v, %v; want %v", r.Unpublished, err, want)
	}
}

// TestNoClockToCarryOn has starts that cannot tell the boot, or not at once what CLOCK_BOOTTIME
// shows. What was noted before them has to stay.
func TestNoClockToCarryOn(t *testing.T) {
	for name, boot := range map[string]uint64{"no boot": 0, "no boot time at first": 2} {
		t.Run(name, func(t *testing.T) {
			m := newMachine(t)
			m.reboot(0, 0)
			m.retain()
			m.run(time.Hour)
			m.stop()
			c := stopped(moment{now: m.wall()})
			c.boot = boot
			s, err := open(m.path, c)
			if err != nil {
				t.Fatal(err)
			}
			if got := m.wall().Sub(load(t, s, m.wall())["0"].Unpublished); got != time.Hour {
				t.Errorf("unpublished %v ago by the wall clock, want an hour", got)
			}
			s.clock.boottime = func() (int64, error) { return int64(m.uptime()), nil }
			commit(t, s, put(retained("other", m.wall())), forget("other"))
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			m.wrong = year
			m.start()
			m.reboot(0, year)
		})
	}
}

func FuzzDecodeLook(f *testing.F) {
	f.Add(marshal(f, storedLook{1, 2, -3, 4, 5}), int64(6), int64(7))
	f.Fuzz(func(t *testing.T, body []byte, boottime, wall int64) {
		l, ok := decodeLook(sealValue(timelineKey, body))
		if !ok || boottime < 0 || boottime > maxReading || wall < 0 {
			return
		}
		m := moment{now: time.Unix(0, wall), boot: 7, boottime: boottime}
		m.line = l.next(m)
		_, reading := m.reading()
		passed := time.Duration(reading - l.Boottime - l.Ahead)
		if l.Boot != m.boot && (passed < 0 || passed > maxUnseen+time.Duration(boottime)) {
			t.Errorf("%v passed since %+v", passed, l)
		}
	})
}
