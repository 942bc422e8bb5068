package localdisk

import (
	"context"
	"strings"

	"github.com/katbox/katbox/internal/model/local"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/node/attach"
)

// DeviceFile is the file in a staging path at which the node of a block device is bound.
const DeviceFile = "device"

// Stage makes a volume appear at a path, or the node of its device at the file device in it. It makes what is
// missing of these. That it is there already is no error; [volume.ErrConflict] if it is there with other flags,
// [attach.ErrNotOurs] if something else is.
func (p *Pool) Stage(ctx context.Context, r local.Record, path string, options []string, readOnly bool) error {
	if err := checkName(r.Name); err != nil {
		return err
	}
	return wrap(p.backend.stage(ctx, r, path, options, readOnly), "stage %s of pool %s at %s", r.Name, p.path, path)
}

// Mounts returns the mounts of a volume in a mount table: those of its directory or of what is in there, or of its disk
// and of the disk's node. A mount in another mount namespace is in none.
func (p *Pool) Mounts(table []attach.Mount, name string) ([]attach.Mount, error) {
	if err := checkName(name); err != nil {
		return nil, err
	}
	found, err := p.backend.mounts(table, name)
	return found, wrap(err, "where %s of pool %s is mounted", name, p.path)
}

// Release takes away loop devices of a volume that a crash has left. The error is [volume.ErrBusy] if one is in use.
func (p *Pool) Release(name string) error {
	if err := checkName(name); err != nil {
		return err
	}
	if _, ok := p.backend.(*images); !ok {
		return nil
	}
	return wrap(p.Locations.releaseLoops(context.Background(), name), "release %s of pool %s", name, p.path)
}

// Stats measures a volume that is mounted at a path.
func (p *Pool) Stats(r local.Record, path string) (volume.Stats, error) {
	if err := checkName(r.Name); err != nil {
		return volume.Stats{}, err
	}
	stats, err := p.backend.stats(r, path, p.projectOf(r.Name))
	return stats, wrap(err, "stats of %s in pool %s", r.Name, p.path)
}

// within reports whether a path is that of a directory, or of something in it.
func within(path, dir string) bool {
	return path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/")
}
