package ephemeral

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

// queueTest plays with a queue, and notes what it says.
type queueTest struct {
	trashQueue
	now time.Time
	// begun are the entries whose erasure began, open the questions, answered those that are not.
	begun, open, answered []string
}

// start begins what may begin.
func (s *queueTest) start() {
	for entry := s.next(s.now); entry != nil; entry = s.next(s.now) {
		entry.stop = func() {}
		s.begun = append(s.begun, entry.name)
	}
}

// end ends the erasure of an entry.
func (s *queueTest) end(name string, how func(entry *trashEntry)) {
	entry := s.known[name]
	entry.stop = nil
	how(entry)
	s.start()
}

func (s *queueTest) ended(names ...string) {
	for _, name := range names {
		s.end(name, s.remove)
	}
}

func (s *queueTest) refused(name string) {
	s.end(name, func(entry *trashEntry) { s.setAside(entry, s.now) })
}

// pass lists a trash that holds these.
func (s *queueTest) pass(names ...string) {
	s.beginPass()
	s.count(len(names))
	s.page(names)
	s.endPass()
	s.start()
}

func (s *queueTest) deleted(names ...string) {
	for _, name := range names {
		s.delete(name, "csi-x")
	}
	s.start()
}

func (s *queueTest) after(wait time.Duration) {
	s.now = s.now.Add(wait)
	s.retry(s.now)
	s.start()
}

func (s *queueTest) asked(number int) {
	s.open = append(s.open, fmt.Sprint(number))
	s.ask(s.now)
}

// look notes which questions need not wait any longer.
func (s *queueTest) look() {
	answered, _ := s.answer(s.now)
	s.answered = append(s.answered, s.open[:answered]...)
	s.open = s.open[answered:]
}

func series(prefix string, count int) (names []string) {
	for i := range count {
		names = append(names, fmt.Sprintf("%s%d", prefix, i))
	}
	return names
}

func TestTrashQueue(t *testing.T) {
	first := series("d", maxStarted)
	tests := []struct {
		name              string
		play              func(s *queueTest)
		begun             []string
		answered          []string
		entries, setAside int
	}{
		{name: "in the order of the deletions, some at a time", play: func(s *queueTest) {
			s.pass()
			s.deleted(append(first, "x", "y")...)
			s.ended("d3")
		}, begun: append(first, "x"), entries: maxStarted + 1},
		{name: "what was deleted and what was found in turns", play: func(s *queueTest) {
			s.pass(first...)
			s.beginPass()
			s.page([]string{"f1", "f2"})
			s.endPass()
			s.delete("n1", "")
			s.delete("n2", "")
			s.ended(first...)
		}, begun: append(first, "n1", "f1", "n2", "f2"), entries: 4},
		{name: "listed before the deletion is told", play: func(s *queueTest) {
			s.pass("a")
			s.deleted("a")
		}, begun: []string{"a"}, entries: 1},
		{name: "a question waits for what came before it", play: func(s *queueTest) {
			s.pass("a")
			s.deleted("b")
			s.asked(1)
			s.deleted("c")
			s.ended("c", "a")
			s.look()
			s.asked(2)
			s.refused("b")
			s.look()
		}, begun: []string{"a", "b", "c"}, answered: []string{"1", "2"}, setAside: 1},
		{name: "a question waits for what it does not know", play: func(s *queueTest) {
			s.beginPass()
			s.count(2)
			s.page([]string{"a"})
			s.start()
			s.asked(1)
			s.ended("a")
			s.look()
			s.page([]string{"b"})
			s.start()
			s.endPass()
			s.look()
		}, begun: []string{"a", "b"}, entries: 1},
		{name: "but not for long", play: func(s *queueTest) {
			s.pass("a")
			s.asked(1)
			s.after(progressInterval - 1)
			s.look()
			s.asked(2)
			s.after(1)
			s.look()
		}, begun: []string{"a"}, answered: []string{"1"}, entries: 1},
		{name: "set aside, and tried again", play: func(s *queueTest) {
			s.pass("a")
			s.refused("a")
			s.after(deleteBackoff.First * 8 / 10)
			s.pass("a")
			s.after(deleteBackoff.First)
		}, begun: []string{"a", "a"}, setAside: 1},
		{name: "and gone then", play: func(s *queueTest) {
			s.pass("a")
			s.refused("a")
			s.after(deleteBackoff.Longest)
			s.ended("a")
		}, begun: []string{"a", "a"}},
		{name: "a slice is over only while others wait", play: func(s *queueTest) {
			s.pass(first...)
			s.after(time.Hour)
			if over, next := s.overtime(s.now); len(over) != 0 || !next.IsZero() {
				panic("nothing waits")
			}
			s.delete("x", "")
			over, _ := s.overtime(s.now)
			if len(over) != maxStarted {
				panic("all are over")
			}
			s.end(over[0].name, func(entry *trashEntry) { s.requeue(entry) })
		}, begun: append(first, "x"), entries: maxStarted + 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := &queueTest{trashQueue: newTrashQueue(), now: time.Now()}
			tt.play(s)
			if !slices.Equal(s.begun, tt.begun) || !slices.Equal(s.answered, tt.answered) {
				t.Errorf("begun %q, answered %q; want %q and %q", s.begun, s.answered, tt.begun, tt.answered)
			}
			if entries, setAside := s.held(); entries != tt.entries || setAside != tt.setAside {
				t.Errorf("%d to be erased, %d set aside; want %d and %d", entries, setAside, tt.entries, tt.setAside)
			}
		})
	}
}

// TestTrashQueueIsBounded: whatever is in the trash, and whatever becomes of it, few entries are
// known by name, and all are counted.
func TestTrashQueueIsBounded(t *testing.T) {
	const many = 10 * maxWaiting
	s := &queueTest{trashQueue: newTrashQueue(), now: time.Now()}
	check := func(when string, entries, setAside int) {
		t.Helper()
		if got, aside := s.held(); got != entries || aside != setAside {
			t.Errorf("%s: %d to be erased, %d set aside; want %d and %d", when, got, aside, entries, setAside)
		}
		if known := len(s.known); known > 2*maxWaiting+maxAside+maxStarted {
			t.Errorf("%s: %d are known by name", when, known)
		}
	}
	// A burst of deletions that is faster than erasing.
	s.pass()
	names := series("n", many)
	s.deleted(names...)
	s.asked(1)
	check("deleted", many, 0)
	done := 0
	endAll := func(how func(*trashEntry)) {
		for len(s.running) > 0 {
			for entry := range s.running {
				s.end(entry.name, how)
				done++
			}
		}
	}
	endAll(s.remove)
	s.look()
	if len(s.answered) != 0 {
		t.Error("answered before all was erased")
	}
	check("the known ones are erased", many-done, 0)
	left := names[done:]
	// Twice none of what is left can be erased. What is set aside and known is tried at times of
	// its own.
	for _, when := range []string{"the first pass", "the second pass"} {
		aside := len(s.aside)
		s.beginPass()
		s.count(len(left))
		for names := range slices.Chunk(left, maxWaiting) {
			s.page(names)
			s.start()
			endAll(func(entry *trashEntry) { s.setAside(entry, s.now) })
			check(when+" goes on", len(left)-s.countedAside(), s.countedAside())
		}
		s.endPass()
		check(when, 0, len(left))
		if aside > 0 && len(s.aside) != aside {
			t.Errorf("%d are known that were set aside, then %d", aside, len(s.aside))
		}
	}
	s.look()
	if !slices.Equal(s.answered, []string{"1"}) {
		t.Errorf("answered %q, want 1: all is erased or set aside", s.answered)
	}
	// Then all can.
	s.beginPass()
	s.count(len(left))
	for names := range slices.Chunk(left, maxWaiting) {
		s.page(names)
		s.start()
		endAll(s.remove)
	}
	s.endPass()
	s.after(deleteBackoff.Longest)
	endAll(s.remove)
	check("at the end", 0, 0)
}

// countedAside is how many the queue counts as set aside.
func (s *queueTest) countedAside() int {
	_, setAside := s.held()
	return setAside
}
