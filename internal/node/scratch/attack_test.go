package scratch

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"
)

// attacker holds handles of a volume that is erased. Whenever the eraser is in the last
// subdirectory of a directory, it puts another one beside that, up to a number that a bound for
// each directory would allow.
type attacker struct {
	t      *testing.T
	added  map[string]int
	number int
}

const (
	attackDepth = 3
	attackWidth = 12
)

// grow makes a tree of a given height, whose lowest directory has files for a batch.
func (a *attacker) grow(dir string, height int) {
	a.t.Helper()
	for range height {
		a.number++
		dir = filepath.Join(dir, "d"+strconv.Itoa(a.number))
		must(a.t, os.Mkdir(dir, 0o700))
	}
	fill(a.t, dir, paceEvery, 0)
}

// act adds to each directory below dir, which is so many levels above the files.
func (a *attacker) act(dir string, height int) {
	below, err := filepath.Glob(filepath.Join(dir, "d*"))
	must(a.t, err)
	if height == 0 || len(below) == 0 {
		return
	}
	if len(below) == 1 && a.added[dir] < attackWidth {
		a.added[dir]++
		a.grow(dir, height)
	}
	for _, path := range below {
		a.act(path, height-1)
	}
}

// TestEraseUnderAttack: what somebody can add to while it is erased takes no longer than if there
// were some more directories, however deep it is. With a bound for each directory it is that many
// times more with each level.
func TestEraseUnderAttack(t *testing.T) {
	d := open(t)
	a := attacker{t: t, added: map[string]int{}}
	a.grow(create(t, d, here), attackDepth)
	name, path := discard(t, d, here)
	const most = 2 * maxRepeats * (paceEvery + attackDepth)
	total := 0
	tooLong := errors.New("it does not end")
	err := d.Erase(context.Background(), name, func(_ context.Context, removed int) error {
		if total += removed; total > most {
			return tooLong
		}
		a.act(path, attackDepth)
		return nil
	})
	if !errors.Is(err, unix.ENOTEMPTY) || errors.Is(err, tooLong) {
		t.Errorf("%v, want that names keep appearing; %d removed of at most %d", err, total, most)
	}
	erase(t, d, name)
}

// TestEraseManyDirectories: a bound for all directories together is no bound for their number.
func TestEraseManyDirectories(t *testing.T) {
	d := open(t)
	dir := create(t, d, here)
	for i := range 10 * maxRepeats {
		must(t, os.MkdirAll(filepath.Join(dir, strconv.Itoa(i), "below"), 0o700))
	}
	name, _ := discard(t, d, here)
	erase(t, d, name)
}
