package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/attach/attachtest"
	"github.com/katbox/katbox/internal/attach/staged"
)

// bare does what a stage and a publish cannot do without, and nothing else: a durable record, the commands,
// the system calls.
type bare struct {
	b    *testing.B
	a    *arrayDaemon
	dir  string
	node string
	// undos undo what was done, the last first.
	undos []func() error
}

func newBare(b *testing.B, a *arrayDaemon) *bare {
	b.Helper()
	return &bare{b: b, a: a, dir: b.TempDir(), node: attachtest.NodeAddress(b)}
}

func (r *bare) undo() {
	r.b.Helper()
	for _, undo := range slices.Backward(r.undos) {
		must(r.b, undo())
	}
	r.undos = nil
}

// bringUp stages and publishes a volume.
func (r *bare) bringUp(v attached) {
	r.b.Helper()
	staging, target := r.a.pathsOf(v.at.Volume, v.block)
	r.record(v, staging)
	source := staging
	if v.at.Export != "" {
		server, _, _ := strings.Cut(v.at.Export, ":")
		must(r.b, unix.Mount(v.at.Export, staging, "nfs4", 0, "vers=4.2,addr="+server+",clientaddr="+r.node))
		r.undos = append(r.undos, func() error { return unix.Unmount(staging, 0) })
	} else {
		source = r.disk(v, staging)
	}
	if v.block {
		must(r.b, os.WriteFile(target, nil, 0o600))
	} else {
		must(r.b, os.Mkdir(target, 0o750))
	}
	must(r.b, unix.Mount(source, target, "", unix.MS_BIND, ""))
	r.undos = append(r.undos, func() error { return errors.Join(unix.Unmount(target, 0), os.Remove(target)) })
}

// record makes durable what is about to be done.
func (r *bare) record(v attached, staging string) {
	r.b.Helper()
	content, err := json.Marshal(staged.Record{Volume: v.at.Volume, Path: staging, Block: v.block, Attachment: v.at, Serial: v.at.Serial})
	must(r.b, err)
	name := filepath.Join(r.dir, v.at.Volume)
	file, err := os.Create(name + ".new")
	must(r.b, err)
	_, err = file.Write(content)
	must(r.b, errors.Join(err, file.Sync(), file.Close(), os.Rename(name+".new", name)))
	dir, err := os.Open(r.dir)
	must(r.b, err)
	must(r.b, errors.Join(dir.Sync(), dir.Close()))
	r.undos = append(r.undos, func() error { return os.Remove(name) })
}

// waitFor waits until something is there. It does not take the CPU meanwhile, as the daemon does not either.
func waitFor(there func() bool) {
	for !there() {
		time.Sleep(10 * time.Millisecond)
	}
}

// disk makes a LUN appear, and stages it. It returns what is to be bound.
func (r *bare) disk(v attached, staging string) string {
	r.b.Helper()
	hosts, err := filepath.Glob("/sys/class/iscsi_host/host*")
	if err != nil || len(hosts) != 1 {
		r.b.Fatalf("hosts %q, %v, want one", hosts, err)
	}
	host := filepath.Base(hosts[0])
	must(r.b, os.WriteFile("/sys/class/scsi_host/"+host+"/scan", fmt.Appendf(nil, "0 0 %d", v.at.LUN), 0))
	disk := fmt.Sprintf("/sys/class/scsi_disk/%s:0:0:%d/device", strings.TrimPrefix(host, "host"), v.at.LUN)
	var names []string
	waitFor(func() bool {
		names, err = filepath.Glob(disk + "/block/*")
		must(r.b, err)
		return len(names) > 0
	})
	r.undos = append(r.undos, func() error { return os.WriteFile(disk+"/delete", []byte("1"), 0) })
	dev := "/dev/" + filepath.Base(names[0])
	wantSerial(r.b, disk, v.at.Serial)
	// The device's node can be opened a little later than the disk appears.
	waitFor(func() bool {
		node, err := os.Open(dev)
		return err == nil && node.Close() == nil
	})
	if v.block {
		file := filepath.Join(staging, "device")
		must(r.b, os.WriteFile(file, nil, 0o600))
		must(r.b, unix.Mount(dev, file, "", unix.MS_BIND, ""))
		r.undos = append(r.undos, func() error { return errors.Join(unix.Unmount(file, 0), os.Remove(file)) })
		return file
	}
	for _, command := range [][]string{{"blkid", "-p", "-o", "export", dev}, {"fsck.ext4", "-a", dev}} {
		if out, err := exec.Command(command[0], command[1:]...).CombinedOutput(); err != nil {
			r.b.Fatalf("%q: %v: %s", command, err, out)
		}
	}
	must(r.b, unix.Mount(dev, staging, "ext4", 0, ""))
	r.undos = append(r.undos, func() error { return unix.Unmount(staging, 0) })
	return staging
}
