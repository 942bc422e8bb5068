package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/signal"
	"path/filepath"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/katbox/katbox/soak/internal/host"
	"github.com/katbox/katbox/soak/internal/launch"
	"github.com/katbox/katbox/soak/testbed"
)

// floor is the least that a driver can do. Without a journal it records nothing.
type floor struct {
	csi.UnimplementedIdentityServer
	csi.UnimplementedNodeServer
	work    string
	journal *journal
}

// noRecords takes the place of the file of records of a floor that has none.
const noRecords = "none"

// serveFloor is the floor's main function: its arguments are the socket, the
// working directory and the file of records, or noRecords.
func serveFloor(args []string) error {
	if len(args) != 3 {
		return fmt.Errorf("%w: %s needs a socket, a directory and a file", launch.ErrUsage, partFloor)
	}
	terminated := make(chan os.Signal, 1)
	signal.Notify(terminated, unix.SIGTERM)
	// For a bind the kernel looks at all mounts that are attached to the mount of the
	// source; nothing is attached to this one, as in a container and with Katbox.
	if err := host.Bind(args[1], args[1]); err != nil {
		return fmt.Errorf("the floor's directory: %w", err)
	}
	f := &floor{work: args[1]}
	if args[2] != noRecords {
		j, err := openJournal(args[2])
		if err != nil {
			return err
		}
		f.journal = j
	}
	if err := os.Remove(args[0]); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("the floor's socket: %w", err)
	}
	listener, err := net.Listen("unix", args[0])
	if err != nil {
		return fmt.Errorf("the floor's socket: %w", err)
	}
	server := grpc.NewServer()
	csi.RegisterIdentityServer(server, f)
	csi.RegisterNodeServer(server, f)
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(listener) }()
	select {
	case err := <-failed:
		return fmt.Errorf("the floor: %w", err)
	case <-terminated:
		server.Stop()
		return nil
	}
}

func (f *floor) Probe(context.Context, *csi.ProbeRequest) (*csi.ProbeResponse, error) {
	return &csi.ProbeResponse{Ready: wrapperspb.Bool(true)}, nil
}

func (f *floor) NodePublishVolume(_ context.Context, r *csi.NodePublishVolumeRequest) (*csi.NodePublishVolumeResponse, error) {
	pod := r.GetVolumeContext()[testbed.PodUID]
	if err := f.record('p', r.GetVolumeId(), pod, r.GetTargetPath()); err != nil {
		return nil, err
	}
	podDir := filepath.Join(f.work, pod)
	data := filepath.Join(podDir, r.GetVolumeId())
	if err := unix.Mkdir(podDir, 0o755); err != nil {
		return nil, os.NewSyscallError("mkdir", err)
	}
	if err := unix.Mkdir(data, 0o777); err != nil {
		return nil, os.NewSyscallError("mkdir", err)
	}
	if err := unix.Mkdir(r.GetTargetPath(), 0o750); err != nil {
		return nil, os.NewSyscallError("mkdir", err)
	}
	if err := bind(data, r.GetTargetPath()); err != nil {
		return nil, err
	}
	return &csi.NodePublishVolumeResponse{}, nil
}

func (f *floor) NodeUnpublishVolume(_ context.Context, r *csi.NodeUnpublishVolumeRequest) (*csi.NodeUnpublishVolumeResponse, error) {
	if err := unix.Unmount(r.GetTargetPath(), unix.UMOUNT_NOFOLLOW); err != nil {
		return nil, os.NewSyscallError("umount2", err)
	}
	if err := unix.Rmdir(r.GetTargetPath()); err != nil {
		return nil, os.NewSyscallError("rmdir", err)
	}
	if err := f.record('u', r.GetVolumeId()); err != nil {
		return nil, err
	}
	return &csi.NodeUnpublishVolumeResponse{}, nil
}

// record makes a record durable, if the floor has any.
func (f *floor) record(kind byte, words ...string) error {
	if f.journal == nil {
		return nil
	}
	return f.journal.append(kind, words...)
}

// bind mounts a directory on another one with the three calls that make one
// mount of it, private from its first moment.
func bind(source, target string) error {
	tree, err := unix.OpenTree(unix.AT_FDCWD, source, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
	if err != nil {
		return os.NewSyscallError("open_tree", err)
	}
	defer unix.Close(tree)
	if err := unix.MountSetattr(tree, "", unix.AT_EMPTY_PATH, &unix.MountAttr{Propagation: unix.MS_PRIVATE}); err != nil {
		return os.NewSyscallError("mount_setattr", err)
	}
	return os.NewSyscallError("move_mount", unix.MoveMount(tree, "", unix.AT_FDCWD, target, unix.MOVE_MOUNT_F_EMPTY_PATH))
}
