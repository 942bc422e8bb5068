package localdisk

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// setsAside returns how many bytes of the disk a file of a pool has set aside.
func (p *testPool) setsAside(name string) int64 {
	p.t.Helper()
	var st unix.Stat_t
	must(p.t, unix.Lstat(filepath.Join(p.path, name), &st))
	if st.Mode&unix.S_IFMT != unix.S_IFREG {
		p.t.Errorf("%s has the mode %o", name, st.Mode)
	}
	return st.Blocks * 512
}

// TestReserveThatWasRestored: what has copied the pool left zeros out, and a person has put something else in the place of
// what holds room for records. The next start has both again, before the disk is full.
func TestReserveThatWasRestored(t *testing.T) {
	const spare = recordsName + "/" + spareName
	sparse := func(path string, size int64) error {
		return errors.Join(os.WriteFile(path, nil, 0o600), os.Truncate(path, size))
	}
	for name, becomes := range map[string]func(path string, size int64) error{
		"sparse":       sparse,
		"a directory":  func(path string, _ int64) error { return os.MkdirAll(filepath.Join(path, "in"), 0o700) },
		"a link":       func(path string, _ int64) error { return os.Symlink("/etc/hostname", path) },
		"a named pipe": func(path string, _ int64) error { return unix.Mkfifo(path, 0o600) },
		"nothing":      func(string, int64) error { return nil },
	} {
		t.Run(name, func(t *testing.T) {
			each(t, []kind{imageOnExt4, imageOnXFS}, func(t *testing.T, k kind) {
				disk := fewInodes(t, k)
				p := newPoolOn(t, disk, k)
				r := p.make(record("pvc-1", 8*mib))
				for at, size := range map[string]int64{reserveName: reserveSize, spare: spareSize} {
					path := filepath.Join(p.path, at)
					must(t, os.Remove(path))
					must(t, becomes(path, size))
				}
				p.reopen()
				if a, b := p.setsAside(reserveName), p.setsAside(spare); a < reserveSize || b == 0 {
					t.Errorf("they hold %d and %d bytes", a, b)
				}
				must(t, os.WriteFile(filepath.Join(p.path, "stranger"), nil, 0o600))
				useUpInodes(t, filepath.Join(disk, "others"))
				fill(t, p.Pool)
				r.Comment = retained
				must(t, p.Save(r))
				p.reopen()
				if got, err := p.Load(r.Name); err != nil || got != r {
					t.Errorf("loaded %+v, %v", got, err)
				}
				p.delete(r)
			})
		})
	}
}
