package archived

import (
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc"

	"github.com/katbox/katbox/soak/internal/host"
)

// Config is what a Driver works with. All fields are required.
type Config struct {
	// Socket is the path on which it listens, Work its working directory.
	Socket, Work string
	// Ground is where a tmpfs is mounted, with all that the driver can reach.
	Ground                  string
	Lifespan, PruneInterval time.Duration
}

// Driver is the driver from its start to its end.
type Driver struct {
	csi.UnimplementedNodeServer
	cfg    Config
	server *grpc.Server
	stop   chan struct{}
	loops  sync.WaitGroup

	mu sync.Mutex
	// pods are those of the volumes that it knows, by volume ID.
	pods map[string]string
	// queue is what it is going to delete, in the order of the unpublishes.
	queue []entry
}

// entry is a directory that is going to be deleted.
type entry struct {
	id, dir     string
	unpublished time.Time
}

// Start starts a driver. When it returns, calls are answered.
func Start(cfg Config) (*Driver, error) {
	if err := checkGround(cfg.Ground); err != nil {
		return nil, fmt.Errorf("archived: %w", err)
	}
	listener, err := net.Listen("unix", cfg.Socket)
	if err != nil {
		return nil, fmt.Errorf("archived: listen: %w", err)
	}
	d := &Driver{cfg: cfg, server: grpc.NewServer(grpc.WaitForHandlers(true)), stop: make(chan struct{}), pods: make(map[string]string)}
	csi.RegisterNodeServer(d.server, d)
	d.loops.Go(func() { d.prune() })
	d.loops.Go(func() { _ = d.server.Serve(listener) }) // Stop ends it
	return d, nil
}

// Stop ends it, and returns when nothing of it goes on.
func (d *Driver) Stop() {
	d.server.Stop()
	close(d.stop)
	d.loops.Wait()
}

// checkGround makes sure that there is a file system of its own, so that what
// is on it is nobody else's.
func checkGround(ground string) error {
	mounted, err := host.MountedAt(ground)
	if err != nil {
		return err
	}
	var st unix.Statfs_t
	if err := unix.Statfs(ground, &st); err != nil {
		return fmt.Errorf("statfs %s: %w", ground, err)
	}
	if !mounted || st.Type != unix.TMPFS_MAGIC {
		return errors.New("Config.Ground has to be where a tmpfs is mounted, for everything on it may be deleted")
	}
	return nil
}
