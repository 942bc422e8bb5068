package ephemeral

import (
	"context"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/actors"
	"github.com/katbox/katbox/internal/lib/pace"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/node/metrics"
	"github.com/katbox/katbox/internal/node/retained"
	"github.com/katbox/katbox/internal/node/scratch"
	"github.com/katbox/katbox/messages"
)

// BenchmarkSizes measures volumes with a file each: those that are there at a start, or those that
// are retained one by one, ten milliseconds apart. An operation is one volume. The sizes actor mostly
// rests, so that the time is in "cpu-ns/op".
func BenchmarkSizes(b *testing.B) {
	b.Run("start", func(b *testing.B) { benchmarkSizes(b, true) })
	b.Run("churn", func(b *testing.B) { benchmarkSizes(b, false) })
}

func benchmarkSizes(b *testing.B, asleep bool) {
	dir, err := scratch.Open(filepath.Join(b.TempDir(), "work"))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { dir.Close() })
	records := make([]volume.Record, b.N)
	for i := range records {
		records[i] = volume.Record{ID: numbered(i), Pod: volume.PodUID("pod-" + numbered(i))}.Retain(time.Now(), time.Hour)
		if _, err := dir.Create(records[i].Place()); err != nil {
			b.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir.Path(records[i].Place()), "log"), []byte("some"), 0o600); err != nil {
			b.Fatal(err)
		}
	}
	g := &countedUsage{usage: dir, all: make(chan struct{})}
	g.left.Store(int64(b.N))
	system := quietSystem()
	b.Cleanup(system.Shutdown)
	running, root := pace.NewCalls(), system.Root
	measuring := &sizes{
		environment: &environment{System: &actors.System{Workers: actors.NewWorkers(actors.MaxWorkers)}, ctx: b.Context(), calls: running},
		usage:       g, supervisor: system.NewLocalPID(retentionName),
	}
	asked := root.Spawn(measuring.props())
	var index retained.Index
	if asleep {
		for i := range records {
			index.Put(records[i])
		}
	}
	later := records[index.Len():]
	b.ReportAllocs()
	b.ResetTimer()
	began := cpuTime(b)
	sleeping := newTestRetention(&index, false, metrics.New("test", ""))
	sleeping.measureSizes = func(m *messages.MeasureSizes) { root.Send(asked, m) }
	retention := spawnRetention(b, system, sleeping)
	for i := range later {
		end := running.Begin()
		root.Send(retention, &putToSleep{later[i]})
		end()
		time.Sleep(10 * time.Millisecond)
	}
	<-g.all
	b.ReportMetric(float64(cpuTime(b)-began)/float64(b.N), "cpu-ns/op")
}

// countedUsage closes all when the last volume is being measured.
type countedUsage struct {
	usage
	left atomic.Int64
	all  chan struct{}
}

func (g *countedUsage) Usage(ctx context.Context, p volume.Place, pace scratch.Pace) (bytes, inodes int64, err error) {
	if g.left.Add(-1) == 0 {
		defer close(g.all)
	}
	return g.usage.Usage(ctx, p, pace)
}

func cpuTime(b *testing.B) time.Duration {
	b.Helper()
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
