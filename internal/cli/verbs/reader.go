package verbs

import (
	"context"
	"fmt"

	"github.com/katbox/katbox/internal/lib/paths"
	"github.com/katbox/katbox/internal/model/api"
)

// Reader is where the files of volumes come from: the daemon of a node, or the Kubernetes API.
type Reader interface {
	// Files returns a page of a directory.
	Files(ctx context.Context, id string, q api.FilesQuery) (api.FileList, error)
	// Bytes begins to read a file or an archive.
	Bytes(ctx context.Context, id string, q api.BytesQuery) (*api.Stream, error)
	// Explain returns an error of Files or Bytes with what a person can do about it, and with its
	// exit code, see [WithCode]. The code of a path that does not exist is [CodeFailed].
	Explain(ctx context.Context, id string, err error) error
}

// Volume is a volume whose files a verb reads.
type Volume struct {
	// Reader has the volume, and knows it by ID.
	Reader Reader
	ID     string
	// Target is what a user types for it, without the colon and the path.
	Target string
	// What is the volume in messages: "volume scratch of pod etl/nightly-x7k2q".
	What string
	// Bytes is how much of the disk the volume takes; 0 if that is not known.
	Bytes int64
}

// entry asks what is at a path.
func (v Volume) entry(ctx context.Context, ref string) (api.Entry, paths.Path, error) {
	list, err := v.Reader.Files(ctx, v.ID, api.FilesQuery{Path: ref, Stat: true})
	if err != nil {
		return api.Entry{}, paths.Path{}, v.Reader.Explain(ctx, v.ID, err)
	}
	if len(list.Entries) != 1 {
		return api.Entry{}, paths.Path{}, fmt.Errorf("the daemon described %d entries and not one", len(list.Entries))
	}
	path, err := paths.ParseRef(list.Entries[0].Ref)
	return list.Entries[0], path, err
}
