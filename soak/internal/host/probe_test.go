package host

import (
	"os"
	"testing"
)

func TestProbe(t *testing.T) {
	l := newPlace(t)
	d, err := MakeDisk(l.Work, l.Image, Directory, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	p, err := d.NewProbe()
	if err != nil {
		t.Fatal(err)
	}
	if info, err := p.file.Stat(); err != nil || info.Size() == 0 {
		t.Errorf("on a disk that fills up there may be no room for its block: %v, %v", info, err)
	}
	for range 3 {
		if err := p.Write(); err != nil {
			t.Error(err)
		}
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(l.Work); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
	if err := p.Write(); err == nil {
		t.Error("no error from a probe that is closed")
	}
}
