package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/lib/retry"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/node/beneath"
	"github.com/katbox/katbox/internal/node/files"
)

const (
	// wanted is in one line of every tenth volume, and nothing else.
	wanted = "CUDA error"
	// lines are how many lines the log of a volume has, 40 bytes each.
	lines = 1600
	// failedEvery is which share of the volumes has what is wanted.
	failedEvery = 10
	// busy is how long a node gives way to calls before each piece of work. Without it all nodes that search would share the cores of this
	// machine, and how soon they end would say how many there are.
	busy = 10 * time.Millisecond
)

// writeFiles writes what all volumes have: one directory for those that failed, and one for the others.
func writeFiles(dir string) error {
	const line = "step 0000: loss 0.123, all is as it was\n"
	log := strings.Repeat(line, lines)
	middle := len(log) / 2 / len(line) * len(line)
	for name, text := range map[string]string{"failed": log[:middle] + wanted + ": out of memory\n" + log[middle:], "others": log} {
		out := filepath.Join(dir, name, "out")
		if err := errors.Join(os.MkdirAll(out, 0o700), os.WriteFile(filepath.Join(out, "log.txt"), []byte(text), 0o600)); err != nil {
			return err
		}
	}
	return nil
}

// Read reads a volume: one of the two directories.
func (v *volumes) Read(_ context.Context, id volume.ID) (*files.Reading, error) {
	i := slices.IndexFunc(v.records, func(r volume.Record) bool { return r.ID == id })
	if i < 0 {
		return nil, volume.ErrNotFound
	}
	name := "others"
	if i%failedEvery == 0 {
		name = "failed"
	}
	fd, err := unix.Open(filepath.Join(v.files, name), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	opener, err := beneath.New(fd)
	if err != nil {
		return nil, errors.Join(err, unix.Close(fd))
	}
	tree := files.New(fd, opener)
	return &files.Reading{Volume: describe(v.records[i]), Tree: tree, Lost: context.Background(), Pace: giveWay,
		Close: func() { tree.Close() }}, nil
}

// giveWay is the pace of a node that has calls.
func giveWay(ctx context.Context) error { return retry.Pause(ctx, busy) }
