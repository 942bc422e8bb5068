package ephemeral

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/katbox/katbox/internal/model/lifespan"
	"github.com/katbox/katbox/internal/model/volume"
)

// TestABurstFindsRoom: pods fill a disk within two seconds, which is less than the time between two looks
// at a disk at rest. Volumes that were retained minutes ago go in time, and no more than are needed.
func TestABurstFindsRoom(t *testing.T) {
	const volumes, each, tick = 12, 50, 100 * time.Millisecond
	for _, speed := range []uint64{10, 25, 50} { // bytes in a tick, of a disk of 1,000
		t.Run(fmt.Sprint(speed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newTestNode(t)
				h.burst = lifespan.Burst{Fastest: volume.Size{Bytes: 500}, Reaction: 200 * time.Millisecond}
				for i := range volumes {
					h.retained("pod", numbered(i), time.Duration(volumes-i)*time.Minute, testLifespan)
				}
				h.disk.free = 400
				h.start()
				deleting := 0
				h.records.fail(func(changes []volume.Change) error {
					for _, change := range changes {
						if change.Record != nil && change.Record.Phase == volume.Deleting {
							deleting++
							h.disk.mu.Lock()
							h.disk.free += each
							h.disk.mu.Unlock()
						}
					}
					return nil
				})
				time.Sleep(time.Second)
				least := uint64(400)
				for written := uint64(0); written < 700; written += speed {
					h.disk.mu.Lock()
					if h.disk.free < speed {
						t.Errorf("a pod finds no room after %d bytes, and %d volumes are gone", written, deleting)
						h.disk.mu.Unlock()
						break
					}
					h.disk.free -= speed
					least = min(least, h.disk.free)
					h.disk.mu.Unlock()
					time.Sleep(tick)
				}
				time.Sleep(time.Minute)
				// 300 bytes more were written than were free, and at most the headroom of 100 stays.
				if deleting < 6 || deleting > 9 {
					t.Errorf("%d volumes are gone, want 6 to 9; %d were free at least", deleting, least)
				}
				h.records.fail(nil)
				h.stop()
			})
		})
	}
}
