package history

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/katbox/katbox/soak/internal/workload"
)

func TestTimeline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var line Timeline
		began := time.Now()
		at := func(s int) time.Time { return began.Add(time.Duration(s) * time.Second) }
		time.Sleep(10 * time.Second)
		end := line.Begin(workload.SlowDisk, "")
		time.Sleep(10 * time.Second)
		end()
		time.Sleep(10 * time.Second)
		end() // late: it was over already
		line.Begin(workload.DiskFull, "")
		for _, test := range []struct {
			from, to int
			kinds    []workload.FaultKind
			want     bool
		}{
			{0, 9, []workload.FaultKind{workload.SlowDisk}, false},
			{0, 10, []workload.FaultKind{workload.SlowDisk}, true},
			{12, 15, []workload.FaultKind{workload.DaemonKill, workload.SlowDisk}, true},
			{20, 25, []workload.FaultKind{workload.SlowDisk}, true},
			{21, 99, []workload.FaultKind{workload.SlowDisk}, false},
			{0, 99, []workload.FaultKind{workload.DaemonKill}, false},
			{99, 100, []workload.FaultKind{workload.DiskFull}, true},
			{0, 29, []workload.FaultKind{workload.DiskFull}, false},
		} {
			if got := line.During(at(test.from), at(test.to), test.kinds...); got != test.want {
				t.Errorf("%d to %d, %v: %t, want %t", test.from, test.to, test.kinds, got, test.want)
			}
		}
		if spans := line.Spans(); len(spans) != 2 || !spans[0].To.Equal(at(20)) || !spans[1].To.IsZero() {
			t.Errorf("spans %+v, want one to 20 s and an open one", spans)
		}
	})
}

func TestFindings(t *testing.T) {
	var f Findings
	v := &Volume{ID: "csi-1", Pod: "uid"}
	v.Note("pod created")
	f.Add(Durable, v, "it is gone")
	for range mostKept {
		f.Add(NoLeak, nil, "a mount")
	}
	if f.Sum() != mostKept+1 || f.Number(Durable) != 1 || f.Number(NoLeak) != mostKept || f.Number(Contained) != 0 {
		t.Errorf("%d in all, %d, %d and %d of three promises", f.Sum(), f.Number(Durable), f.Number(NoLeak), f.Number(Contained))
	}
	all := f.All()
	if len(all) != mostKept {
		t.Errorf("%d are kept, want %d", len(all), mostKept)
	}
	if first := all[0]; first.Volume != "csi-1" || first.Pod != "uid" || len(first.Story) != 1 {
		t.Errorf("first: %+v, want the volume's story with it", first)
	}
}
