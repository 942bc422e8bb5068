package scratch

import (
	"errors"
	"math"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// TestProjectOf an entry of the trash, which may have any name.
func TestProjectOf(t *testing.T) {
	for name, want := range map[string]uint32{
		"ABC-1258291200": 1258291200, "ABC": 0, "": 0, "-": 0, "-7": 7, "ABC-x": 0, "ABC-7-8": 0, "ABC--7": 0, "ABC-+7": 0,
		"ABC-4294967295": math.MaxUint32, "ABC-4294967296": 0,
	} {
		if got := ProjectOf(name); got != want {
			t.Errorf("%q: project %d, want %d", name, got, want)
		}
	}
	d := open(t)
	for _, project := range []uint32{0, 1, 1258291200, math.MaxUint32} {
		if _, err := d.Create(here); err != nil {
			t.Fatal(err)
		}
		name, err := d.DiscardAs(here, project)
		if err != nil || ProjectOf(name) != project {
			t.Errorf("project %d is in the trash as %q, %v", project, name, err)
		}
		must(t, d.Erase(t.Context(), name, nil))
	}
}

// TestPrepare comes before others than root can write, again after a crash, and never to a directory that is whole.
func TestPrepare(t *testing.T) {
	d := open(t)
	prepared := 0
	as := Making{Prepare: func(fd int) error {
		var st unix.Stat_t
		must(t, unix.Fstat(fd, &st))
		if st.Mode&0o222 != 0 {
			t.Errorf("mode %#o", st.Mode)
		}
		prepared++
		return nil
	}}
	refused := errors.New("refused")
	created, err := d.CreateAs(here, Making{Prepare: func(int) error { return refused }})
	if created || !errors.Is(err, refused) || exists(d.Path(here)) {
		t.Errorf("refused: %t, %v, there %t", created, err, exists(d.Path(here)))
	}
	for _, want := range []int{1, 1} {
		if _, err := d.CreateAs(here, as); err != nil || prepared != want {
			t.Errorf("prepared %d times, want %d, %v", prepared, want, err)
		}
	}
	must(t, os.Chmod(d.Path(here), 0o400|os.ModeSticky))
	if created, err := d.CreateAs(here, as); !created || err != nil || prepared != 2 {
		t.Errorf("after a crash: %t, %v, prepared %d times", created, err, prepared)
	}
}
