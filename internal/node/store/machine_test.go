package store

import (
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/katbox/katbox/internal/model/volume"
)

// machine is a node with a daemon, and knows the true time.
type machine struct {
	t    testing.TB
	path string
	s    *Store

	now time.Time
	// wrong is by how much the wall clock is wrong.
	wrong time.Duration
	boot  uint64
	// booted is when CLOCK_BOOTTIME began.
	booted time.Time

	looked  look
	records map[volume.ID]*promised
}

// look is when the store last noted the clocks.
type look struct {
	now    time.Time
	wrong  time.Duration
	boot   uint64
	uptime time.Duration
}

// promised is how old a record is, and by how much that may be mistaken.
type promised struct {
	unpublished    time.Time
	younger, older time.Duration
}

func newMachine(t testing.TB) *machine {
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	m := &machine{
		t: t, path: filepath.Join(t.TempDir(), "store.db"),
		now: now, boot: 1, booted: now.Add(-time.Hour),
		records: make(map[volume.ID]*promised),
	}
	m.start()
	t.Cleanup(func() { _ = m.s.Close() })
	return m
}

func (m *machine) wall() time.Time       { return m.now.Add(m.wrong) }
func (m *machine) uptime() time.Duration { return m.now.Sub(m.booted) }

// show makes the wall clock show something else.
func (m *machine) show(wall time.Time) { m.wrong = wall.Sub(m.now) }

// start starts the daemon, after whatever happened since it stopped.
func (m *machine) start() {
	m.t.Helper()
	s, err := open(m.path, clock{
		boot:     m.boot,
		boottime: func() (int64, error) { return int64(m.uptime()), nil },
		now:      m.wall,
	})
	if err != nil {
		m.t.Fatal(err)
	}
	// There are thousands of commits, and no power cut.
	s.db.bolt.NoSync = true
	m.s = s
	if m.looked.boot != 0 && m.looked.boot != m.boot {
		m.promise()
	}
	m.noted()
	m.check()
}

// stop stops the daemon. Whether it is killed makes no difference.
func (m *machine) stop() {
	m.t.Helper()
	if err := m.s.Close(); err != nil {
		m.t.Fatal(err)
	}
}

func (m *machine) noted() { m.looked = look{m.now, m.wrong, m.boot, m.uptime()} }

// promise adds what the comment of timeline says about a reboot.
func (m *machine) promise() {
	passed := m.now.Sub(m.looked.now)
	older, younger := maxUnseen, passed
	if m.wrong == m.looked.wrong {
		older, younger = 0, max(passed-m.vouched()-maxUnseen, 0)
	}
	for _, r := range m.records {
		r.older += older
		r.younger += younger
	}
}

// vouched is how much of the time since the last look CLOCK_BOOTTIME can tell.
func (m *machine) vouched() time.Duration {
	if m.uptime() < m.looked.uptime {
		return m.uptime()
	}
	return m.uptime() - m.looked.uptime
}

// run lets time pass while the daemon runs.
func (m *machine) run(d time.Duration) {
	for ; d >= lookInterval; d -= lookInterval {
		m.now = m.now.Add(lookInterval)
		m.s.look()
		m.noted()
	}
	m.now = m.now.Add(d)
}

// down lets time pass without it.
func (m *machine) down(d time.Duration) {
	m.stop()
	m.now = m.now.Add(d)
	m.start()
}

// reboot switches the machine off for a while. The wall clock is wrong afterwards, and the daemon
// starts a minute after the boot.
func (m *machine) reboot(off, wrong time.Duration) {
	m.stop()
	m.now = m.now.Add(off)
	m.boot++
	m.booted, m.wrong = m.now, wrong
	m.now = m.now.Add(time.Minute)
	m.start()
}

// pretend changes the boot ID and nothing else, as some container managers do.
func (m *machine) pretend(d time.Duration) {
	m.stop()
	m.boot++
	m.now = m.now.Add(d)
	m.start()
}

// retain commits the record of a volume that is unpublished now.
func (m *machine) retain() {
	id := strconv.Itoa(len(m.records))
	commit(m.t, m.s, put(retained(id, m.wall())))
	m.records[volume.ID(id)] = &promised{unpublished: m.now}
	m.noted()
}

// rewrite commits a record again as it was loaded.
func (m *machine) rewrite(id volume.ID) {
	if m.records[id] == nil {
		return
	}
	commit(m.t, m.s, put(load(m.t, m.s, m.wall())[id]))
	m.noted()
}

// check compares what is promised with what is loaded.
func (m *machine) check() {
	m.t.Helper()
	loaded := load(m.t, m.s, m.wall())
	if len(loaded) != len(m.records) {
		m.t.Errorf("%d records, want %d", len(loaded), len(m.records))
	}
	for id, want := range m.records {
		age, got := m.now.Sub(want.unpublished), m.wall().Sub(loaded[id].Unpublished)
		if got < age-want.younger || got > age+want.older {
			m.t.Fatalf("boot %d, record %s: unpublished %v ago, want %v, less by at most %v or more by %v",
				m.boot, id, got, age, want.younger, want.older)
		}
	}
}
