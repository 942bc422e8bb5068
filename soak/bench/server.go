package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"google.golang.org/grpc"

	"github.com/katbox/katbox/soak/internal/daemon"
	"github.com/katbox/katbox/soak/internal/host"
	"github.com/katbox/katbox/soak/internal/pause"
	"github.com/katbox/katbox/soak/testbed"
)

// startLimit is how long a server may take until it is ready.
const startLimit = 10 * time.Minute

// server is one of the two that are compared, with directories of its own.
type server struct {
	name   string
	layout testbed.Layout
	driver *daemon.Binary
	conns  []*grpc.ClientConn
	// rounds counts, so that no two have volumes of the same names.
	rounds int
	// logs is the directory of the logs of its pods; empty if it keeps none.
	logs string
}

// newServer makes the directories of a server on the disk, and starts nothing.
// The command's words are made of them.
func (s *environment) newServer(name string, command func(*server) []string) (*server, error) {
	s.servers++
	v := &server{name: name, layout: testbed.At(filepath.Join(s.layout.Work, fmt.Sprintf("%d-%s", s.servers, name)))}
	// The sockets and the log are not on the disk.
	v.layout.Socket = filepath.Join(s.layout.Dir, fmt.Sprintf("%d.sock", s.servers))
	v.layout.Admin = filepath.Join(s.layout.Dir, fmt.Sprintf("%d-admin.sock", s.servers))
	v.layout.Log = filepath.Join(s.layout.Dir, fmt.Sprintf("%d-%s.log", s.servers, name))
	if err := v.layout.Make(); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	words := command(v)
	if v.logs != "" {
		if err := os.Mkdir(v.logs, 0o755); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	v.driver = daemon.New(daemon.Config{
		Binary: s.self, Args: append([]string{partApart}, words...), Log: v.layout.Log, Socket: v.layout.Socket, StartLimit: startLimit,
	})
	return v, nil
}

// newKatbox has the flags that have to be set, and else the defaults.
func (s *environment) newKatbox() (*server, error) {
	return s.newServer("katbox", func(v *server) []string {
		// Nothing is to go early, however full the disk gets.
		return append([]string{s.options.daemon}, v.layout.Flags("--admin-socket", v.layout.Admin, "--kubelet-line", "none")...)
	})
}

// newLogging is a Katbox that keeps what containers print.
func (s *environment) newLogging() (*server, error) {
	return s.newServer("logs", func(v *server) []string {
		v.logs = filepath.Join(v.layout.Dir, "logs")
		return append([]string{s.options.daemon}, v.layout.Flags("--admin-socket", v.layout.Admin, "--kubelet-line", "none",
			"--logs", "on", "--pod-logs-dir", v.logs)...)
	})
}

func (s *environment) newFloor() (*server, error) {
	return s.newServer("floor", func(v *server) []string {
		return []string{s.self, partFloor, v.layout.Socket, v.layout.Work, filepath.Join(v.layout.Dir, "records")}
	})
}

// newBind is a floor that records nothing.
func (s *environment) newBind() (*server, error) {
	return s.newServer("bind", func(v *server) []string {
		return []string{s.self, partFloor, v.layout.Socket, v.layout.Work, noRecords}
	})
}

// start starts the server and returns how long it took until it was ready.
func (v *server) start(ctx context.Context) (time.Duration, error) {
	began := time.Now()
	if err := v.driver.Start(ctx); err != nil {
		return 0, fmt.Errorf("%s: %w", v.name, err)
	}
	return time.Since(began), nil
}

// stop ends the server; its mounts go with its namespace.
func (v *server) stop() error {
	var errs []error
	for _, c := range v.conns {
		errs = append(errs, c.Close())
	}
	v.conns = nil
	return errors.Join(append(errs, v.driver.Stop())...)
}

// connect makes the connections of so many callers, and makes sure that each is
// one before it is used.
func (v *server) connect(ctx context.Context, callers int) error {
	for len(v.conns) < callers {
		conn, err := testbed.Dial(v.layout.Socket)
		if err == nil {
			v.conns = append(v.conns, conn)
			err = probe(ctx, conn)
		}
		if err != nil {
			return fmt.Errorf("connect to %s: %w", v.name, err)
		}
	}
	return nil
}

// cpu is the CPU time that the server has used since its start.
func (v *server) cpu() (time.Duration, error) {
	pid, ok := v.driver.PID()
	if !ok {
		return 0, fmt.Errorf("%s is not running", v.name)
	}
	return host.CPUTime(pid)
}

const (
	// restLook is how long a server is watched to find whether it is at rest, and
	// restShare the share of a core that it may use then. The daemon has work after a
	// start: it looks for orphans, and measures what is retained.
	restLook  = time.Second
	restShare = 0.01
)

// rest waits until the server is at rest, but no longer than the limit, and tells
// whether it is.
func (v *server) rest(ctx context.Context, limit time.Duration) (bool, error) {
	for deadline := time.Now().Add(limit); ; {
		share, err := v.share(ctx, restLook)
		if err != nil || share <= restShare {
			return true, err
		}
		if time.Now().After(deadline) {
			return false, nil
		}
	}
}

// share is the share of a core that the server uses in the time from now on.
func (v *server) share(ctx context.Context, d time.Duration) (float64, error) {
	began := time.Now()
	before, err := v.cpu()
	if err != nil {
		return 0, err
	}
	if err := pause.For(ctx, d); err != nil {
		return 0, err
	}
	after, err := v.cpu()
	return (after - before).Seconds() / time.Since(began).Seconds(), err
}
