package actors

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/go-logr/logr"
	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/model/volume"
)

// fullDisk has no room for what the journal has, which is of volumes whose IDs begin with held.
type fullDisk struct {
	noRecords
	first chan struct{}
	mu    sync.Mutex
	// committed are the groups that were.
	committed [][]string
}

func (*fullDisk) Journalled(id volume.ID) bool { return strings.HasPrefix(string(id), "held") }

func (d *fullDisk) Commit(changes []volume.Change) error {
	<-d.first
	var group []string
	for _, c := range changes {
		if d.Journalled(c.ID) {
			return unix.ENOSPC
		}
		group = append(group, string(c.ID))
	}
	slices.Sort(group)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.committed = append(d.committed, group)
	return nil
}

// TestFullDiskHoldsUpNoOthers: a change that the journal holds up fails on a full disk, and no change of another volume that
// came at the same time.
func TestFullDiskHoldsUpNoOthers(t *testing.T) {
	for _, tt := range []struct {
		name, together string
		commits        int
	}{
		{"one is held up", "a b held-1 c", 1},
		{"one is not", "held-1 held-2 a", 1},
		{"all are", "held-1 held-2", 0},
		{"none is", "a b", 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				disk := &fullDisk{first: make(chan struct{})}
				system := actor.NewActorSystem()
				defer system.Shutdown()
				recording := Recording{Records: disk, Metrics: noMetrics{}, lagging: &atomic.Int64{}}
				props := recorderProps(recording, func(err error) { t.Error(err) }, logr.Discard())
				client := Recorder{Recording: &Recording{}, root: system.Root, actor: system.Root.Spawn(props)}
				var calls sync.WaitGroup
				forget := func(id string) {
					calls.Go(func() {
						err := client.Forget(volume.ID(id), false)
						if held := strings.HasPrefix(id, "held"); held != errors.Is(err, unix.ENOSPC) || !held && err != nil {
							t.Errorf("%s: %v", id, err)
						}
					})
				}
				forget("before") // the others come while this one is committed
				synctest.Wait()
				for id := range strings.FieldsSeq(tt.together) {
					forget(id)
				}
				synctest.Wait()
				close(disk.first)
				calls.Wait()
				if got := len(disk.committed) - 1; got != tt.commits {
					t.Errorf("%d commits, want %d: %v", got, tt.commits, disk.committed)
				}
			})
		})
	}
}
