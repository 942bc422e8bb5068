package main

import (
	"time"

	"github.com/spf13/pflag"

	"github.com/katbox/katbox/internal/duration"
)

// durationFlag is a duration in the units that internal/duration reads.
type durationFlag time.Duration

func durationVar(flags *pflag.FlagSet, d *time.Duration, name string, value time.Duration, usage string) {
	*d = value
	flags.Var((*durationFlag)(d), name, usage)
}

// Set reads the flag's value.
func (f *durationFlag) Set(text string) error {
	d, err := duration.Parse(text)
	*f = durationFlag(d)
	return err
}

// String returns the value, for the default in --help.
func (f *durationFlag) String() string { return duration.Format(time.Duration(*f)) }

// Type names the value in --help.
func (f *durationFlag) Type() string { return "duration" }
