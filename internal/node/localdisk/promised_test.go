package localdisk

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/model/local"
	"github.com/katbox/katbox/internal/model/volume"
)

// takes returns the bytes of the disk that are not free.
func (p *testPool) takes() int64 {
	p.t.Helper()
	must(p.t, unix.Syncfs(int(p.here.Fd())))
	total, free, err := p.Look()
	must(p.t, err)
	return total - free
}

// TestHardLimitIsPromisedRoom: where no pod can write more than its volume's size, the volume takes no more of the disk than
// that, whatever was copied, written and deleted.
func TestHardLimitIsPromisedRoom(t *testing.T) {
	each(t, []kind{imageOnXFS, imageOnBtrfs}, func(t *testing.T, k kind) {
		p := newPool(t, k)
		empty := p.takes()
		r := record("pvc-1", 64*mib)
		r.Block = true
		r = p.make(r)
		image := filepath.Join(p.path, volumesName, r.Name, imageName)
		write := func(but int) {
			file, err := os.OpenFile(image, os.O_RDWR, 0)
			must(t, err)
			defer file.Close()
			for n := range 64 {
				if n%8 != but {
					_, err := file.WriteAt(make([]byte, mib), int64(n)*mib)
					must(t, err)
				}
			}
			must(t, file.Sync())
		}
		write(-1)
		for n := range 3 {
			s := record(fmt.Sprintf("snap-%d", n), r.Size)
			s.Of, s.Block = r.Name, true
			if !p.Describe().Copies {
				wants(t, p.tryMake(s), volume.ErrInvalid)
				clone := record("pvc-2", r.Size)
				clone.Block, clone.Source.Volume = true, r.Name
				wants(t, p.tryMake(clone), volume.ErrInvalid)
				must(t, p.tryDelete(clone))
				must(t, p.tryDelete(s))
				continue
			}
			s = p.make(s)
			write(n)
			p.delete(s)
			must(t, p.Erase(t.Context()))
		}
		if took := p.takes() - empty; p.Describe().HardLimit && took > r.Size+4*mib {
			t.Errorf("a volume of %d MiB takes %d of the disk", r.Size/mib, took/mib)
		}
		if is := p.Describe(); !is.HardLimit || is.Copies == (k.fsType == btrfsName) {
			t.Errorf("the pool is %+v", is)
		}
	})
}

// TestEarlierPoolWithCopiesOnBtrfs goes on with them as long as there are any, and promises no hard limit.
func TestEarlierPoolWithCopiesOnBtrfs(t *testing.T) {
	p := copyingPool(t, imageOnBtrfs)
	r := p.make(record("pvc-1", 32*mib))
	s := record("snap-1", r.Size)
	s.Of = r.Name
	s = p.make(s)
	clone := record("pvc-2", r.Size)
	clone.Source.Snapshot = s.Name
	for _, now := range []struct {
		do     func()
		copies bool
	}{
		{func() {}, true},
		{func() { clone = p.make(clone); p.delete(s) }, true},
		{func() { p.delete(clone) }, false},
	} {
		now.do()
		p.reopen()
		if is := p.Describe(); is.Copies != now.copies || is.HardLimit == now.copies || is.Backend != local.Image {
			t.Errorf("the pool is %+v, want copies %t", is, now.copies)
		}
	}
}
