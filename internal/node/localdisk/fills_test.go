package localdisk

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/katbox/katbox/internal/testing/roottest"
)

// TestFillsDevice: an ext4 of mke2fs is as large as it can be, though some have no room in their last group; and it is not
// once its device has grown.
func TestFillsDevice(t *testing.T) {
	mkfs, err := exec.LookPath("mkfs.ext4")
	if err != nil {
		mkfs = "/usr/sbin/mkfs.ext4"
	}
	if _, err := os.Stat(mkfs); err != nil {
		roottest.Lacks(t, "mkfs.ext4", err)
	}
	smaller := 0
	for _, size := range []int64{64, 128, 129, 256, 1024, 1025, 1026, 1154, 2049, 3201, 6273, 10241, 19074} {
		t.Run(fmt.Sprint(size, " MiB"), func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "image")
			must(t, os.WriteFile(path, nil, 0o600))
			must(t, os.Truncate(path, size*mib))
			if out, err := exec.Command(mkfs, "-q", "-F", "-b", "4096", "-E", "nodiscard,lazy_itable_init=1", path).CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			file, err := os.Open(path)
			must(t, err)
			defer file.Close()
			block := make([]byte, 1024)
			_, err = file.ReadAt(block, 1024)
			must(t, err)
			if !fillsDevice(block, size*mib) {
				t.Error("it does not fill its device")
			}
			if fillsDevice(block, (size+128)*mib) {
				t.Error("it fills a device that is larger by a group")
			}
			if count := int64(block[4]) | int64(block[5])<<8 | int64(block[6])<<16; count*4096 < size*mib {
				smaller++
			}
		})
	}
	if smaller == 0 {
		t.Error("each of them has the size of its device: nothing was tried")
	}
}
