package actors

import (
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/go-logr/logr"

	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/node/metrics"
	"github.com/katbox/katbox/internal/node/store"
)

// commitCounter counts commits.
type commitCounter struct {
	Records
	commits int
}

func (c *commitCounter) Commit(changes []volume.Change) error {
	c.commits++
	return c.Records.Commit(changes)
}

// BenchmarkRecorder has records made durable that are asked for at the same time, in a real store.
// An operation is all of them.
func BenchmarkRecorder(b *testing.B) {
	for _, waiting := range []int{1, 8, 64} {
		b.Run(fmt.Sprintf("waiting=%d", waiting), func(b *testing.B) {
			opened, err := store.Open(filepath.Join(b.TempDir(), "records"))
			if err != nil {
				b.Fatal(err)
			}
			defer opened.Close()
			records := &commitCounter{Records: opened}
			system := actor.NewActorSystem()
			defer system.Shutdown()
			fatal := func(err error) { b.Error(err) }
			props := recorderProps(Recording{Records: records, Metrics: metrics.New("test", ""), lagging: &atomic.Int64{}}, fatal, logr.Discard())
			client := Recorder{Recording: &Recording{}, root: system.Root, actor: system.Root.Spawn(props)}
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				var wg sync.WaitGroup
				for w := range waiting {
					record := volume.Record{ID: volume.ID(fmt.Sprint("csi-", i*waiting+w)), Pod: "pod", Phase: volume.Published}
					wg.Go(func() {
						if err := client.Save(&record, false); err != nil {
							b.Error(err)
						}
					})
				}
				wg.Wait()
			}
			b.ReportMetric(float64(records.commits)/float64(b.N), "commits/op")
		})
	}
}
