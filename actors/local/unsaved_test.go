package local

import (
	"fmt"
	"testing"

	"github.com/katbox/katbox/internal/model/local"
	"github.com/katbox/katbox/internal/model/volume"
)

// TestUnsavedRecordPromisesNothing: where a record cannot be saved, the one that is on the disk says what the volume is and
// what is promised to it. That may be the new one all the same.
func TestUnsavedRecordPromisesNothing(t *testing.T) {
	for name, c := range map[string]struct {
		// there: the new record is on the disk, and that is not durable.
		there    bool
		promised int64
		change   func(h *harness) error
		becomes  func(r *local.Record)
		retained int
		ready    int
	}{
		"grow": {
			promised: gib, retained: 1, ready: 1,
			change: func(h *harness) error { _, err := h.node.GrowVolume(h.bounded(), fast, "v", 9*gib); return err },
		},
		"grow, and it is there": {
			there: true, promised: 9 * gib, retained: 1, ready: 1,
			change:  func(h *harness) error { _, err := h.node.GrowVolume(h.bounded(), fast, "v", 9*gib); return err },
			becomes: func(r *local.Record) { r.Size, r.GrowsFrom = 9*gib, gib },
		},
		"delete": {promised: gib, retained: 1, ready: 1, change: func(h *harness) error { return h.remove("kept") }},
		"delete, and it is there": {
			there: true, promised: gib, ready: 1,
			change:  func(h *harness) error { return h.remove("kept") },
			becomes: func(r *local.Record) { r.State = local.Deleting },
		},
		"claim again": {
			promised: gib, retained: 1, ready: 1,
			change: func(h *harness) error { _, err := h.node.CommentVolume(h.bounded(), fast, "kept", ""); return err },
		},
	} {
		inWorld(t, func(h *harness) {
			h.must(h.create("v", gib))
			h.retained("kept")
			h.locked(func() {
				h.fail = func(call, name string) error {
					if call != "save" {
						return nil
					}
					if r := h.disks["/fast"].records[name]; c.there {
						c.becomes(&r)
						h.disks["/fast"].records[name] = r
					}
					return fmt.Errorf("%w: no inode is left", volume.ErrNoSpace)
				}
			})
			h.want(c.change(h), volume.ErrNoSpace, name)
			h.locked(func() { h.fail = nil })
			if all, err := h.node.Pools(h.bounded()); err != nil || all[0].Provisioned != c.promised+gib/16 {
				h.Errorf("%s: promised %d bytes, %v, want %d", name, all[0].Provisioned, err, c.promised+gib/16)
			}
			if kept := h.listed(); len(kept) != c.retained {
				h.Errorf("%s: %q are retained, want %d", name, kept, c.retained)
			}
			if h.figures[fast].Ready != c.ready {
				h.Errorf("%s: %+v, want %d that claims have", name, h.figures[fast], c.ready)
			}
			h.must(c.change(h)) // and again
		})
	}
}
