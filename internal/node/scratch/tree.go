package scratch

import (
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/node/files"
)

// Tree opens a volume's data directory for reading its files. The error wraps fs.ErrNotExist when
// there is no data directory, and ErrNotOurs when something else is in its place.
func (d *Dir) Tree(p volume.Place) (*files.Tree, error) {
	fd, err := d.openDataUnnoticed(p)
	if err != nil {
		return nil, err
	}
	return files.New(fd, d.opener), nil
}
