package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/soak/testbed"
)

// controller is the controller in a process of its own.
type controller struct {
	process *testbed.Process
	socket  string
	// most is the most memory that it had, in KiB.
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
		if kib, err := c.memory(); err == nil && kib > c.most.Load() {
			c.most.Store(kib)
		}
	}
}

// memory returns what is the process's own, in KiB.
func (c *controller) memory() (kib int64, err error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", c.process.PID()))
	if err != nil {
		return 0, err
	}
	return rssAnon(status)
}

func rssAnon(status []byte) (int64, error) {
	_, line, _ := bytes.Cut(status, []byte("RssAnon:"))
	value, _, ok := bytes.Cut(line, []byte("kB"))
	if !ok {
		return 0, errors.New("no RssAnon in the status of a process")
	}
	return strconv.ParseInt(string(bytes.TrimSpace(value)), 10, 64)
}

// cpu returns how much time the process has used.
func (c *controller) cpu() (time.Duration, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", c.process.PID()))
	if err != nil {
		return 0, err
	}
	return used(string(stat))
}

// used reads the times of a process, which are in hundredths of a second.
func used(stat string) (time.Duration, error) {
	const user, system = 11, 12 // behind the name
	behind := stat[strings.LastIndexByte(stat, ')')+1:]
	fields := strings.Fields(behind)
	if len(fields) <= system {
		return 0, errors.New("the stat of a process is too short")
	}
	var ticks int64
	for _, field := range fields[user : system+1] {
		n, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			return 0, err
		}
		ticks += n
	}
	return time.Duration(ticks) * time.Second / 100, nil
}
