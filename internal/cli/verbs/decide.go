package verbs

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/katbox/katbox/internal/model/terminal"
)

// Pin is the verb that keeps a volume for a time. A program brings its examples, and what runs it.
func Pin(verb *cobra.Command) *cobra.Command {
	return decision(verb, "pin", "keeps a retained volume for a time, also if the disk fills up")
}

// Unpin is the verb that takes a pin or a release back.
func Unpin(verb *cobra.Command) *cobra.Command {
	return decision(verb, "unpin", "takes a pin or a release back: the volume is kept for its lifespan")
}

// Release is the verb that lets a volume go soon.
func Release(verb *cobra.Command) *cobra.Command {
	return decision(verb, "release", "lets a retained volume go soon; until then unpin takes that back")
}

// decision is a verb that changes how long one volume is kept.
func decision(verb *cobra.Command, name, does string) *cobra.Command {
	verb.Use, verb.Short, verb.Args = name+" TARGET", does, Arguments(1, 1)
	return verb
}

// Decided says what was done with a volume, and when it expires now; a zero time is not known. pinned is
// when a pin ends, and the zero time for all else.
func Decided(now time.Time, done, volume string, pinned, expires time.Time) string {
	text := done + " " + volume
	when := ""
	if !expires.IsZero() {
		when = fmt.Sprintf("it expires %s (%s)", terminal.In(now, expires), Moment(expires))
	}
	switch {
	case !pinned.IsZero() && expires.After(pinned):
		text += fmt.Sprintf(": until %s a disk that fills up does not make it go earlier. Its lifespan is longer than the pin: %s",
			Moment(pinned), when)
	case when != "":
		text += "; " + when
	}
	return terminal.Clean(text)
}
