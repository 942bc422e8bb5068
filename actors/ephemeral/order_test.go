package ephemeral

import (
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/node/retained"
	"github.com/katbox/katbox/internal/testing/metricstest"
	"github.com/katbox/katbox/messages"
)

// change changes the record of a volume before the node starts.
func (h *testNode) change(id volume.ID, to func(*volume.Record)) {
	h.t.Helper()
	record, ok := h.records.get(id)
	if !ok {
		h.t.Fatalf("%s is not known", id)
	}
	to(&record)
	h.records.put(record)
}

// watchDeletions returns what has been deleted, in order, and calls each when a deletion
// has begun, before the room is made.
func (h *testNode) watchDeletions(each func(gone int)) func() []volume.Tombstone {
	going := &list[volume.ID]{}
	h.records.fail(func(changes []volume.Change) error {
		for _, change := range changes {
			if change.Record != nil && change.Record.Phase == volume.Deleting {
				going.add(change.ID)
				each(len(going.get()))
			}
		}
		return nil
	})
	return func() (gone []volume.Tombstone) {
		stones := h.records.tombstones()
		for _, id := range going.get() {
			if i := slices.IndexFunc(stones, func(s volume.Tombstone) bool { return s.Record.ID == id }); i >= 0 {
				gone = append(gone, stones[i])
			}
		}
		return gone
	}
}

// TestOrderUnderPressure: what goes in the band, what goes below the floor and at the brink, and with which reason.
func TestOrderUnderPressure(t *testing.T) {
	for name, tt := range map[string]struct {
		free uint64
		// enough is how many volumes make the room that is needed.
		enough                     int
		want                       []volume.ID
		brokenPins, brokenLifetime float64
	}{
		"no pressure":         {1000, 1, nil, 0, 0},
		"in the band":         {65, 100, []volume.ID{"csi-released", "csi-succeeded", "csi-old"}, 0, 0},
		"room for two needed": {0, 2, []volume.ID{"csi-released", "csi-succeeded"}, 0, 0},
		"the young must go":   {0, 5, []volume.ID{"csi-released", "csi-succeeded", "csi-old", "csi-newer", "csi-young"}, 0, 1},
		"all must go":         {0, 100, []volume.ID{"csi-released", "csi-succeeded", "csi-old", "csi-newer", "csi-young", "csi-pinned"}, 1, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newTestNode(t)
				h.minLifespan = time.Hour
				for id, ago := range map[volume.ID]time.Duration{
					"csi-pinned": 11 * time.Hour, "csi-old": 10 * time.Hour, "csi-newer": 3 * time.Hour, "csi-succeeded": 2 * time.Hour,
					"csi-released": 90 * time.Minute, "csi-young": 10 * time.Minute,
				} {
					h.retained("pod", id, ago, testLifespan)
				}
				h.change("csi-pinned", func(r *volume.Record) {
					r.Hold = volume.Hold{Kind: volume.Pinned, For: 20 * time.Hour, By: "anna", Why: "a test"}
				})
				h.change("csi-released", func(r *volume.Record) {
					r.Hold = volume.Hold{Kind: volume.Released, For: 100 * time.Minute, By: "otto", Why: "seen"}
				})
				h.change("csi-succeeded", func(r *volume.Record) { r.Outcome = volume.Succeeded })
				h.start()
				gone := h.watchDeletions(func(gone int) {
					if tt.free == 0 {
						h.disk.set(4*uint64(gone), nil) // or it would make no room
					}
					if gone == tt.enough {
						h.disk.set(1000, nil)
					}
				})
				h.disk.set(tt.free, nil)
				time.Sleep(5 * time.Minute)
				var ids []volume.ID
				for _, stone := range gone() {
					ids = append(ids, stone.Record.ID)
					want := volume.ForBytes
					switch stone.Record.ID {
					case "csi-released":
						want = volume.ForReleased
					case "csi-pinned", "csi-young":
						want = volume.ForFloor
					}
					if stone.Reason != want {
						t.Errorf("%s went with the reason %s, want %s", stone.Record.ID, stone.Reason, want)
					}
				}
				if !slices.Equal(ids, tt.want) {
					t.Errorf("gone are %v, want %v", ids, tt.want)
				}
				h.wantValues("at the end", metricstest.Values{
					`katbox_broken_guarantees_total{guarantee="pin"}`:          tt.brokenPins,
					`katbox_evictions_total{reason="floor"}`:                   tt.brokenPins + tt.brokenLifetime,
					`katbox_broken_guarantees_total{guarantee="min-lifespan"}`: tt.brokenLifetime,
				})
				h.records.fail(nil)
				h.stop()
			})
		})
	}
}

// TestGuaranteedWaitForRoomOnItsWay: what leaves the brink, though it does not reach the headroom, saves
// a volume that is pinned. Such a one goes only once it is known that others have made room.
func TestGuaranteedWaitForRoomOnItsWay(t *testing.T) {
	const bytes = 100 * 512
	synctest.Test(t, func(t *testing.T) {
		withQueue(t, retained.Index{}, func(index *retained.Index) {
			for i, kind := range []volume.HoldKind{volume.NoHold, volume.Pinned} {
				r := volume.Record{ID: numbered(i), Pod: testPod}.Retain(time.Now().Add(-time.Hour), testLifespan)
				if kind != volume.NoHold {
					r.Hold = volume.Hold{Kind: kind, For: testLifespan, By: "anna", Why: "a test"}
				}
				index.Put(r)
				index.Measured(r.ID, r.Unpublished, volume.Size{Bytes: bytes, Inodes: 1})
			}
		}, func(q retentionTest) {
			measured := func(short int64, answers bool, erased ...volume.ID) {
				q.root.Send(q.retention, &messages.Pressure{
					Lacking: volume.Size{Bytes: 10 * bytes}, Short: volume.Size{Bytes: short}, Answers: answers,
					Erased: erased, Came: volume.Size{Bytes: bytes * int64(len(erased)), Inodes: int64(len(erased))},
				})
			}
			measured(bytes, false)
			measured(bytes, true)
			q.want(t, "one is enough", 1, 1)
			measured(2*bytes, false)
			q.want(t, "one is not enough any more, if it makes room", 1, 1)
			measured(bytes, false, numbered(0))
			q.want(t, "it has made room", 2, 1)
		})
	})
}

// TestNamespaceLosesVolumesOnceMeasured, without a measurement of the disk.
func TestNamespaceLosesVolumesOnceMeasured(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := volume.Record{ID: numbered(0), Pod: testPod, Namespace: "ci"}.Retain(time.Now().Add(-time.Hour), testLifespan)
		limited := retained.Index{MaxRetained: func(string) volume.Size { return volume.Size{Inodes: 1} }}
		withQueue(t, limited, func(index *retained.Index) { index.Put(r) }, func(q retentionTest) {
			q.want(t, "not measured", 0, 0)
			q.root.Send(q.retention, &messages.SizesMeasured{
				Sizes: []messages.VolumeSize{{ID: r.ID, Unpublished: r.Unpublished, Size: volume.Size{Inodes: 2}}}, Done: true,
			})
			q.want(t, "measured", 1, 0)
		})
	})
}

// TestNamespaceLosesItsOldest: a namespace that retains more than it may loses its oldest volumes, once
// they are measured and when the limit is lowered. No other namespace loses one.
func TestNamespaceLosesItsOldest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const volumes, inodes = 6, 2 // a directory and a file
		var limit atomic.Int64
		limit.Store(4 * inodes)
		h := newTestNode(t)
		h.headroom = 0 // nothing goes for another reason
		h.maxRetained = func(namespace string) volume.Size {
			if namespace != "ci" {
				return volume.Size{}
			}
			return volume.Size{Inodes: limit.Load()}
		}
		for i := range 2 * volumes {
			h.retained("pod", numbered(i), time.Duration(20-i)*time.Minute, testLifespan)
			h.change(numbered(i), func(r *volume.Record) { r.Namespace = []string{"ci", "other"}[i%2] })
		}
		gone := h.watchDeletions(func(int) {})
		h.start()
		for _, want := range []int{volumes - 4, volumes - 1} {
			time.Sleep(time.Minute)
			var got, oldest []volume.ID
			for _, stone := range gone() {
				got = append(got, stone.Record.ID)
				if stone.Reason != volume.ForNamespace {
					t.Errorf("%s went with the reason %s", stone.Record.ID, stone.Reason)
				}
			}
			for i := range want {
				oldest = append(oldest, numbered(2*i))
			}
			slices.Sort(got) // those that go at the same time may end in any order
			if !slices.Equal(got, oldest) {
				t.Errorf("with a limit of %d inodes %v are gone, want the oldest %d of ci", limit.Load(), got, want)
			}
			limit.Store(inodes + 1)
		}
		h.records.fail(nil)
		h.stop()
	})
}

// TestDeadlinesInDescriptions: pressure moves them, except where a person or --min-lifespan says else.
func TestDeadlinesInDescriptions(t *testing.T) {
	env := &environment{Config: Config{MinLifespan: time.Hour}, clock: &clock{}}
	for _, tt := range []struct {
		name   string
		hold   volume.Hold
		factor float64
		want   time.Duration
		early  bool
	}{
		{"no pressure", volume.Hold{}, 1, 10 * time.Hour, false},
		{"pressure", volume.Hold{}, 0.5, 5 * time.Hour, true},
		{"full disk", volume.Hold{}, 0, time.Hour, true},
		{"pinned", volume.Hold{Kind: volume.Pinned, For: 30 * time.Hour}, 0.5, 30 * time.Hour, false},
		{"pinned, full disk", volume.Hold{Kind: volume.Pinned, For: 30 * time.Hour}, 0, 30 * time.Hour, false},
		{"pinned for less than the lifespan", volume.Hold{Kind: volume.Pinned, For: 7 * time.Hour}, 0.5, 7 * time.Hour, true},
		{"released", volume.Hold{Kind: volume.Released, For: 9 * time.Hour}, 0.5, 9 * time.Hour, false},
		{"released, full disk", volume.Hold{Kind: volume.Released, For: 9 * time.Hour}, 0, 0, true},
	} {
		r := volume.Record{Hold: tt.hold}.Retain(time.Now(), 10*time.Hour)
		d := env.description(r, volume.Size{}, tt.factor)
		if got := d.Deadline.Sub(r.Unpublished); got != tt.want || d.Early != tt.early {
			t.Errorf("%s: after %v, early %t, want %v, %t", tt.name, got, d.Early, tt.want, tt.early)
		}
	}
}
