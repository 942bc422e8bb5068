package arrays

import (
	"errors"

	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/node/attach/staged"
)

// A record without a path is a note of a volume that is not staged: mkfs was ended there by a crash, and the next
// stage on this node may make the file system anew. Without the note it would find data that it must not touch.
func isNote(r staged.Record) bool { return r.Path == "" }

// load reads the record of the volume. found: it is staged, or was being staged or unstaged. A note is returned too.
func (t *task) load() (r staged.Record, found bool, err error) {
	r, err = t.Staged.Load(t.volume)
	switch {
	case errors.Is(err, volume.ErrNotFound):
		return staged.Record{}, false, nil
	case err != nil:
		return staged.Record{}, false, because(volume.ErrUncertain, err, "read the record of volume %s", t.volume)
	}
	return r, !isNote(r), nil
}

// save writes the record of the volume. fresh: it had none.
func (t *task) save(r staged.Record, fresh bool) error {
	if err := t.Staged.Save(r); err != nil {
		return because(volume.ErrUncertain, err, "write the record of volume %s", t.volume)
	}
	if fresh {
		t.Metrics.ArrayStaged(string(r.Attachment.Protocol), 1)
	}
	return nil
}

// forget removes the record of the volume, of which nothing is left on the node, or leaves a note.
func (t *task) forget() error {
	r, found, err := t.load()
	if err != nil || !found {
		return err
	}
	if err := t.drop(r); err != nil {
		return err
	}
	t.Metrics.ArrayStaged(string(r.Attachment.Protocol), -1)
	return nil
}

// drop removes a record, or makes it a note.
func (t *task) drop(r staged.Record) (err error) {
	if r.Formatting {
		err = t.Staged.Save(staged.Record{Volume: r.Volume, FSType: r.FSType, Attachment: r.Attachment, Serial: r.Serial, Formatting: true})
	} else {
		err = t.Staged.Remove(t.volume)
	}
	if err != nil {
		return because(volume.ErrUncertain, err, "remove the record of volume %s", t.volume)
	}
	return nil
}
