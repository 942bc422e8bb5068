package dataplane

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

const (
	nfsd = "/proc/fs/nfsd"
	etab = "/var/lib/nfs/etab"
)

// prepareExports makes the files that exportfs and rpc.mountd expect, where they are missing.
func prepareExports() error {
	for _, dir := range []string{"/var/lib/nfs/v4recovery", "/run/rpcbind", "/etc"} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	for path, content := range map[string]string{
		etab: "", "/var/lib/nfs/rmtab": "", "/etc/exports": "", "/etc/protocols": "tcp 6 TCP\nudp 17 UDP\n",
	} {
		f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
			return err
		}
		_, err = f.WriteString(content)
		if err := errors.Join(err, f.Close()); err != nil {
			return err
		}
	}
	return nil
}

// The seconds for which an NFS server waits, when it starts, for the clients from before. The kernel
// takes no less; its own number is 90.
const grace = "10"

// serveExports starts or ends nfsd.
func serveExports(serve bool) error {
	threads, err := os.ReadFile(filepath.Join(nfsd, "threads"))
	if err != nil {
		return err
	}
	runs := strings.TrimSpace(string(threads)) != "0"
	if serve == runs {
		return nil
	}
	if !serve {
		_, err := run("rpc.nfsd", "0")
		return err
	}
	if err := errors.Join(write(grace, nfsd, "nfsv4leasetime"), write(grace, nfsd, "nfsv4gracetime")); err != nil {
		return err
	}
	if err := startMountd(); err != nil {
		return err
	}
	_, err = run("rpc.nfsd", "--no-nfs-version", "3", "--nfs-version", "4.1", "--nfs-version", "4.2", "8")
	return err
}

// startMountd starts what tells the kernel who may mount what, unless it runs.
func startMountd() error {
	names, err := filepath.Glob("/proc/[0-9]*/comm")
	if err != nil {
		return err
	}
	for _, name := range names {
		// A process that ends meanwhile is none.
		if comm, err := os.ReadFile(name); err == nil && strings.TrimSpace(string(comm)) == "rpc.mountd" {
			return nil
		}
	}
	_, err = run("rpc.mountd", "--no-nfs-version", "2", "--no-nfs-version", "3")
	return err
}

// identity tells the exports of this plane apart from others, and a volume from an earlier one at the
// same path: the file handles of clients begin with it.
func (k *Kernel) identity(id string) string { return k.plane() + fmt.Sprintf("%x", hash(id)) }

func (k *Kernel) plane() string { return fmt.Sprintf("%x", hash(k.dir)) }

func hash(s string) []byte {
	sum := sha256.Sum256([]byte(s))
	return sum[:8]
}

func client(e Export) string {
	address := e.Address
	if strings.Contains(address, ":") {
		address = "[" + address + "]"
	}
	return address + ":" + e.Path
}

func (k *Kernel) export(e Export, readOnly bool) error {
	id := k.paths[e.Path]
	if id == "" {
		return fmt.Errorf("no volume is mounted at %s", e.Path)
	}
	mode := "rw"
	if readOnly {
		mode = "ro"
	}
	_, err := run("exportfs", "-o", mode+",no_root_squash,insecure,no_subtree_check,fsid="+k.identity(id), client(e))
	return err
}

func (k *Kernel) unexport(e Export) error {
	_, err := run("exportfs", "-u", client(e))
	return err
}

// exported returns this plane's exports.
func (k *Kernel) exported() ([]Export, error) {
	data, err := os.ReadFile(etab)
	if err != nil {
		return nil, err
	}
	var all []Export
	for line := range strings.Lines(string(data)) {
		path, rest, ok := strings.Cut(strings.TrimSpace(line), "\t")
		address, options, _ := strings.Cut(rest, "(")
		if ok && strings.Contains(options, "fsid="+k.plane()) {
			all = append(all, Export{Path: unescape(path), Address: address})
		}
	}
	return all, nil
}

// unescape reads a name in which blanks are written as \040.
func unescape(name string) string {
	var b strings.Builder
	for i := 0; i < len(name); i++ {
		var octal byte
		if name[i] == '\\' && i+3 < len(name) {
			if n, err := fmt.Sscanf(name[i+1:i+4], "%o", &octal); n == 1 && err == nil {
				b.WriteByte(octal)
				i += 3
				continue
			}
		}
		b.WriteByte(name[i])
	}
	return b.String()
}
