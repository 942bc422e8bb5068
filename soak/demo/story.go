package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/katbox/katbox/soak/internal/host"
	"github.com/katbox/katbox/soak/internal/pause"
)

// pollInterval is how often something is looked at that is waited for.
const pollInterval = 50 * time.Millisecond

// What the pods write, in bytes, on a disk of 64 MiB of which the daemon takes
// 20 for its records and their journal. The first filler leaves more free than the headroom, a
// tenth of the disk. Each further one leaves half a mebibyte, so that the oldest
// retained volume of a pod that succeeded goes, and one is enough.
const (
	serveBytes  = 2 * mebibyte
	importBytes = 11 * mebibyte
	trainBytes  = 11 * mebibyte
)

var fillerBytes = []int64{11 * mebibyte, 17 * mebibyte / 2, 11 * mebibyte}

// logsName is what the daemon calls the volume with the logs of a pod.
const logsName = "katbox.logs"

// errSlow says that the story took longer than the files are kept.
var errSlow = errors.New("this machine is too slow for the story: files expired before it was told; " +
	"try make demo FLAGS=\"--lifespan 5m\"")

// story is what happens on the node, act by act.
type story struct {
	*node
	*transcript
	// web runs all the time. etl succeeds and train fails; the fillers come later.
	web, etl, train *pod
	fillers         []*pod
}

// tell plays all acts.
func (n *node) tell(ctx context.Context, t *transcript) error {
	s := &story{node: n, transcript: t}
	for _, act := range []func(context.Context) error{s.open, s.find, s.fill, s.crash, s.expire} {
		if err := act(ctx); err != nil {
			return err
		}
	}
	return nil
}

// open starts the node, runs the first pods and deletes two of them.
func (s *story) open(ctx context.Context) error {
	s.say("This is a node: the real katbox daemon, real mounts, a disk of 64 MiB.\n"+
		"Katbox keeps a pod's files for %s after the pod is gone (--afterlifespan; usually 12h).", s.lifespan)
	if err := s.start(ctx); err != nil {
		return err
	}
	var err error
	if s.web, err = s.launch(ctx, "shop", "web-0", "serve.sh", serveBytes); err != nil {
		return err
	}
	if err := poll(ctx, "pod "+s.web.String()+" does not serve", s.requested); err != nil {
		return err
	}
	if s.etl, err = s.launch(ctx, "etl", "import-41", "import.sh", importBytes); err != nil {
		return err
	}
	if s.train, err = s.launch(ctx, "ml", "train-7", "train.sh", trainBytes); err != nil {
		return err
	}
	if err := errors.Join(s.end(ctx, s.etl, 0), s.end(ctx, s.train, 1)); err != nil {
		return err
	}
	s.say("Three pods run, each with a Katbox volume. web-0 goes on, import-41 succeeds, train-7 fails.\n" +
		"Then import-41 and train-7 are deleted. Their files are still there:")
	if err := s.toldOf(ctx, s.train); err != nil {
		return err
	}
	if err := s.measured(ctx); err != nil {
		return err
	}
	return s.show(ctx, "ls")
}

// toldOf waits until the daemon has kept what a pod printed, and how it ended.
func (s *story) toldOf(ctx context.Context, p *pod) error {
	logs := volumeID(p.name, logsName)
	err := poll(ctx, "the daemon does not keep the logs of pod "+p.String(), func() (bool, error) {
		volumes, err := s.list(ctx)
		if err != nil || !slices.ContainsFunc(volumes, func(v listed) bool { return v.ID == logs }) {
			return false, err
		}
		none, err := absent(filepath.Join(s.layout.Work, podUID(p.name), logs, "pod.json"))
		return !none, err
	})
	return s.orSlow(p, err)
}

// find finds out why the job failed.
func (s *story) find(ctx context.Context) error {
	s.say("Why did train-7 fail? How it ended, and what it printed:")
	if err := s.show(ctx, "describe", "ml/train-7"); err != nil {
		return s.orSlow(s.train, err)
	}
	s.say("Look at its files, copy everything:")
	for _, args := range [][]string{
		{"ls", "-lR", "ml/train-7:"},
		{"cp", "ml/train-7", "./train-7"},
	} {
		if err := s.show(ctx, args...); err != nil {
			return s.orSlow(s.train, err)
		}
	}
	for _, name := range []string{"train.log", "checkpoints/step-1200.ckpt"} {
		written, err := os.ReadFile(filepath.Join(s.train.data(), name))
		if err != nil {
			return s.orSlow(s.train, fmt.Errorf("what the job wrote: %w", err))
		}
		copied, err := os.ReadFile(filepath.Join(s.layout.Dir, "train-7", name))
		if err != nil {
			return fmt.Errorf("the copy: %w", err)
		}
		if !bytes.Equal(written, copied) {
			return fmt.Errorf("the copy of %s is not what the job wrote", name)
		}
	}
	return nil
}

// fill runs pods until the disk has no room for what is retained.
func (s *story) fill(ctx context.Context) error {
	for i, bytes := range fillerBytes {
		p, err := s.launch(ctx, "etl", fmt.Sprintf("import-%d", 42+i), "import.sh", bytes)
		if err != nil {
			return err
		}
		s.fillers = append(s.fillers, p)
		if err := s.end(ctx, p, 0); err != nil {
			return err
		}
		if i > 0 {
			if err := s.makesRoom(ctx, []*pod{s.etl, s.fillers[0]}[i-1]); err != nil {
				return err
			}
		}
		if err := s.measured(ctx); err != nil {
			return err
		}
	}
	s.say("Three more imports fill the disk. To make room, the files of the two oldest imports went early: they had succeeded.\n" +
		"train-7 failed, and its files stay. web-0's volume is older still, but in use: nothing touches it. Who takes what?")
	return s.show(ctx, "top")
}

// makesRoom waits until a retained volume has gone to make room, and is erased.
func (s *story) makesRoom(ctx context.Context, p *pod) error {
	trash := filepath.Join(s.layout.Work, host.TrashName)
	err := poll(ctx, "the daemon does not make room", func() (bool, error) {
		gone, err := absent(p.data())
		if !gone || err != nil {
			return false, err
		}
		left, err := os.ReadDir(trash)
		return len(left) == 0, err
	})
	if err != nil {
		return err
	}
	return s.orSlow(p, nil)
}

// crash kills the daemon and starts it again.
func (s *story) crash(ctx context.Context) error {
	before, err := s.list(ctx)
	if err != nil {
		return err
	}
	s.say("The daemon is killed (SIGKILL) and started again. web-0 does not notice, and nothing is lost:")
	s.driver.Kill()
	if err := s.driver.Start(ctx); err != nil {
		return err
	}
	if err := s.measured(ctx); err != nil {
		return err
	}
	if err := s.show(ctx, "ls"); err != nil {
		return err
	}
	after, err := s.list(ctx)
	if err != nil {
		return err
	}
	if err := s.orSlow(s.train, same(before, after)); err != nil {
		return err
	}
	return s.serves(ctx)
}

// expire waits until the lifespan of all retained volumes is over.
func (s *story) expire(ctx context.Context) error {
	s.say("After %s the rest expires:", s.lifespan)
	last := s.fillers[len(s.fillers)-1]
	if err := pause.For(ctx, time.Until(last.retained.Add(s.lifespan))); err != nil {
		return err
	}
	for _, p := range append([]*pod{s.train}, s.fillers...) {
		err := poll(ctx, "the volume of pod "+p.String()+" does not expire", func() (bool, error) { return absent(p.data()) })
		if err != nil {
			return err
		}
	}
	if err := s.show(ctx, "ls"); err != nil {
		return err
	}
	if err := s.serves(ctx); err != nil {
		return err
	}
	s.say("web-0 still runs, with all its files. That was the demo; it leaves nothing on this machine.")
	return nil
}
