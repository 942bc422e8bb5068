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
	name string
	// work is its working directory, pods the kubelet's directory of pods.
	work, pods, log string
	// admin is the socket of Katbox for people.
	admin  string
	driver *daemon.Binary
	socket string
	conns  []*grpc.ClientConn
	// rounds counts, so that no two have volumes of the same names.
	rounds int
}

// newServer makes the directories of a server on the disk, and starts nothing.
// The command's words are made of them.
func (s *stage) newServer(name string, command func(*server) []string) (*server, error) {
	s.servers++
	dir := filepath.Join(s.layout.Work, fmt.Sprintf("%d-%s", s.servers, name))
	v := &server{
		name: name, work: filepath.Join(dir, "work"), pods: filepath.Join(dir, "kubelet", "pods"),
		socket: filepath.Join(s.layout.Dir, fmt.Sprintf("%d.sock", s.servers)),
		admin:  filepath.Join(s.layout.Dir, fmt.Sprintf("%d-admin.sock", s.servers)),
		log:    filepath.Join(s.layout.Dir, fmt.Sprintf("%d-%s.log", s.servers, name)),
	}
	// The last pod is always there: without any the daemon doubts that it looks at
	// the right directory.
	for _, d := range []string{v.work, filepath.Join(v.pods, "bystander")} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			return nil, fmt.Errorf("make a directory of %s: %w", name, err)
		}
	}
	words := command(v)
	v.driver = daemon.New(daemon.Config{
		Binary: s.self, Args: append([]string{partApart}, words...), Log: v.log, Socket: v.socket, StartLimit: startLimit,
	})
	return v, nil
}

// newKatbox has the flags that have to be set, and else the defaults.
func (s *stage) newKatbox() (*server, error) {
	return s.newServer("katbox", func(v *server) []string {
		return []string{
			s.options.daemon, "--endpoint", "unix://" + v.socket, "--nodeid", daemon.Node, "--workdir", v.work, "--kubelet-dir",
			filepath.Dir(v.pods), "--admin-socket", v.admin,
			// Nothing is to go early, however full the disk gets.
			"--kubelet-line", "none",
		}
	})
}

func (s *stage) newFloor() (*server, error) {
	return s.newServer("floor", func(v *server) []string {
		return []string{s.self, partFloor, v.socket, v.work, filepath.Join(filepath.Dir(v.work), "records")}
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
		conn, err := testbed.Dial(v.socket)
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
