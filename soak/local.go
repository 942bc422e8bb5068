package main

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"

	"github.com/katbox/katbox/soak/internal/history"
	"github.com/katbox/katbox/soak/internal/host"
	"github.com/katbox/katbox/soak/internal/local"
	"github.com/katbox/katbox/soak/testbed"
)

// poolSize is that of the disk of the pool. Its file takes as much room as pods write.
const poolSize = 32 << 30

// locals are the persistent volumes that pods have beside the inline ones: of a pool of images on a disk of its own. A
// nil one stands for none.
type locals struct {
	// work is where the pool's disk is mounted, image the file that it is on.
	work, image string
	disk        *host.Disk
	controller  *local.Controller
	player      *local.Player
	flags       []string
	seed        uint64
}

// newLocals starts a controller.
func newLocals(l testbed.Layout, seed uint64) (*locals, error) {
	c, err := local.Listen(filepath.Join(l.Dir, "controller"))
	if err != nil {
		return nil, fmt.Errorf("start a controller: %w", err)
	}
	const class = "soak"
	s := &locals{work: filepath.Join(l.Dir, "local"), image: filepath.Join(l.Dir, "local.img"), controller: c, seed: seed}
	socket := filepath.Join(l.Dir, "local.sock")
	s.flags = append(c.Flags(), "--local-endpoint", "unix://"+socket,
		"--local-pool", class+"="+filepath.Join(s.work, "pool")+",backend="+string(local.Image))
	s.player, err = local.NewPlayer(local.Config{
		Controller: c, Socket: socket, Kubelet: l.Kubelet, Pools: map[string]local.Backend{class: local.Image}, FSType: "xfs",
		Prefix: fmt.Sprintf("%x", seed),
	})
	return s, err
}

// set makes the pool's disk.
func (s *locals) set() (err error) {
	if s == nil {
		return nil
	}
	if err := os.Mkdir(s.work, 0o755); err != nil {
		return err
	}
	s.disk, err = host.MakeDisk(s.work, s.image, host.XFS, poolSize, 0)
	return err
}

// disks are where disks are mounted.
func (s *locals) disks() []string {
	if s == nil {
		return nil
	}
	return []string{s.work}
}

// tearDown takes the pool's disk away.
func (s *locals) tearDown() error {
	if s == nil || s.disk == nil {
		return nil
	}
	return s.disk.Close()
}

// open waits for the pool.
func (s *locals) open(ctx context.Context) error {
	if s == nil {
		return nil
	}
	return s.player.Open(ctx)
}

// beginLocal gives a local volume to a pod, which writes to it. It returns nil when there is none.
func (l *life) beginLocal(ctx context.Context) *local.Use {
	// The directories of some pods are removed by force, with all that is in them.
	if l.environment.locals == nil || l.removal() != nil {
		return nil
	}
	random := rand.New(rand.NewPCG(l.environment.locals.seed, uint64(l.planned.Index)))
	u, err := l.environment.locals.player.Begin(ctx, l.planned.UID, random)
	if err == nil && u != nil {
		err = u.Work(ctx)
	}
	l.tellLocal(ctx, err)
	return u
}

// endLocal takes the volume from the pod: what it wrote has to be there.
func (l *life) endLocal(ctx context.Context, u *local.Use) {
	if u == nil {
		return
	}
	l.tellLocal(ctx, u.Verify())
	l.tellLocal(ctx, u.End(ctx))
}

// tellLocal reports what went wrong. The end of the run is no news.
func (l *life) tellLocal(ctx context.Context, err error) {
	if err != nil && ctx.Err() == nil {
		l.environment.findings.Add(history.Locals, nil, fmt.Sprintf("pod %s: %v", l.planned.UID, err))
	}
}

// audit looks at what pods have left in the pool, when they are all over.
func (s *locals) audit(ctx context.Context, f *history.Findings) error {
	if s == nil {
		return nil
	}
	all, err := s.player.Audit(ctx)
	for _, v := range all {
		f.Add(history.Locals, nil, fmt.Sprint(v.What, v.Told))
	}
	return err
}

// report tells what was done.
func (s *locals) report(out io.Writer) {
	if s == nil {
		return
	}
	fmt.Fprintf(out, "local volumes: %+v\n", s.player.Counts())
}
