package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/katbox/katbox/soak/internal/host"
	"github.com/katbox/katbox/soak/testbed"
)

// environment is where everything happens: one file system for both servers.
type environment struct {
	options options
	layout  testbed.Layout
	disk    *host.Disk
	// self is this program.
	self    string
	servers int
	say     func(format string, args ...any)
}

func newEnvironment(o options, progress io.Writer) (*environment, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program: %w", err)
	}
	l, err := testbed.MakeLayout(o.dir, "bench.log")
	if err != nil {
		return nil, err
	}
	size, inodes := o.room()
	disk, err := host.MakeDisk(l.Work, l.Image, host.DiskKind(o.disk), size, inodes)
	if err != nil {
		return nil, errors.Join(err, l.Remove())
	}
	began := time.Now()
	return &environment{options: o, layout: l, disk: disk, self: self, say: func(format string, args ...any) {
		fmt.Fprintf(progress, "%6.1fs  %s\n", time.Since(began).Seconds(), fmt.Sprintf(format, args...))
	}}, nil
}

// tearDown removes the environment. The servers have to be stopped.
func (s *environment) tearDown() error {
	// The namespaces of the servers keep nothing here: they are copies.
	return errors.Join(s.disk.Close(), s.layout.Remove())
}

// keep says where everything is, for whoever wants to know why it failed.
func (s *environment) keep(err error) error {
	return fmt.Errorf("%w; the servers' logs are in %s", err, s.layout.Dir)
}

// leastDisk is the size of an ordinary disk. A small one would get a small journal,
// and whoever finds that full writes it out on its own CPU time: it then counts by
// chance for the one or the other. The file is sparse.
const leastDisk = 100 << 30

// room is how large a file system has to be. Each directory has an inode and a
// block: two for a volume of Katbox, one for its pod in the floor's directory. The
// rest is for what the rounds leave. A tenth has to be free, or else the daemon
// takes the disk for too full; twice as much makes sure.
func (o options) room() (size, inodes int64) {
	var volumes int64
	for _, n := range o.retained {
		volumes += int64(n)
	}
	for _, n := range o.held {
		volumes += 2 * int64(n)
	}
	volumes += int64(o.due) * (int64(o.dueFor/time.Second) + 1)
	volumes += 2 * int64(o.burst) * int64(o.rounds)
	// A caller may get 5,000 calls a second out of a server, and each volume takes two.
	perRound := int64(o.round.Seconds()*5_000/2) + 1
	// At most spots four servers take turns.
	volumes += 4 * perRound * int64(o.rounds+2) * int64(len(o.spots()))
	inodes = 3*volumes*5/4 + 10_000
	const block, inode, record = 4096, 256, 1024
	size = (inodes*(block+inode) + volumes*record) * 5 / 4
	return max(size, leastDisk), inodes
}
