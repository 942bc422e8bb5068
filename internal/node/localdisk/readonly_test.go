package localdisk

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/lib/kernel"
	"github.com/katbox/katbox/internal/model/local"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/node/quota"
	"github.com/katbox/katbox/internal/testing/roottest"
)

// unwritable checks that a pool takes nothing, says so, and has what it had.
func (p *testPool) unwritable(r local.Record) {
	p.t.Helper()
	total, free, err := p.Look()
	if !errors.Is(err, local.ErrUnwritable) || total == 0 || free == 0 {
		p.t.Errorf("a look: %d of %d bytes are free, %v", free, total, err)
	}
	changed := r
	changed.Comment = retained
	wants(p.t, p.Save(changed), local.ErrUnwritable)
	if got, err := p.Load(r.Name); err != nil || got != r {
		p.t.Errorf("loaded %+v, %v", got, err)
	}
	wants(p.t, p.tryMake(record("pvc-more", 8*mib)), local.ErrUnwritable)
	_, err = p.Load("pvc-more")
	wants(p.t, err, volume.ErrNotFound)
}

// TestDiskTurnsReadOnly under a pool.
func TestDiskTurnsReadOnly(t *testing.T) {
	each(t, inodeKinds, func(t *testing.T, k kind) {
		disk := fewInodes(t, k)
		p := newPoolOn(t, disk, k)
		r := p.make(record("pvc-1", 8*mib))
		if _, _, err := p.Look(); err != nil {
			t.Fatal(err)
		}
		roottest.RefuseWrites(t, k.fsType, disk)
		if k.fsType == "ext4" {
			p.unwritable(r)
			return
		}
		// An XFS that has shut down cannot be read either, also before someone has looked.
		for _, name := range []string{r.Name, "pvc-more"} {
			_, err := p.Load(name)
			wants(t, err, volume.ErrUnavailable)
		}
		_, _, err := p.Look()
		wants(t, err, volume.ErrUnavailable)
		wants(t, p.Save(r), local.ErrUnwritable)
	})
}

// TestLookWrites: a disk that refuses writes, which no one has tried to make, is found by the look's own.
func TestLookWrites(t *testing.T) {
	each(t, []kind{quotaOnExt4, quotaOnXFS}, func(t *testing.T, k kind) {
		roottest.Quotas(t, quota.Enforced.String()) // such a machine has dmsetup, too
		device, table := mapped(t)
		mkfs := []string{"mkfs.ext4", "-q", "-O", "quota,project", device}
		if k.fsType == "xfs" {
			mkfs = []string{"mkfs.xfs", "-q", device}
		}
		command(t, mkfs...)
		disk := t.TempDir()
		roottest.Mount(t, device, disk, k.fsType, 0, "prjquota")
		p := newPoolOn(t, disk, k)
		p.make(record("pvc-1", 8*mib))
		here, err := os.Open(disk)
		must(t, err)
		defer here.Close()
		must(t, unix.Syncfs(int(here.Fd())))
		table("flakey", "0 0 60 1 error_writes")
		_, _, _ = p.Look()
		_ = unix.Syncfs(int(here.Fd())) // as the kernel does after some seconds; an ext4 has nothing else to write
		_, _, err = p.Look()
		wants(t, err, volume.ErrUnavailable)
		t.Log(err)
	})
}

// mapped returns a device of the device mapper, and what gives it another table.
func mapped(t *testing.T) (device string, table func(target, words string)) {
	t.Helper()
	dir := t.TempDir()
	roottest.Mount(t, "katbox-test", dir, "tmpfs", 0, "size=330m")
	image := filepath.Join(dir, "image")
	must(t, errors.Join(os.WriteFile(image, nil, 0o600), os.Truncate(image, 320*mib)))
	loop := command(t, "losetup", "--find", "--show", image)
	t.Cleanup(func() { command(t, "losetup", "--detach", loop) })
	name := fmt.Sprintf("katbox-test-%d", os.Getpid())
	line := func(target, words string) string {
		return fmt.Sprintf("0 %d %s %s %s", 320*mib/512, target, loop, words)
	}
	command(t, "dmsetup", "create", name, "--table", line("linear", "0"))
	command(t, "dmsetup", "mknodes") // where there is no udev
	t.Cleanup(func() { command(t, "dmsetup", "remove", name) })
	return "/dev/mapper/" + name, func(target, words string) {
		command(t, "dmsetup", "suspend", "--noflush", "--nolockfs", name)
		command(t, "dmsetup", "reload", name, "--table", line(target, words))
		command(t, "dmsetup", "resume", name)
	}
}

func command(t *testing.T, words ...string) string {
	t.Helper()
	out, err := exec.Command(words[0], words[1:]...).CombinedOutput()
	if err != nil {
		t.Fatalf("%q: %v: %s", words, err, out)
	}
	return string(bytes.TrimSpace(out))
}

// TestLookAtAFullDisk: a disk that is full, on which the least change finds no room, can be written to.
func TestLookAtAFullDisk(t *testing.T) {
	p := newPool(t, imageOnExt4)
	for number, want := range map[error]error{
		unix.ENOSPC: nil, unix.EDQUOT: nil, unix.EROFS: local.ErrUnwritable, unix.EIO: local.ErrUnwritable,
	} {
		kernel.Inject(t, func(call, _ string) error {
			if call == "Fsetxattr" {
				return number
			}
			return nil
		})
		if _, _, err := p.Look(); !errors.Is(err, want) {
			t.Errorf("%v: %v", number, err)
		}
	}
}
