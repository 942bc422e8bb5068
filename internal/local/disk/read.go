package disk

import (
	"context"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/beneath"
	"github.com/katbox/katbox/internal/files"
	"github.com/katbox/katbox/internal/kernel"
	"github.com/katbox/katbox/internal/local"
	"github.com/katbox/katbox/internal/volume"
)

// Read opens the files of a volume that is staged nowhere. The error is a [volume.ErrInvalid] for a block volume, which
// has no files, and for an image.
func (p *Pool) Read(_ context.Context, r local.Record) (*files.Tree, error) {
	if err := checkName(r.Name); err != nil {
		return nil, err
	}
	const restore = "; a new claim with the annotation pools.katbox.io/restore gets it back"
	switch {
	case r.Block:
		return nil, volume.Invalid("volume", r.Name+" is a block device, which has no files to be read"+restore)
	case p.identity.Backend == local.Image:
		return nil, volume.Invalid("volume", r.Name+" is an image, which cannot be read here"+restore)
	}
	tree, err := p.tree(r)
	return tree, wrap(err, "read %s of pool %s", r.Name, p.path)
}

// tree opens the directory of a volume.
func (p *Pool) tree(r local.Record) (*files.Tree, error) {
	_, part := p.part(r)
	fd, err := kernel.Openat(int(part.Fd()), r.Name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW)
	if err != nil {
		return nil, fmt.Errorf("data of %s: %w", r.Name, err)
	}
	return treeOf(fd)
}

// treeOf takes an open directory over.
func treeOf(fd int) (*files.Tree, error) {
	opener, err := beneath.New(fd)
	if err != nil {
		unix.Close(fd)
		return nil, err
	}
	return files.New(fd, opener), nil
}
