// Program fakearray runs fake arrays, each on a port of its own, until it is ended by a signal. It
// prints the URL of each when all listen. How faults are ordered by HTTP is in package fake.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/katbox/katbox/internal/testing/array/fakevpsa"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout, os.Stderr); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "fakearray:", err)
		os.Exit(1)
	}
}

// flags is the command line.
type flags struct {
	arrays         int
	listen         string
	tls            bool
	cert, key, ca  string
	state          string
	token, version string
	pools          string
	latency        time.Duration
	volumes        int
	size           int64
	block          bool
	noRecycleBin   bool
	strings        bool
	data           data
	serial         uint
}

func parse(args []string, stderr io.Writer) (*flags, error) {
	f := &flags{}
	set := flag.NewFlagSet("fakearray", flag.ContinueOnError)
	set.SetOutput(stderr)
	set.IntVar(&f.arrays, "arrays", 1, "how many arrays")
	set.StringVar(&f.listen, "listen", "127.0.0.1:0", "where the first array listens; the others take the next ports, or any when it is 0")
	set.BoolVar(&f.tls, "tls", false, "TLS, with a certificate that is made for each array")
	set.StringVar(&f.cert, "cert", "", "file with a certificate for TLS instead")
	set.StringVar(&f.key, "key", "", "file with its key")
	set.StringVar(&f.ca, "ca-out", "", "file into which the certificates go that a client must trust")
	set.StringVar(&f.state, "state", "", "file for the state, which else is in memory; with several arrays it gets their numbers as suffix")
	set.StringVar(&f.token, "token", "", `what requests must bring (default "token")`)
	set.StringVar(&f.version, "version", "", `version of the array's software (default "22.06-sp1-123")`)
	set.StringVar(&f.pools, "pools", "100000", "capacities of the pools in GiB, with commas")
	set.DurationVar(&f.latency, "latency", 0, "how long each request waits")
	set.IntVar(&f.volumes, "volumes", 0, "how many volumes each array has at the beginning")
	set.Int64Var(&f.size, "size", 1, "size of these in GiB")
	set.BoolVar(&f.block, "block", false, "these are block volumes")
	set.BoolVar(&f.noRecycleBin, "no-recycle-bin", false, "deleted volumes do not go into the recycle bin")
	set.UintVar(&f.serial, "serial", 1, "serial number of the first array, which identifies an array; the others have the next ones")
	set.BoolVar(&f.strings, "strings", false, "numbers are written as strings")
	f.data.define(set)
	if err := set.Parse(args); err != nil {
		return nil, err
	}
	if set.NArg() > 0 {
		return nil, fmt.Errorf("%q is no flag", set.Arg(0))
	}
	if f.arrays < 1 {
		return nil, errors.New("--arrays must be at least 1")
	}
	f.tls = f.tls || f.cert != ""
	return f, f.data.check(f)
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	f, err := parse(args, stderr)
	if err != nil {
		return err
	}
	var cas []byte
	var urls strings.Builder
	for n := range f.arrays {
		r, err := f.start(n, stderr)
		if err != nil {
			return err
		}
		defer r.Close()
		cas = append(cas, r.CA()...)
		fmt.Fprintln(&urls, r.URL)
	}
	if f.ca != "" {
		if err := os.WriteFile(f.ca, cas, 0o644); err != nil {
			return err
		}
	}
	if _, err := io.WriteString(stdout, urls.String()); err != nil {
		return err
	}
	<-ctx.Done()
	return nil
}

// start starts the n-th array.
func (f *flags) start(n int, stderr io.Writer) (*fakevpsa.Running, error) {
	o := fakevpsa.Options{
		Behind:       func(err error) { fmt.Fprintf(stderr, "fakearray: array %d: %v\n", n+1, err) },
		Path:         f.state,
		NoRecycleBin: f.noRecycleBin,
		Settings: fakevpsa.Settings{
			Token: f.token, Version: f.version, Serial: uint32(f.serial) + uint32(n), Strings: f.strings,
		},
	}
	if f.state != "" && f.arrays > 1 {
		o.Path = fmt.Sprintf("%s.%d", f.state, n+1)
	}
	for capacity := range strings.SplitSeq(f.pools, ",") {
		gib, err := strconv.ParseInt(strings.TrimSpace(capacity), 10, 64)
		if err != nil {
			return nil, fmt.Errorf("--pools: %q is no number of GiB", capacity)
		}
		o.Pools = append(o.Pools, fakevpsa.Pool{Capacity: gib})
	}
	address, err := behind(f.listen, n)
	if err != nil {
		return nil, fmt.Errorf("--listen: %w", err)
	}
	if err := f.data.apply(&o); err != nil {
		return nil, err
	}
	a, err := fakevpsa.New(o)
	if err != nil {
		return nil, err
	}
	if f.volumes > 0 && len(a.Volumes()) == 0 {
		if err := a.Seed("volume-", f.volumes, f.size, f.block); err != nil {
			return nil, err
		}
	}
	if f.latency > 0 {
		if _, err := a.Fail(fakevpsa.Fault{Kind: fakevpsa.Delay, Delay: f.latency}); err != nil {
			return nil, err
		}
	}
	return a.Listen(fakevpsa.Listen{Address: address, TLS: f.tls, CertFile: f.cert, KeyFile: f.key})
}

// behind returns the address whose port is n more; port 0 stays.
func behind(address string, n int) (string, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return "", err
	}
	number, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return "", err
	}
	if number > 0 {
		number += uint64(n)
	}
	return net.JoinHostPort(host, strconv.FormatUint(number, 10)), nil
}
