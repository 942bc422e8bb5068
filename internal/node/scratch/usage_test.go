package scratch

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/node/beneath"
	"github.com/katbox/katbox/internal/testing/roottest"
	"github.com/katbox/katbox/internal/testing/roottest/hostile"
)

func usage(t *testing.T, d *Dir) (bytes, inodes int64) {
	t.Helper()
	bytes, inodes, err := d.Usage(context.Background(), here, nil)
	must(t, err)
	return bytes, inodes
}

func allocated(t *testing.T, path string) int64 {
	t.Helper()
	var st unix.Stat_t
	must(t, unix.Lstat(path, &st))
	return st.Blocks * 512
}

func TestUsage(t *testing.T) {
	eachKernel(t, func(t *testing.T, d *Dir) {
		if _, _, err := d.Usage(context.Background(), here, nil); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("of nothing: %v", err)
		}
		dir := create(t, d, here)
		if bytes, inodes := usage(t, d); bytes != allocated(t, dir) || inodes != 1 {
			t.Errorf("empty: %d bytes, %d inodes", bytes, inodes)
		}

		must(t, os.MkdirAll(dir+"/a/b", 0o700))
		must(t, os.WriteFile(dir+"/a/full", []byte(strings.Repeat("x", 100_000)), 0o600))
		must(t, os.Link(dir+"/a/full", dir+"/a/b/again"))
		must(t, os.Link(dir+"/a/full", dir+"/third"))
		must(t, os.WriteFile(dir+"/sparse", nil, 0o600))
		must(t, os.Truncate(dir+"/sparse", 1<<40))
		// A link to outside is one more that is never met.
		must(t, os.Link(dir+"/sparse", filepath.Join(d.root, "..", "outside")))
		must(t, os.Symlink("/", dir+"/link"))

		sum := func() (sum int64) {
			for _, path := range []string{"", "/a", "/a/b", "/a/full", "/sparse", "/link"} {
				sum += allocated(t, dir+path)
			}
			return sum
		}
		// The file system may allocate anew what it has not written yet.
		want, bytes, inodes := sum(), int64(0), int64(0)
		for again := true; again; {
			bytes, inodes = usage(t, d)
			now := sum()
			want, again = now, now != want
		}
		if bytes != want || inodes != 6 {
			t.Errorf("%d bytes, %d inodes; want %d and 6", bytes, inodes, want)
		}

		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		if _, _, err := d.Usage(ctx, here, nil); !errors.Is(err, context.Canceled) {
			t.Errorf("after cancel: %v", err)
		}
	})
}

func TestUsageOfDeepTree(t *testing.T) {
	eachKernel(t, func(t *testing.T, d *Dir) {
		const depth = 3000
		hostile.Deep(t, create(t, d, here), depth, strings.Repeat("n", 200))
		t.Run("with few files open", func(t *testing.T) {
			hostile.FewFiles(t, beneath.MaxOpen+20)
			// Every directory but the last has a file.
			if _, inodes := usage(t, d); inodes != 2*depth+1 {
				t.Errorf("%d inodes", inodes)
			}
		})
		name, _ := discard(t, d, here)
		erase(t, d, name)
	})
}

// TestUsageOfDeepBranches goes up and down where directories above are closed.
func TestUsageOfDeepBranches(t *testing.T) {
	d := open(t)
	dir := create(t, d, here)
	const depth = beneath.MaxOpen + 20
	hostile.Deep(t, dir, depth, "d")
	const branches = 3
	for i := range branches {
		hostile.Deep(t, filepath.Join(dir, strings.Repeat("d/", 15)), depth, "b"+string(rune('0'+i)))
	}
	want := int64(1 + 2*(1+branches)*depth)
	// The branches share a file with the directory that they are in.
	want -= branches
	if _, inodes := usage(t, d); inodes != want {
		t.Errorf("%d inodes; want %d", inodes, want)
	}
}

func TestUsageLeavesMountsOut(t *testing.T) {
	roottest.Need(t)
	eachKernel(t, func(t *testing.T, d *Dir) {
		outside := t.TempDir()
		must(t, os.WriteFile(outside+"/file", []byte("data"), 0o600))
		dir := create(t, d, here)
		must(t, os.Mkdir(dir+"/mnt", 0o700))
		roottest.Bind(t, outside, dir+"/mnt")
		if bytes, inodes := usage(t, d); bytes != allocated(t, dir) || inodes != 1 {
			t.Errorf("%d bytes, %d inodes", bytes, inodes)
		}
	})
}

// TestUsageOfWhatIsNotOurs: what is in the place of a volume, or of its pod, is not gone into.
func TestUsageOfWhatIsNotOurs(t *testing.T) {
	eachKernel(t, func(t *testing.T, d *Dir) {
		create(t, d, here)
		must(t, os.Symlink(string(pod), d.root+"/linked"))
		must(t, os.Symlink(string(vol), d.root+"/"+string(pod)+"/linked"))
		must(t, os.WriteFile(d.root+"/"+string(pod)+"/file", nil, 0o600))
		must(t, os.WriteFile(d.root+"/file", nil, 0o600))
		for _, v := range []struct {
			pod volume.PodUID
			id  volume.ID
		}{{"linked", vol}, {pod, "linked"}, {pod, "file"}, {"file", vol}} {
			if _, _, err := d.Usage(t.Context(), at(v.pod, v.id), nil); !errors.Is(err, ErrNotOurs) {
				t.Errorf("of %s/%s: %v", v.pod, v.id, err)
			}
		}
	})
}

func TestUsageOfWhatIsMountedOver(t *testing.T) {
	roottest.Need(t)
	eachKernel(t, func(t *testing.T, d *Dir) {
		outside := t.TempDir()
		must(t, os.Mkdir(filepath.Join(outside, string(vol)), 0o700))
		for _, over := range []string{filepath.Dir(create(t, d, here)), create(t, d, at("another", vol))} {
			roottest.Bind(t, outside, over)
		}
		for _, p := range []volume.PodUID{pod, "another"} {
			if _, _, err := d.Usage(t.Context(), at(p, vol), nil); !errors.Is(err, ErrNotOurs) {
				t.Errorf("of %s: %v", p, err)
			}
		}
	})
}

// TestUsageWithoutPrivileges: the directories of others can be read all the same, and that they
// were is then noted.
func TestUsageWithoutPrivileges(t *testing.T) {
	roottest.Need(t)
	eachKernel(t, func(t *testing.T, d *Dir) {
		dir := create(t, d, here)
		must(t, os.Mkdir(dir+"/a", 0o755))
		for _, path := range []string{d.root, filepath.Dir(dir)} {
			must(t, os.Chmod(path, 0o755))
		}
		old := d.opener.NoOpenat2.Load()
		runtime.LockOSThread() // whose user it is
		must(t, unix.Setfsuid(65534))
		_, inodes, err := d.Usage(t.Context(), here, nil)
		must(t, unix.Setfsuid(0))
		runtime.UnlockOSThread()
		if err != nil || inodes != 2 {
			t.Errorf("%d inodes, %v", inodes, err)
		}
		if d.opener.NoOpenat2.Load() != old {
			t.Error("a refused O_NOATIME was taken for a missing openat2")
		}
	})
}
