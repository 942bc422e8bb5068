package main

import (
	"fmt"
	"time"

	"github.com/katbox/katbox/soak/internal/launch"
	"github.com/katbox/katbox/soak/internal/readme"
)

// shortestLifespan is what a fast machine needs for the story.
const shortestLifespan = 5 * time.Second

// usualLifespan keeps the demo short. Where files expire before the story is told, it is told once more with slowLifespan.
const (
	usualLifespan = 15 * time.Second
	slowLifespan  = 2 * time.Minute
)

// options says what to do.
type options struct {
	daemon   string
	lifespan time.Duration
	readme   string
}

// parseOptions reads the command line, and finds the daemon.
func parseOptions(args []string) (options, error) {
	var o options
	flags := launch.Flags("demo")
	flags.StringVar(&o.daemon, "daemon", "", "the katbox binary (default: katbox beside this binary)")
	flags.DurationVar(&o.lifespan, "lifespan", usualLifespan, "how long files outlive their pod; a slow machine needs longer")
	flags.StringVar(&o.readme, "readme", "", "write what the demo prints into this page, between the lines <!-- demo --> and <!-- /demo -->")
	if err := launch.Parse(flags, args); err != nil {
		return o, err
	}
	if o.lifespan < shortestLifespan || o.lifespan%time.Second != 0 {
		return o, fmt.Errorf("%w: --lifespan is %s; it has to be whole seconds, at least %s", launch.ErrUsage, o.lifespan, shortestLifespan)
	}
	if o.readme != "" {
		if err := readme.Check(o.readme, readmePart); err != nil {
			return o, err
		}
	}
	var err error
	o.daemon, err = launch.Daemon(o.daemon, "katbox", "make build")
	return o, err
}
