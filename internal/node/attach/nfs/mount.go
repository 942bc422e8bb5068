package nfs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/node/attach"
	"github.com/katbox/katbox/internal/node/mount"
)

// Mount mounts an export, such as 10.0.0.1:/export/x or [fd00::1]:/x, on the directory target, which is no
// symbolic link. options are those of nfs(5) and mount(8) that make sense here; any other one is refused by name,
// with volume.ErrInvalid. That the export is mounted there already with these options is no error;
// volume.ErrConflict if it is with others, attach.ErrNotOurs if something else is.
//
// The error is volume.ErrUnavailable if the server cannot be reached. A server that refuses the node has not exported
// the volume to it (yet).
//
// It waits while the server does not answer, and cannot be interrupted. It looks up the name of a host.
func Mount(export, target string, options []string, readOnly bool) error {
	e, err := parseExport(export)
	if err != nil {
		return err
	}
	r, err := parseOptions(options)
	if err != nil {
		return err
	}
	if readOnly {
		r.flags |= mount.ReadOnly
	}
	if err := mountExport(e, export, target, r); err != nil {
		return fmt.Errorf("mount %s on %s: %w", export, target, err)
	}
	return nil
}

func mountExport(e export, source, target string, r request) error {
	switch there, err := attach.Look(target); {
	case err != nil:
		return err
	case there.Mounted:
		return compareAt(target, source, r)
	}
	if err := attach.NoSymlinks(target); err != nil {
		return err
	}
	server, err := r.server(e)
	if err != nil {
		return err
	}
	return explain(r.negotiate(func(one request) error {
		return mount.FileSystem(source, target, one.fsType(), one.flags, one.data(server))
	}), e, r, server)
}

// compareAt compares what is mounted at a target with what should be.
func compareAt(target, source string, r request) error {
	table, err := attach.Table()
	if err != nil {
		return err
	}
	there, ok := attach.At(table, target)
	if !ok {
		return fmt.Errorf("%w: what was mounted there went while it was looked at", volume.ErrBusy)
	}
	return compare(there, source, r, r.flags&mount.ReadOnly != 0)
}

// server returns the address of the export's host, of the family that the option proto asks for.
func (r request) server(e export) (netip.Addr, error) {
	network := "ip"
	switch r.proto {
	case "tcp", "rdma":
		network = "ip4"
	case "tcp6", "rdma6":
		network = "ip6"
	}
	if e.address.IsValid() {
		if network != "ip" && (network == "ip6") != e.address.Is6() {
			return netip.Addr{}, refuse("proto="+r.proto, "does not fit the address "+e.host)
		}
		return e.address, nil
	}
	// The resolver has limits of its own.
	found, err := net.DefaultResolver.LookupNetIP(context.Background(), network, e.host)
	if err == nil && len(found) == 0 {
		err = errors.New("it has no address")
	}
	if err != nil {
		return netip.Addr{}, fmt.Errorf("%w: the address of %s: %w", volume.ErrUnavailable, e.host, err)
	}
	return found[0].Unmap(), nil
}

// away are the kernel's numbers for a server that cannot be reached.
var away = []error{unix.ECONNREFUSED, unix.ECONNRESET, unix.ECONNABORTED, unix.ETIMEDOUT, unix.EHOSTUNREACH, unix.EHOSTDOWN,
	unix.ENETUNREACH, unix.ENETDOWN, unix.ENOTCONN, unix.EPIPE}

// explain says what the kernel's number means for a mount.
func explain(err error, e export, r request, server netip.Addr) error {
	for _, number := range away {
		if errors.Is(err, number) {
			return fmt.Errorf("%w: %s cannot be reached: %w", volume.ErrUnavailable, e.host, err)
		}
	}
	switch {
	case err == nil:
		return nil
	case errors.Is(err, unix.EACCES):
		return fmt.Errorf("the array has not exported %s to this node (%s): %w", e.path, clientAddress(server), err)
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("there is no export %s, or no directory to mount it on: %w", e.path, err)
	case errors.Is(err, unix.EPROTONOSUPPORT):
		return fmt.Errorf("%s does not speak NFS %s; set the mount option vers= to one of %q that it speaks: %w",
			e.host, r.version, versions, err)
	case errors.Is(err, unix.ENODEV):
		return fmt.Errorf("the kernel of the node has no client for NFS %s; load its modules nfs and nfsv%.1s: %w", r.version, r.version, err)
	case errors.Is(err, unix.EINVAL):
		return fmt.Errorf("the kernel of the node does not take the options %q; its log may say why: %w", append(r.own, "vers="+r.version), err)
	case errors.Is(err, unix.EBUSY):
		return fmt.Errorf("%w: %w", volume.ErrBusy, err)
	}
	return err
}
