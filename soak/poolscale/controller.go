package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/soak/internal/host"
	"github.com/katbox/katbox/soak/testbed"
)

// controller is the controller in a process of its own.
type controller struct {
	process *testbed.Process
	socket  string
	// most is the most memory of its own that it had, in bytes.
	most atomic.Int64
}

// startController starts it in a directory. Comparisons with the arrays come at the start only, so that
// the health checks can be told from them.
func startController(ctx context.Context, o options, dir string, kubeconfig []byte) (*controller, error) {
	file := filepath.Join(dir, "kubeconfig")
	if err := os.WriteFile(file, kubeconfig, 0o600); err != nil {
		return nil, err
	}
	c := &controller{socket: filepath.Join(dir, "csi.sock")}
	cmd := exec.Command(o.controller, "--namespace=katbox", "--chap-namespace=katbox-chap", "--kubeconfig="+file,
		"--endpoint=unix://"+c.socket, "--leader-election-identity=poolscale", "--sync-interval=24h", "--log-format=console")
	cmd.Stdout, cmd.Stderr = io.Discard, os.Stderr
	if o.verbose {
		cmd.Stdout = os.Stderr
	}
	var err error
	if c.process, err = testbed.Start(cmd); err != nil {
		return nil, err
	}
	go c.watchMemory(ctx)
	return c, nil
}

func (c *controller) stop() {
	_ = c.process.Signal(unix.SIGTERM) // or it is gone already
	<-c.process.Ended()
}

// pause waits, and fails if the controller ends.
func (c *controller) pause(ctx context.Context, d time.Duration) error {
	waiting, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	select {
	case <-waiting.Done():
		return ctx.Err()
	case <-c.process.Ended():
		return fmt.Errorf("the controller ended: %w", errors.Join(c.process.Err(), errors.New("--verbose shows its log")))
	}
}

// watchMemory notes the most that the controller has.
func (c *controller) watchMemory(ctx context.Context) {
	for c.pause(ctx, 100*time.Millisecond) == nil {
		if used, err := c.usage(); err == nil && used.Anonymous > c.most.Load() {
			c.most.Store(used.Anonymous)
		}
	}
}

// usage is what the process uses.
func (c *controller) usage() (host.Usage, error) { return host.ReadUsage(c.process.PID()) }
