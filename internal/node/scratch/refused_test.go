package scratch

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/lib/kernel"
	"github.com/katbox/katbox/internal/testing/roottest"
	"github.com/katbox/katbox/internal/testing/roottest/hostile"
)

// TestDiscardOfAnyProject: below a directory with a project quota a pod cannot keep its volume by
// giving it another project, also where the administrator sets the project of all directories again
// while the daemon runs.
func TestDiscardOfAnyProject(t *testing.T) {
	roottest.Need(t)
	root := fileSystem(t, "xfs")
	if !hostile.SetProject(t, root, 10) {
		t.Fatal("the file system has no projects")
	}
	d := openAt(t, filepath.Join(root, "work"))
	attr, err := kernel.GetXAttr(d.trashFD())
	if err != nil || attr.Project != 0 || attr.XFlags&projectInherit != 0 {
		t.Errorf("the trash has project %d, flags %#x", attr.Project, attr.XFlags)
	}
	for _, again := range []bool{false, true} {
		dir := create(t, d, here)
		hostile.Deep(t, dir, 2*maxDepth, "d")
		hostile.SetProject(t, dir, 20)
		hostile.SetProject(t, dir+"/d", 30)
		if again {
			hostile.SetProject(t, filepath.Join(d.root, trashName), 10)
		}
		name, _ := discard(t, d, here)
		erase(t, d, name)
	}
}

// refusals make file systems on which the data directory that they return cannot be moved to the
// trash, whatever is done about it.
var refusals = []struct {
	name string
	make func(t *testing.T) (*Dir, string)
	err  error
}{
	{"as many as fit", func(t *testing.T) (*Dir, string) {
		d := openAt(t, filepath.Join(roottest.FileSystem(t, "ext4", 384, "-O", "^dir_nlink", "-N", "70000"), "work"))
		trash := filepath.Join(d.root, trashName)
		for i := 0; ; i++ {
			err := os.Mkdir(filepath.Join(trash, strconv.Itoa(i)), 0o700)
			if errors.Is(err, unix.EMLINK) {
				break
			}
			must(t, err)
		}
		return d, create(t, d, here)
	}, unix.EMLINK},
	{"overlay", func(t *testing.T) (*Dir, string) {
		// A directory of the lower layer cannot be moved.
		base, merged := t.TempDir(), t.TempDir()
		roottest.Tmpfs(t, base, 0)
		for _, sub := range []string{"upper", "work"} {
			must(t, os.Mkdir(filepath.Join(base, sub), 0o700))
		}
		lower := openAt(t, filepath.Join(base, "lower"))
		create(t, lower, here)
		roottest.Mount(t, "katbox-test", merged, "overlay", 0,
			"userxattr,lowerdir="+base+"/lower,upperdir="+base+"/upper,workdir="+base+"/work")
		d := openAt(t, merged)
		return d, d.Path(here)
	}, unix.EXDEV},
}

// TestTrashRefuses: what cannot be moved to the trash is erased where it is. What is not ours is
// neither.
func TestTrashRefuses(t *testing.T) {
	for _, refusal := range refusals {
		t.Run(refusal.name, func(t *testing.T) {
			roottest.Need(t)
			d, dir := refusal.make(t)
			fill(t, dir, 10, 10)
			hostile.Deep(t, dir, 2*maxDepth, "d")
			if _, err := d.Discard(here); !errors.Is(err, ErrTrashRefuses) || !errors.Is(err, refusal.err) || errors.Is(err, ErrNotOurs) {
				t.Fatalf("Discard: %v, want that the trash refuses: %v", err, refusal.err)
			}
			roottest.Bind(t, t.TempDir(), dir)
			if _, err := d.Discard(here); !errors.Is(err, ErrNotOurs) || errors.Is(err, ErrTrashRefuses) {
				t.Errorf("Discard of a mount point: %v", err)
			}
			if err := d.EraseInPlace(t.Context(), here, nil); !errors.Is(err, ErrNotOurs) {
				t.Errorf("EraseInPlace of a mount point: %v", err)
			}
			must(t, unix.Unmount(dir, 0))
			must(t, d.EraseInPlace(t.Context(), here, nil))
			if exists(filepath.Dir(dir)) {
				t.Error("the pod's directory is still there")
			}
		})
	}
}
