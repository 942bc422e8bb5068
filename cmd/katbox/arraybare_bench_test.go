package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc"

	"github.com/katbox/katbox/internal/model/pools"
	"github.com/katbox/katbox/internal/node/attach/staged"
	"github.com/katbox/katbox/soak/testbed"
)

// bare does what a stage and a publish cannot do without, and nothing else: a look whether the volume is there
// already, a durable record, the commands, the identity of what is mounted, the system calls.
type bare struct {
	csi.UnimplementedNodeServer
	// dir has the records.
	dir string
}

// asBare is the environment variable that makes a test binary such a driver: its socket.
const asBare = "KATBOX_BARE_SOCKET"

// serveBare serves a bare driver until the process is killed.
func serveBare(path string) error {
	l, err := net.Listen("unix", path)
	if err != nil {
		return err
	}
	// As the daemon does, it saves the messages of windows that adapt themselves.
	const window = 1 << 20
	s := grpc.NewServer(grpc.StaticStreamWindowSize(window), grpc.StaticConnWindowSize(window))
	csi.RegisterNodeServer(s, &bare{dir: filepath.Dir(path)})
	return s.Serve(l)
}

// startBare starts a process that is a bare driver, and returns it and its calls.
func startBare(b *testing.B) (pid int, node csi.NodeClient) {
	b.Helper()
	path := filepath.Join(b.TempDir(), "csi.sock")
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), asBare+"="+path)
	cmd.Stderr = os.Stderr
	must(b, cmd.Start())
	b.Cleanup(func() {
		must(b, cmd.Process.Kill())
		_ = cmd.Wait() // it was killed
	})
	return cmd.Process.Pid, nodeClient(b, path, testbed.Eager(), testbed.Waiting())
}

// NodeStageVolume stages a volume.
func (r *bare) NodeStageVolume(_ context.Context, q *csi.NodeStageVolumeRequest) (*csi.NodeStageVolumeResponse, error) {
	at, err := pools.ParsePublishContext(q.GetPublishContext())
	if err == nil {
		at.Volume = q.GetVolumeId()
		err = r.stage(at, q.GetStagingTargetPath(), q.GetVolumeCapability().GetBlock() != nil)
	}
	return &csi.NodeStageVolumeResponse{}, err
}

// NodePublishVolume publishes it.
func (r *bare) NodePublishVolume(_ context.Context, q *csi.NodePublishVolumeRequest) (*csi.NodePublishVolumeResponse, error) {
	return &csi.NodePublishVolumeResponse{}, r.publish(q.GetVolumeId(), q.GetTargetPath())
}

// NodeUnpublishVolume undoes that.
func (r *bare) NodeUnpublishVolume(_ context.Context, q *csi.NodeUnpublishVolumeRequest) (*csi.NodeUnpublishVolumeResponse, error) {
	return &csi.NodeUnpublishVolumeResponse{}, r.unpublish(q.GetTargetPath())
}

// NodeUnstageVolume undoes a stage.
func (r *bare) NodeUnstageVolume(_ context.Context, q *csi.NodeUnstageVolumeRequest) (*csi.NodeUnstageVolumeResponse, error) {
	return &csi.NodeUnstageVolumeResponse{}, r.unstage(q.GetVolumeId())
}

func (r *bare) stage(at pools.Attachment, staging string, block bool) error {
	if is, err := isMountPoint(staging); err != nil || is {
		return fmt.Errorf("%s: mounted %t, %w", staging, is, err)
	}
	if err := r.record(at, staging, block); err != nil {
		return err
	}
	if at.Protocol == pools.NFS {
		server, _, _ := strings.Cut(at.Export, ":")
		return unix.Mount(at.Export, staging, "nfs4", 0, "vers=4.2,proto=tcp,addr="+server)
	}
	return stageDisk(at, staging, block)
}

func (r *bare) publish(volume, target string) error {
	s, err := r.recorded(volume)
	if err != nil {
		return err
	}
	source := sourceOf(s)
	if s.Block {
		err = os.WriteFile(target, nil, 0o600)
	} else {
		err = os.Mkdir(target, 0o750)
	}
	if err != nil {
		return err
	}
	// What is staged is the volume: of an export the mount table says so, of a disk its serial number.
	if s.Attachment.Protocol == pools.NFS {
		err = showsExport(source, s.Attachment.Export)
	} else {
		err = showsDisk(source, s)
	}
	if err != nil {
		return err
	}
	return unix.Mount(source, target, "", unix.MS_BIND, "")
}

func (r *bare) unpublish(target string) error {
	return errors.Join(unix.Unmount(target, 0), os.Remove(target))
}

func (r *bare) unstage(volume string) error {
	s, err := r.recorded(volume)
	if err != nil {
		return err
	}
	err = unix.Unmount(sourceOf(s), 0)
	if s.Block {
		err = errors.Join(err, os.Remove(sourceOf(s)))
	}
	if s.Attachment.Protocol == pools.ISCSI {
		dir, hostErr := diskDir(s.Attachment.LUN)
		err = errors.Join(err, hostErr, os.WriteFile(filepath.Join(dir, "delete"), []byte("1"), 0))
	}
	return errors.Join(err, os.Remove(filepath.Join(r.dir, volume)))
}

// sourceOf is what is bound for pods.
func sourceOf(s staged.Record) string {
	if s.Block {
		return filepath.Join(s.Path, "device")
	}
	return s.Path
}

// record makes durable what is about to be done.
func (r *bare) record(at pools.Attachment, staging string, block bool) error {
	content, err := json.Marshal(staged.Record{Volume: at.Volume, Path: staging, Block: block, Attachment: at, Serial: at.Serial})
	if err != nil {
		return err
	}
	name := filepath.Join(r.dir, at.Volume)
	file, err := os.Create(name + ".new")
	if err != nil {
		return err
	}
	_, err = file.Write(content)
	if err = errors.Join(err, file.Sync(), file.Close()); err == nil {
		err = os.Rename(name+".new", name)
	}
	if err != nil {
		return err
	}
	dir, err := os.Open(r.dir)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

func (r *bare) recorded(volume string) (s staged.Record, err error) {
	content, err := os.ReadFile(filepath.Join(r.dir, volume))
	if err == nil {
		err = json.Unmarshal(content, &s)
	}
	return s, err
}

func isMountPoint(path string) (bool, error) {
	var st unix.Statx_t
	err := unix.Statx(unix.AT_FDCWD, path, unix.AT_STATX_DONT_SYNC, unix.STATX_TYPE, &st)
	return st.Attributes&unix.STATX_ATTR_MOUNT_ROOT != 0, err
}

// showsExport checks that an export is mounted at a path.
func showsExport(path, export string) error {
	table, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return err
	}
	line := slices.IndexFunc(strings.Split(string(table), "\n"), func(line string) bool {
		return strings.Contains(line, " "+path+" ") && strings.Contains(line, " "+export+" ")
	})
	if line < 0 {
		return fmt.Errorf("%s is not mounted at %s", export, path)
	}
	return nil
}

// showsDisk checks that a disk is mounted at a path, or its node is.
func showsDisk(path string, s staged.Record) error {
	var st unix.Stat_t
	if err := unix.Stat(path, &st); err != nil {
		return err
	}
	number := st.Dev
	if s.Block {
		number = st.Rdev
	}
	return hasSerial(fmt.Sprintf("/sys/dev/block/%d:%d/device", unix.Major(number), unix.Minor(number)), s.Serial)
}

// hasSerial checks who a disk says that it is, as it has to be done before each use of it.
func hasSerial(disk, serial string) error {
	page, err := os.ReadFile(filepath.Join(disk, "vpd_pg80"))
	if err == nil && !strings.Contains(string(page), serial) {
		err = fmt.Errorf("%s has the serial number %q, want %q", disk, page, serial)
	}
	return err
}

// diskDir is where sysfs has the disk at a LUN of the one session, once it is there.
func diskDir(lun int) (string, error) {
	hosts, err := filepath.Glob("/sys/class/iscsi_host/host*")
	if err != nil || len(hosts) != 1 {
		return "", fmt.Errorf("hosts %q, %w, want one", hosts, err)
	}
	host := strings.TrimPrefix(filepath.Base(hosts[0]), "host")
	return fmt.Sprintf("/sys/class/scsi_disk/%s:0:0:%d/device", host, lun), nil
}

// waitFor waits until something is there. It does not take the CPU meanwhile, as the daemon does not either.
func waitFor(there func() bool) {
	for !there() {
		time.Sleep(10 * time.Millisecond)
	}
}

// stageDisk makes a LUN appear, and stages it.
func stageDisk(at pools.Attachment, staging string, block bool) error {
	disk, err := diskDir(at.LUN)
	if err != nil {
		return err
	}
	host, _, _ := strings.Cut(filepath.Base(filepath.Dir(disk)), ":")
	if err := os.WriteFile("/sys/class/scsi_host/host"+host+"/scan", fmt.Appendf(nil, "0 0 %d", at.LUN), 0); err != nil {
		return err
	}
	var names []string
	waitFor(func() bool {
		names, err = filepath.Glob(disk + "/block/*")
		return err != nil || len(names) > 0
	})
	if err != nil {
		return err
	}
	dev := "/dev/" + filepath.Base(names[0])
	if err := hasSerial(disk, at.Serial); err != nil {
		return err
	}
	// The device's node can be opened a little later than the disk appears.
	waitFor(func() bool {
		node, err := os.Open(dev)
		return err == nil && node.Close() == nil
	})
	if block {
		file := filepath.Join(staging, "device")
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			return err
		}
		return unix.Mount(dev, file, "", unix.MS_BIND, "")
	}
	for _, command := range [][]string{{"blkid", "-p", "-o", "export", dev}, {"fsck.ext4", "-a", dev}} {
		if out, err := exec.Command(command[0], command[1:]...).CombinedOutput(); err != nil {
			return fmt.Errorf("%q: %w: %s", command, err, out)
		}
	}
	return unix.Mount(dev, staging, "ext4", 0, "")
}
