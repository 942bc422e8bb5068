package store

import "time"

const (
	// maxUnseen bounds what the wall clock may add when CLOCK_BOOTTIME began anew: enough to
	// restart a big machine, little to lose if the clock is wrong.
	maxUnseen = 15 * time.Minute
	// maxReading bounds what is believed of a reading, 73 years. Sums of a few do not overflow.
	maxReading = 1 << 61
	// lookInterval is how long the store goes without a look at the clocks. A crash takes with it
	// what CLOCK_BOOTTIME told since the last one.
	lookInterval = 5 * time.Minute
)

// timeline is CLOCK_BOOTTIME carried on across reboots, so that a step of the wall clock moves no
// deadline.
//
// Deadlines run on the monotonic clock, which ends with the process. So the store keeps the time of
// an unpublish by the wall clock and by the timeline. [Store.Load] works out how long ago it was,
// and subtracts that from a time with a monotonic reading. Within one boot only CLOCK_BOOTTIME
// counts. Time between the readings of two clocks makes a deadline later, never earlier. Where both
// clocks agree to 10 ms, the time is that of the wall clock, to the nanosecond: a step of no more than
// that moves a deadline with it.
//
// A reboot begins CLOCK_BOOTTIME anew, and only the wall clock tells how long the machine was off.
// So each transaction, the opening of the store, and lookInterval without a transaction note both
// clocks, which is a look. The first look in another boot adds to the timeline the time since the
// last look by the wall clock, but
//
//   - not less than nothing: a wall clock without a battery does not begin a lifespan again;
//   - at most maxUnseen more than the new boot has lasted by CLOCK_BOOTTIME. A wall clock that is
//     years ahead looks like a machine that was off for years, and is not believed: data deleted
//     too early is lost, and data kept while a machine is off disturbs no one.
//
// The timeline is not corrected when the wall clock is set later. Hence
//
//   - if the wall clock goes on across the reboot, right or wrong, and the new boot begins at most
//     maxUnseen after the last look, no deadline moves. More time makes deadlines later;
//   - whatever the wall clock shows, a reboot makes deadlines earlier by at most maxUnseen, and
//     later by at most the time between the two looks;
//   - a volume is kept for ever only on a machine that always reboots before the daemon has run for
//     lookInterval or written anything, with a wall clock that does not go on.
//
// A container manager may give each container a boot ID of its own, while CLOCK_BOOTTIME goes on.
// So if CLOCK_BOOTTIME shows no less than at the last look, only the difference counts. Another
// time namespace counts as another boot, because readings of two cannot be compared.
//
// The wall clock decides alone for a record without a known timeline: one of another boot by a
// version without timelines, one after a look that cannot be used, and one for which the boot or
// CLOCK_BOOTTIME is unknown, then or now. Written again it is on the timeline. A stored time in the
// future counts as now, so a clock that was stepped back can only lengthen a lifespan.
//
// The monotonic clock stops while a machine is suspended. A running daemon is late by that until
// the next Load, and a record that it writes again before stays late. A disk in another machine
// meets another CLOCK_BOOTTIME: a wall clock that is ahead is believed for as long as that machine
// has been up, beside maxUnseen. A version without timelines notes no look, so the time that it ran
// counts as time off.
type timeline struct {
	number uint64 // the boot that the timeline began in; in that boot it is CLOCK_BOOTTIME
	boot   uint64 // the present boot, or 0 if there is no timeline
	ahead  int64  // of CLOCK_BOOTTIME in the present boot, negative if behind
}

// storedLook is a timeline on disk with what the clocks showed at the time.
type storedLook struct {
	Number   uint64 `cbor:"1,keyasint"`
	Boot     uint64 `cbor:"2,keyasint"`
	Ahead    int64  `cbor:"3,keyasint,omitempty"`
	Boottime int64  `cbor:"4,keyasint,omitempty"`
	Wall     int64  `cbor:"5,keyasint"`
}

// after returns the clock with the timeline that goes on from the last look. If that cannot be
// used, a timeline begins.
func (c clock) after(noted []byte) clock {
	// Reads the wall clock first: a delay until the other reading is not counted twice.
	m := c.at(c.now())
	switch last, ok := decodeLook(noted); {
	case m.boot == 0:
		c.line = timeline{}
	case !ok:
		c.line = timeline{number: m.boot, boot: m.boot}
	default:
		c.line, c.rebooted = last.next(m), last.isBefore(m)
	}
	return c
}

// look returns what to note of the clocks.
func (c clock) look() (value []byte, ok bool) {
	// Reads the wall clock last: a delay in between is lost, and not counted twice.
	m := c.writing()
	wall := toWall(c.now())
	if m.boot == 0 || m.boot != m.line.boot {
		return nil, false
	}
	body, err := encoding.Marshal(storedLook{m.line.number, m.boot, m.line.ahead, m.boottime, wall})
	if err != nil {
		return nil, false
	}
	return sealValue(timelineKey, body), true
}

func decodeLook(value []byte) (l storedLook, ok bool) {
	body, err := openValue(timelineKey, value)
	if err != nil || decoding.Unmarshal(body, &l) != nil {
		return storedLook{}, false
	}
	credible := func(reading int64) bool { return -maxReading <= reading && reading <= maxReading }
	return l, l.Number != 0 && l.Boot != 0 && l.Wall > 0 && l.Boottime >= 0 &&
		credible(l.Ahead) && credible(l.Boottime) && credible(l.Ahead+l.Boottime)
}

// next returns the timeline as it goes on at m.
func (l storedLook) next(m moment) timeline {
	if l.Boot == m.boot {
		return timeline{l.Number, m.boot, l.Ahead}
	}
	seen := m.boottime
	if seen >= l.Boottime { // perhaps another boot ID only
		seen -= l.Boottime
	}
	passed := min(max(toWall(m.now)-l.Wall, 0), max(seen, 0)+int64(maxUnseen))
	return timeline{l.Number, m.boot, l.Boottime + l.Ahead + passed - m.boottime}
}

// isBefore reports whether the look was certainly in an earlier boot than m. A machine that has
// been up longer than it was at the look counts as not rebooted.
func (l storedLook) isBefore(m moment) bool {
	return m.boot != 0 && l.Boot != m.boot && m.boottime < l.Boottime
}

// reading returns what is stored for the instant itself.
func (m moment) reading() (boot uint64, reading int64) {
	if m.boot == m.line.boot {
		return m.line.number, m.boottime + m.line.ahead
	}
	return m.boot, m.boottime
}

// readingOf returns the instant on the clock of a stored reading, if that is known: the timeline,
// or CLOCK_BOOTTIME itself, by which an older version writes.
func (m moment) readingOf(boot uint64) (reading int64, ok bool) {
	if number, reading := m.reading(); boot != 0 && boot == number {
		return reading, true
	}
	return m.boottime, boot != 0 && boot == m.boot
}

// Rebooted reports whether the kernel certainly booted since an earlier process opened the store,
// so that nothing is mounted any more that was mounted then. It stays true, for later processes
// too, until [Store.RebootSeen]: a process that ends before has not recorded the consequences.
func (s *Store) Rebooted() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.rebooted
}

// RebootSeen notes that the consequences of a reboot are recorded.
func (s *Store) RebootSeen() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.rebooted {
		return nil
	}
	s.rebooted = false
	return s.write(nothing)
}

// noteReboot writes what Rebooted returns, in the transaction that notes the clocks: by them the
// next process tells a reboot.
func (s *Store) noteReboot(t transaction) error {
	if s.rebooted == s.noted {
		return nil
	}
	var value []byte // deletes the key
	if s.rebooted {
		value = []byte{1}
	}
	return t.set(metaBucket, rebootedKey, value)
}
