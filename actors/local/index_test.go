package local

import (
	"errors"
	"maps"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/katbox/katbox/internal/model/local"
	"github.com/katbox/katbox/internal/model/pools"
	"github.com/katbox/katbox/internal/model/volume"
)

func ready(name string, size int64) local.Record {
	return local.Record{Name: name, Size: size, State: local.Ready}
}

func making(name string, size int64, from local.Source, of string) local.Record {
	return local.Record{Name: name, Size: size, State: local.Making, Source: from, Of: of}
}

func TestReserve(t *testing.T) {
	there := []local.Record{
		ready("v", 3), {Name: "s", Size: 3, State: local.Ready, Of: "v"}, making("m", 1, local.Source{}, ""),
		{Name: "d", Size: 1, State: local.Deleting},
	}
	for name, tc := range map[string]struct {
		record local.Record
		want   error
	}{
		"fits":                        {making("n", 2, local.Source{}, ""), nil},
		"does not fit":                {making("n", 3, local.Source{}, ""), volume.ErrNoSpace},
		"there already":               {ready("v", 3), nil},
		"grows":                       {ready("v", 5), nil},
		"grows too much":              {ready("v", 6), volume.ErrNoSpace},
		"snapshot of nothing":         {making("n", 1, local.Source{}, "x"), volume.ErrNotFound},
		"snapshot of a snapshot":      {making("n", 1, local.Source{}, "s"), volume.ErrNotFound},
		"snapshot of what is made":    {making("n", 1, local.Source{}, "m"), volume.ErrBusy},
		"snapshot of what is deleted": {making("n", 1, local.Source{}, "d"), volume.ErrNotFound},
		"smaller than its source":     {making("n", 2, local.Source{Volume: "v"}, ""), pools.ErrOutOfRange},
		"of a volume as a snapshot":   {making("n", 2, local.Source{Snapshot: "v"}, ""), volume.ErrNotFound},
	} {
		x := indexOf(there)
		before := x.promised
		err := x.reserve(tc.record, 10)
		if !errors.Is(err, tc.want) || (err == nil) != (tc.want == nil) {
			t.Errorf("%s: %v, want %v", name, err, tc.want)
		}
		if after := x.promised; err != nil && after != before {
			t.Errorf("%s: %d bytes are promised after an error, %d before", name, after, before)
		}
	}
}

func TestClaim(t *testing.T) {
	x := indexOf([]local.Record{
		ready("v", 1), {Name: "s", Size: 1, State: local.Ready, Of: "v"}, ready("w", 1), making("c", 1, local.Source{Volume: "w"}, ""),
		making("d", 1, local.Source{Snapshot: "s"}, ""),
	})
	for name, want := range map[string]error{"v": pools.ErrInUse, "s": pools.ErrInUse, "w": pools.ErrInUse, "c": nil, "unknown": nil} {
		if err := x.claim(name); !errors.Is(err, want) || (err == nil) != (want == nil) {
			t.Errorf("claim %s: %v, want %v", name, err, want)
		}
	}
	x.settle(ready("d", 1))
	if err := x.claim("s"); err != nil {
		t.Errorf("claim a snapshot whose copy has been made: %v", err)
	}
	if err := x.reserve(making("e", 1, local.Source{Snapshot: "s"}, ""), 100); !errors.Is(err, volume.ErrNotFound) {
		t.Errorf("copy what was claimed: %v", err)
	}
}

// TestSumsAreThoseOfTheRecords whatever came before.
func TestSumsAreThoseOfTheRecords(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	names := []string{"a", "b", "c", "d", "e"}
	comments := []string{"", pools.Comment{Retained: &pools.Retention{Since: time.Unix(1, 0)}}.String()}
	x, records := newIndex(), map[string]local.Record{}
	for range 10_000 {
		name := names[random.IntN(len(names))]
		if random.IntN(3) == 0 {
			x.forget(name)
			delete(records, name)
		} else {
			r := local.Record{
				Name: name, Size: random.Int64N(9), State: []local.State{local.Making, local.Ready, local.Deleting}[random.IntN(3)],
				Comment: comments[random.IntN(2)], Of: append(names, "", "", "")[random.IntN(8)],
			}
			records[name] = r
			x.settle(r)
		}
		var all []local.Record
		for _, r := range records {
			all = append(all, r)
		}
		want := indexOf(all)
		same := maps.Equal(x.snapshots, want.snapshots) && maps.Equal(x.copies, want.copies)
		if x.promised != want.promised || x.counts != want.counts || !same {
			t.Fatalf("%+v, want %+v", x, want)
		}
	}
}
