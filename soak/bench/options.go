package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/katbox/katbox/soak/internal/launch"
	"github.com/katbox/katbox/soak/internal/readme"
)

// options says what to measure.
type options struct {
	callers, held, retained []int
	// at is the number of callers with held and with retained volumes.
	at       int
	peak     int
	writing  int
	logs     int
	rounds   int
	round    time.Duration
	idle     time.Duration
	settle   time.Duration
	due      int
	dueFor   time.Duration
	burst    int
	daemon   string
	dir      string
	disk     string
	json     string
	readme   string
	unpinned []string // the flags that differ from the preset
}

// presets are the defaults of the flags, by name. What a preset does not name is
// as in full.
var presets = map[string]map[string]string{
	"full": {},
	"quick": {
		"callers": "1,8", "held": "0,50", "retained": "0,1000", "rounds": "2", "round": "300ms", "idle": "1s",
		"settle": "2s", "writing": "2", "peak": "10000", "due": "200", "due-for": "2s", "burst": "500",
	},
}

func parseOptions(args []string) (options, error) {
	var o options
	var preset string
	flags := launch.Flags("bench")
	flags.StringVar(&preset, "preset", "full", "full, or quick for a look whether it works; the other flags change it")
	flags.IntSliceVar(&o.callers, "callers", []int{1, 8, 64}, "numbers of parallel callers, with nothing held or retained")
	flags.IntVar(&o.at, "at", 8, "number of parallel callers with held or retained volumes")
	flags.IntSliceVar(&o.held, "held", []int{0, 500, 5_000}, "numbers of volumes held mounted")
	flags.IntSliceVar(&o.retained, "retained", []int{0, 10_000, 100_000, 1_000_000}, "numbers of retained volumes")
	flags.IntVar(&o.peak, "peak", 1_000_000,
		"how many volumes were retained before and are gone, with nothing held or retained; 0 leaves that out")
	flags.IntVar(&o.writing, "writing", 4,
		"number of parallel callers beside a process that writes to the same disk without end; 0 leaves that out")
	flags.IntVar(&o.logs, "logs", 8,
		"number of parallel callers with another Katbox that keeps what containers print; 0 leaves that out")
	flags.IntVar(&o.rounds, "rounds", 5, "how often each is measured; what is told is the median")
	flags.DurationVar(&o.round, "round", 2*time.Second, "about how long a round takes")
	flags.DurationVar(&o.idle, "idle", 15*time.Second, "for how long both are watched at rest")
	flags.DurationVar(&o.settle, "settle", 3*time.Minute, "how long a server may take to come to rest after its start")
	flags.IntVar(&o.due, "due", 1_000, "how many retained volumes fall due each second; 0 leaves that out")
	flags.DurationVar(&o.dueFor, "due-for", 20*time.Second, "for how long volumes fall due")
	flags.IntVar(&o.burst, "burst", 10_000, "how many retained volumes fall due at once; 0 leaves that out")
	flags.StringVar(&o.daemon, "daemon", "", "the katbox binary (default: katbox beside this binary)")
	flags.StringVar(&o.dir, "dir", "",
		"an empty or new directory for everything, with 15 GB free for a million volumes (default: a temporary one)")
	flags.StringVar(&o.disk, "disk", "ext4", "ext4 on a loop device; tmpfs and auto only show whether it works")
	flags.StringVar(&o.json, "json", "", "write the result to this file, with every round")
	flags.StringVar(&o.readme, "readme", "", "write the table into this file, between the lines <!-- bench --> and <!-- /bench -->")
	if err := launch.Parse(flags, args); err != nil {
		return o, err
	}
	values, ok := presets[preset]
	if !ok {
		return o, fmt.Errorf("%w: --preset %s is not known; there are full and quick", launch.ErrUsage, preset)
	}
	flags.Visit(func(f *pflag.Flag) {
		if f.Name != "readme" && f.Name != "json" && f.Name != "dir" {
			o.unpinned = append(o.unpinned, "--"+f.Name+" "+strings.Trim(f.Value.String(), "[]"))
		}
	})
	for name, value := range values {
		if f := flags.Lookup(name); !f.Changed {
			if err := f.Value.Set(value); err != nil {
				return o, fmt.Errorf("preset %s: --%s: %w", preset, name, err)
			}
		}
	}
	return o, o.complete()
}

// complete checks the flags and finds the daemon.
func (o *options) complete() error {
	for _, list := range []struct {
		flag    string
		numbers []int
		least   int
	}{{"callers", o.callers, 1}, {"held", o.held, 0}, {"retained", o.retained, 0}} {
		for _, n := range list.numbers {
			if n < list.least {
				return fmt.Errorf("%w: --%s %d has to be at least %d", launch.ErrUsage, list.flag, n, list.least)
			}
		}
	}
	switch {
	case o.at < 1:
		return fmt.Errorf("%w: --at %d has to be at least 1", launch.ErrUsage, o.at)
	case o.rounds < 1:
		return fmt.Errorf("%w: --rounds %d has to be at least 1", launch.ErrUsage, o.rounds)
	case o.round <= 0 || o.idle <= 0:
		return fmt.Errorf("%w: --round %s and --idle %s have to be longer than 0", launch.ErrUsage, o.round, o.idle)
	case o.writing < 0:
		return fmt.Errorf("%w: --writing %d cannot be negative", launch.ErrUsage, o.writing)
	case o.logs < 0:
		return fmt.Errorf("%w: --logs %d cannot be negative", launch.ErrUsage, o.logs)
	case o.peak < 0:
		return fmt.Errorf("%w: --peak %d cannot be negative", launch.ErrUsage, o.peak)
	case o.due < 0 || o.burst < 0 || o.dueFor <= 0:
		return fmt.Errorf("%w: --due %d and --burst %d cannot be negative, and --due-for %s has to be longer than 0", launch.ErrUsage,
			o.due, o.burst, o.dueFor)
	}
	var err error
	if o.daemon, err = launch.Daemon(o.daemon, "katbox", "make build"); err != nil {
		return err
	}
	if o.readme != "" {
		// Half an hour later is too late to find that out.
		return readme.Check(o.readme, readmePart)
	}
	return nil
}

// spot is where something is measured.
type spot struct {
	Callers  int `json:"callers"`
	Held     int `json:"held"`
	Retained int `json:"retained"`
	// Peak is how many volumes were retained once. They are gone.
	Peak int `json:"peak,omitempty"`
	// Writing: another process writes to the same disk without end.
	Writing bool `json:"writing,omitempty"`
	// Printing: the pods of another Katbox have printed something, and it keeps that.
	Printing bool `json:"printing,omitempty"`
}

// spots are where the sweeps lead, each once; the most retained volumes come last, then
// the process that writes without end, and then those that are gone.
func (o *options) spots() []spot {
	var list []spot
	seen := map[spot]bool{}
	add := func(s spot) {
		if !seen[s] {
			seen[s] = true
			list = append(list, s)
		}
	}
	for _, n := range o.callers {
		add(spot{Callers: n})
	}
	for _, n := range o.held {
		add(spot{Callers: o.at, Held: n})
	}
	for _, n := range o.retained {
		add(spot{Callers: o.at, Retained: n})
	}
	if o.writing > 0 {
		add(spot{Callers: o.writing, Writing: true})
	}
	if o.logs > 0 {
		add(spot{Callers: o.logs, Printing: true})
	}
	if o.peak > 0 {
		add(spot{Callers: o.at, Peak: o.peak})
	}
	return list
}
