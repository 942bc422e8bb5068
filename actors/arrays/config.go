package arrays

import (
	"context"
	"fmt"
	"time"

	"github.com/go-logr/logr"

	"github.com/katbox/katbox/actors"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/node/attach"
	"github.com/katbox/katbox/internal/node/attach/iscsi"
	"github.com/katbox/katbox/internal/node/attach/staged"
	"github.com/katbox/katbox/internal/node/kubeapi"
)

// Config is what a Node works with.
type Config struct {
	// NodeName is the node's name in Kubernetes.
	NodeName string
	// Table reads the mount table, and Look looks at a path only. Neither asks a file system.
	Table func() ([]attach.Mount, error)
	Look  func(path string) (attach.Point, error)
	// MountNFS mounts an export at a directory.
	MountNFS  func(export, target string, options []string, readOnly bool) error
	Disk      Disk
	Initiator Initiator
	Staged    Staged
	Cluster   Cluster
	Metrics   Metrics
	// HostRoot is where the host's root directory is mounted; empty for nowhere. Mounts below it are copies
	// of others, which go with those.
	HostRoot string
	// Patience is how long a caller waits for an array; 0 means 10 seconds.
	Patience time.Duration
	// WatchInterval is how often the sessions are looked at; 0 means 10 seconds.
	WatchInterval time.Duration
	// Threads is how many threads the process may have; 0 sets no limit.
	Threads int
	Log     logr.Logger
}

// Disk makes and mounts file systems on disks, and gives them to pods. Its calls may hang while the array
// does not answer, except MakeDir, Remove, Bind and BindDevice.
type Disk interface {
	// Content returns the type of the file system on a device; empty for one that is proven to be empty. The
	// error is [attach.ErrNotOurs] where there is something else.
	Content(ctx context.Context, dev string) (string, error)
	// Format makes a file system on an empty device and refuses any other. Reformat does it on one on
	// which an earlier Format has not ended.
	Format(ctx context.Context, dev, fsType string) error
	Reformat(ctx context.Context, dev, fsType string) error
	// Check repairs a file system that is not mounted.
	Check(ctx context.Context, dev, fsType string) error
	Mount(dev, target, fsType string, options []string, readOnly bool) error
	// Grow makes the file system at path as large as its device, and returns the size of that.
	Grow(path string) (bytes int64, err error)
	// BindDevice binds the node of a device on a file, which it makes.
	BindDevice(dev, file string) error
	// DeviceAt returns the number of the device whose node is bound on a file.
	DeviceAt(file string) (uint64, error)
	// Bind binds a directory, or a file on which a device is bound, on target, which it makes.
	Bind(source, target string, options []string, readOnly bool) error
	// Unmount takes all mounts at target away; that there is none is no error.
	Unmount(target string) error
	// MakeDir makes a directory; that there is one is no error.
	MakeDir(path string) error
	// Remove removes an empty directory or an empty file; that there is none is no error.
	Remove(target string) error
	// Stats measures the file system at path, or the device that is bound there.
	Stats(path string) (volume.Stats, error)
}

// Initiator has the iSCSI sessions and the devices of the node; see [iscsi.Initiator].
type Initiator interface {
	// Login is done where a session to the target carries I/O. One that is down learns the address.
	Login(ctx context.Context, portal iscsi.Portal, chap iscsi.CHAP) error
	// Session, Devices and DeviceByNumber ask the kernel only. The number of a device that is gone is
	// [volume.ErrNotFound], that of another's is [attach.ErrNotOurs].
	Session(ctx context.Context, target string) (iscsi.Session, bool, error)
	Devices(ctx context.Context, target string) ([]attach.Device, error)
	DeviceByNumber(ctx context.Context, number uint64) (attach.Device, error)
	// Scan makes one LUN of the session to a target appear, and returns its device if it may be the one that is
	// wanted; else the error is [attach.ErrNotOurs].
	Scan(ctx context.Context, target string, lun int, wanted iscsi.Wanted) (attach.Device, error)
	// Rescan asks the array for the size of a device, and returns it.
	Rescan(ctx context.Context, device attach.Device) (bytes int64, err error)
	// Delete removes a device that nothing uses; one that is gone is deleted.
	Delete(ctx context.Context, device attach.Device) error
	// Logout ends the sessions to a target that has no devices. Forget drops what the host keeps of it.
	Logout(ctx context.Context, target string) error
	Forget(ctx context.Context, target string) error
}

// Staged are the durable records of the volumes that are staged; see [staged.Staged].
type Staged interface {
	Save(staged.Record) error
	Load(id string) (staged.Record, error)
	All() ([]staged.Record, error)
	Remove(id string) error
}

// Cluster is what the node asks of the API server; see [kubeapi.Client].
type Cluster interface {
	CHAP(ctx context.Context, secret string) (user, password string, err error)
	ReportSession(ctx context.Context, attachment string, active bool) error
	// Attached reports whether an attachment is there, also while it is being deleted.
	Attached(ctx context.Context, attachment string) (bool, error)
	Where(ctx context.Context, attachment string) (kubeapi.Where, error)
	// ConfirmDisk tells which disk the node has found for an attachment, and returns once the controller has
	// compared that: nil if it is the volume's, [kubeapi.ErrOtherDisk] if not, [volume.ErrUnavailable] if that takes
	// too long.
	ConfirmDisk(ctx context.Context, attachment string, disk kubeapi.Disk) error
}

// Metrics count what happens to the volumes of arrays.
type Metrics interface {
	actors.Metrics
	// ArrayStaged: the number of volumes of a protocol that are staged has changed by delta.
	ArrayStaged(protocol string, delta int)
	// ArraySessions has the numbers of sessions that carry I/O, and of those that should.
	ArraySessions(up, down int)
	// ArrayWaits has the number of calls that wait longer than they should, and since when the first of
	// them has been waiting.
	ArrayWaits(calls int, oldest time.Time)
}

// Defaults of Config.
const (
	defaultPatience      = 10 * time.Second
	defaultWatchInterval = 10 * time.Second
)

// complete sets what has a default, and names the first field that is missing.
func (c *Config) complete() error {
	for _, field := range []struct {
		name string
		ok   bool
	}{
		{"NodeName", c.NodeName != ""}, {"Table", c.Table != nil}, {"Look", c.Look != nil}, {"MountNFS", c.MountNFS != nil},
		{"Disk", c.Disk != nil}, {"Initiator", c.Initiator != nil}, {"Staged", c.Staged != nil}, {"Cluster", c.Cluster != nil},
		{"Metrics", c.Metrics != nil},
	} {
		if !field.ok {
			return fmt.Errorf("persistent: Config.%s is missing", field.name)
		}
	}
	if c.Patience == 0 {
		c.Patience = defaultPatience
	}
	if c.WatchInterval == 0 {
		c.WatchInterval = defaultWatchInterval
	}
	return nil
}
