package dataplane

import (
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
)

// Config says where a kernel's data plane works.
type Config struct {
	// Dir has the volumes as files. Its file system has reflinks.
	Dir string
	// Source is the address from which this machine's own clients are to come, as that of a node is known
	// to the array. The zero address leaves that to the kernel: a client of an address of its own machine
	// comes from that same address.
	Source netip.Addr
	// Numbers: disks have a number as their serial number, by default the volume's ID. SCST, which real arrays
	// appear to use, gives them a number unless it is configured otherwise.
	Numbers bool
}

// Kernel is a data plane of the machine's kernel.
type Kernel struct {
	dir    string
	source netip.Addr
	// numbers: the serial number of a disk is a number.
	numbers bool
	target  string
	// user and secret are those of the last Front.
	user, secret string

	// Each call is alone; this is against a program that has made two arrays of one plane.
	mu sync.Mutex
	// paths has the volume that is mounted at each path.
	paths map[string]string
}

var _ Plane = (*Kernel)(nil)

// NewKernel loads the kernel's modules and checks that the directory can have clones.
func NewKernel(c Config) (*Kernel, error) {
	dir, err := filepath.Abs(c.Dir)
	if err != nil {
		return nil, err
	}
	k := &Kernel{dir: dir, source: c.Source, numbers: c.Numbers, paths: map[string]string{}}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	if err := k.reflinks(); err != nil {
		return nil, err
	}
	if _, err := run("modprobe", "-a", "loop", "nfsd", "target_core_mod", "target_core_iblock", "iscsi_target_mod"); err != nil {
		return nil, err
	}
	for _, m := range [][2]string{{"configfs", configfs}, {"nfsd", nfsd}} {
		if _, err := os.Stat(filepath.Join(m[1], map[string]string{configfs: "target", nfsd: "threads"}[m[1]])); err == nil {
			continue
		}
		if _, err := run("mount", "-t", m[0], m[0], m[1]); err != nil {
			return nil, err
		}
	}
	return k, prepareExports()
}

// reflinks fails where a file cannot be cloned.
func (k *Kernel) reflinks() error {
	from, to := filepath.Join(k.dir, ".probe"), filepath.Join(k.dir, ".probe.clone")
	defer os.Remove(from)
	defer os.Remove(to)
	if err := os.WriteFile(from, make([]byte, 4096), 0o600); err != nil {
		return err
	}
	if _, err := run("cp", "--reflink=always", from, to); err != nil {
		return fmt.Errorf("clones need a file system with reflinks, as XFS has them, at %s: %w", k.dir, err)
	}
	return nil
}

// Found looks at the directory, the target and the exports.
func (k *Kernel) Found(target string) (Found, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.target = target
	images, err := filepath.Glob(filepath.Join(k.dir, "*"+suffix))
	if err != nil {
		return Found{}, err
	}
	var f Found
	for _, image := range images {
		f.Disks = append(f.Disks, strings.TrimSuffix(filepath.Base(image), suffix))
	}
	if f.Initiators, err = k.initiators(); err != nil {
		return Found{}, err
	}
	for _, iqn := range f.Initiators {
		mapped, err := k.mapped(iqn)
		if err != nil {
			return Found{}, err
		}
		f.Exports = append(f.Exports, mapped...)
	}
	exported, err := k.exported()
	f.Exports = append(f.Exports, exported...)
	return f, err
}

// Export maps a LUN, or exports a file system.
func (k *Kernel) Export(e Export, readOnly bool) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if e.Path != "" {
		return k.export(e, readOnly)
	}
	return k.mapLUN(e, readOnly)
}

// Unexport removes the LUN, or the export.
func (k *Kernel) Unexport(e Export) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if e.Path != "" {
		return k.unexport(e)
	}
	return k.unmapLUN(e)
}

// Front sets addresses, credentials, and whether anything is served.
func (k *Kernel) Front(f Front) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	portals := make([]netip.Addr, len(f.Portals))
	for i, portal := range f.Portals {
		address, err := netip.ParseAddr(portal)
		if err != nil {
			return fmt.Errorf("the portal %q is no address", portal)
		}
		portals[i] = address
	}
	if f.Away != Here {
		// What is served stops first: with its address gone, a server could not even end its connections.
		if err := errors.Join(k.serveTarget(f, portals), serveExports(f.Away != Down)); err != nil {
			return err
		}
		return k.answerAt(portals, f.Away == Network)
	}
	if err := k.answerAt(portals, false); err != nil {
		return err
	}
	return errors.Join(k.serveTarget(f, portals), serveExports(true))
}

// run runs a command of the machine, and returns what it has written.
func run(name string, args ...string) (string, error) {
	cmd := exec.Command(name, args...)
	cmd.Env = append(os.Environ(), "LC_ALL=C")
	out, err := cmd.CombinedOutput()
	text := strings.TrimSpace(string(out))
	if err != nil {
		return text, fmt.Errorf("%s: %w: %s", cmd, err, text)
	}
	return text, nil
}

// write writes an attribute of the kernel.
func write(value string, path ...string) error {
	return os.WriteFile(filepath.Join(path...), []byte(value), 0o600)
}

// gone is the error of a removal, which nothing to remove is not.
func gone(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
