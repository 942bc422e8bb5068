package main

import (
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/katbox/katbox/soak/internal/history"
	"github.com/katbox/katbox/soak/story"
)

// Once is the promise about volumes on arrays.
const Once history.Promise = "a volume on an array is not doubled or forgotten" // 15. whatever answer was lost

// findings are what was found broken. They are told at once.
type findings struct {
	history.Findings

	mu    sync.Mutex
	out   io.Writer
	began time.Time
}

func newFindings(out io.Writer) *findings { return &findings{out: out, began: time.Now()} }

// broken notes that a promise was broken. The volume is nil where it is about none.
func (f *findings) broken(p history.Promise, v *history.Volume, format string, args ...any) {
	what := fmt.Sprintf(format, args...)
	f.Add(p, v, what)
	f.say("BROKEN: %s: %s", p, what)
	if v != nil {
		for _, line := range v.Story() {
			f.say("    %s", line)
		}
	}
}

// add goes on with the story of a volume, and returns whether all of it fits. What does not breaks the promise, once.
func (f *findings) add(p history.Promise, v *volume, e story.Event) bool {
	e.At = time.Now()
	e.Until = e.At
	before := v.story.Broken()
	v.story.Add(e)
	broken := v.story.Broken()
	if broken != "" && before == "" {
		f.broken(p, v.calls, "volume %s (%s, %s): %s", v.id, v.name, v.kind, broken)
		for _, told := range v.story.Told() {
			f.say("    %s", told)
		}
	}
	return broken == ""
}

// say prints a line, with the seconds since the beginning.
func (f *findings) say(format string, args ...any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	fmt.Fprintf(f.out, "%7.2f  %s\n", time.Since(f.began).Seconds(), fmt.Sprintf(format, args...))
}

// err says what came out.
func (f *findings) err() error {
	var all []error
	for _, one := range f.All() {
		all = append(all, fmt.Errorf("%s: %s", one.Promise, one.What))
	}
	return errors.Join(all...)
}
