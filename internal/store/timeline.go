package store

import "time"

const (
	// maxUnseen bounds what the wall clock may add when CLOCK_BOOTTIME began
	// anew: enough to restart a big machine, little to lose if it is wrong.
	maxUnseen = 15 * time.Minute
	// maxReading bounds what is believed of a reading, 73 years. Sums of a few
	// do not overflow.
	maxReading = 1 << 61
)

// timeline is CLOCK_BOOTTIME carried on across reboots. In the boot that it
// began in it is CLOCK_BOOTTIME. The package comment says what it counts later.
type timeline struct {
	// number is the boot that it began in, and tells it from others.
	number uint64
	// boot is the present boot, or 0 if there is no timeline.
	boot uint64
	// ahead is by how much it is ahead of CLOCK_BOOTTIME in the present boot;
	// negative if it is behind.
	ahead int64
}

// storedLook is a timeline on disk, and what the clocks showed when it was
// written; see the package comment.
type storedLook struct {
	Number   uint64 `cbor:"1,keyasint"`
	Boot     uint64 `cbor:"2,keyasint"`
	Ahead    int64  `cbor:"3,keyasint,omitempty"`
	Boottime int64  `cbor:"4,keyasint,omitempty"`
	Wall     int64  `cbor:"5,keyasint"`
}

// after returns the clock with the timeline that goes on from what was noted
// last. If that cannot be used, a timeline begins.
func (c clock) after(noted []byte) clock {
	// The wall clock is looked at first: time that passes before the other look
	// is not counted twice then.
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

// look returns what is to be noted of the clocks.
func (c clock) look() (value []byte, ok bool) {
	// The wall clock is looked at last: time that passes in between is lost, and
	// not counted twice.
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

func decodeLook(value []byte) (storedLook, bool) {
	body, err := openValue(timelineKey, value)
	if err != nil {
		return storedLook{}, false
	}
	var l storedLook
	if err := decoding.Unmarshal(body, &l); err != nil {
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
	// CLOCK_BOOTTIME tells how long this boot has been going on. If it shows no
	// less than before it may have gone on all the time: a container manager
	// that makes boot IDs of its own leaves it alone.
	seen := m.boottime
	if seen >= l.Boottime {
		seen -= l.Boottime
	}
	passed := min(max(toWall(m.now)-l.Wall, 0), max(seen, 0)+int64(maxUnseen))
	return timeline{l.Number, m.boot, l.Boottime + l.Ahead + passed - m.boottime}
}

// reading returns what is stored for the instant itself.
func (m moment) reading() (boot uint64, reading int64) {
	if m.boot == m.line.boot {
		return m.line.number, m.boottime + m.line.ahead
	}
	return m.boot, m.boottime
}

// readingOf returns the instant on the clock that a stored reading is of, if
// that can be told: on the timeline, or on CLOCK_BOOTTIME itself, by which an
// older version writes.
func (m moment) readingOf(boot uint64) (reading int64, ok bool) {
	if number, reading := m.reading(); boot != 0 && boot == number {
		return reading, true
	}
	return m.boottime, boot != 0 && boot == m.boot
}
