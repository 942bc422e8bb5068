package kernel

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"golang.org/x/sys/unix"
)

func TestInject(t *testing.T) {
	dir := t.TempDir()
	open, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer open.Close()
	fd := int(open.Fd())
	var changes []string
	t.Run("injected", func(t *testing.T) {
		Inject(t, func(call, path string) error {
			changes = append(changes, call+" "+path)
			if call == "Rmdirat" {
				return nil
			}
			return unix.EIO
		})
		for name, err := range map[string]error{"mkdirat": Mkdirat(fd, "a", 0o700), "mkdir": Mkdir(dir+"/a", 0o700),
			"fsync": Fsync(fd), "syncfs": Syncfs(fd)} {
			if !errors.Is(err, unix.EIO) {
				t.Errorf("%s: %v, want the injected error", name, err)
			}
		}
		if err := Rmdirat(fd, "a"); !errors.Is(err, unix.ENOENT) {
			t.Errorf("rmdirat: %v; a change that failed was made, or one that did not fail was not", err)
		}
	})
	slices.Sort(changes)
	want := []string{"Fsync " + dir, "Mkdir " + dir + "/a", "Mkdirat " + dir + "/a", "Rmdirat " + dir + "/a", "Syncfs " + dir}
	if !slices.Equal(changes, want) {
		t.Errorf("changes %q, want %q", changes, want)
	}
	if err := Mkdirat(fd, "a", 0o700); err != nil {
		t.Errorf("after the test that injects: %v", err)
	}
}

func TestInterruptedCallsAreRepeated(t *testing.T) {
	calls := 0
	err := do("x", at(""), func() error {
		if calls++; calls < 3 {
			return os.NewSyscallError("x", unix.EINTR)
		}
		return unix.EIO
	})
	if !errors.Is(err, unix.EIO) || calls != 3 {
		t.Errorf("%v after %d calls", err, calls)
	}
}

// interrupted is a database whose transactions end with EINTR.
type interrupted struct{ updates int }

func (*interrupted) Path() string { return "db" }
func (d *interrupted) Update(func(int) error) error {
	d.updates++
	return unix.EINTR
}

func TestTransactionsAreNotRepeated(t *testing.T) {
	d := &interrupted{}
	if err := Update(d, func(int) error { return nil }); !errors.Is(err, unix.EINTR) || d.updates != 1 {
		t.Errorf("%v after %d transactions", err, d.updates)
	}
	Inject(t, func(string, string) error { return unix.EIO })
	if err := Update(d, func(int) error { return nil }); !errors.Is(err, unix.EIO) || d.updates != 1 {
		t.Errorf("%v after %d transactions", err, d.updates)
	}
}

func TestRenameNoReplace(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"a", "b"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := RenameNoReplace(unix.AT_FDCWD, dir+"/a", unix.AT_FDCWD, dir+"/b"); !errors.Is(err, unix.EEXIST) {
		t.Errorf("over an empty directory: %v", err)
	}
	if err := RenameNoReplace(unix.AT_FDCWD, dir+"/a", unix.AT_FDCWD, dir+"/c"); err != nil {
		t.Error(err)
	}
}
