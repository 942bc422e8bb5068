package fleet

import (
	"context"
	"errors"
	"fmt"

	"github.com/katbox/katbox/internal/model/api"
)

// ErrArchive: the archive cannot be reached, so that it is not known whether it has a volume.
var ErrArchive = errors.New("the archive cannot be reached")

// where returns where the archive may have what a query selects.
func where(namespaces Namespaces, q api.Query) Where {
	switch {
	case q.Tenancy != nil:
		return Where{UID: q.Tenancy.UID}
	case q.Namespace == "":
		return Where{All: true}
	}
	now, _ := namespaces.Tenancy(q.Namespace)
	return Where{UID: now.UID, Name: q.Namespace}
}

// addArchive makes sources of what the archive may have. Which node a volume was on says nothing about where it is.
func (l *list) addArchive() {
	archive := l.cfg.Archive
	if archive == nil || l.where == (Where{}) {
		return
	}
	l.copies = map[copyOf]*Entry{}
	for _, part := range archive.With(l.where) {
		l.holdings[Archived] = nil
		l.sources = append(l.sources, &source{
			fleet: l.Fleet, reader: l.r.Reader, keep: l.r.Keep, node: part, name: Archived, archived: true, query: l.query,
			frontier: l.before.place(),
		})
	}
	if m, is := archive.Missing(); is {
		l.away = append(l.away, m)
	}
}

// findArchived returns the volume that has a name from the archive: ErrNotFound if it is not there, and ErrArchive if that is
// not known.
func (f *Fleet) findArchived(ctx context.Context, l Lookup, q api.Query) (Found, error) {
	ctx, cancel := context.WithTimeout(ctx, archiveTime)
	defer cancel()
	w := where(f.cfg.Namespaces, q)
	v, err := f.cfg.Archive.Find(ctx, w, l.Name)
	switch {
	case errors.Is(err, ErrNotFound):
		return Found{}, err
	case err != nil:
		return Found{}, fmt.Errorf("%w: %w", ErrArchive, err)
	}
	if err := validateArchived(&v, q); err != nil || !l.Match(v) {
		return Found{}, ErrNotFound
	}
	e, ok := f.judgeArchived(v, l.Reader, q.Tenancy)
	if !ok {
		return Found{}, ErrNotFound
	}
	return Found{Entry: *e, Node: inArchive{}}, nil
}

// inArchive stands for the node of a volume that is found in the archive. Nothing is asked of it.
type inArchive struct{}

// Node returns the name that stands for it.
func (inArchive) Node() string { return Archived }

// List returns nothing.
func (inArchive) List(context.Context, Reader, api.Query) (api.VolumeList, error) {
	return api.VolumeList{}, nil
}

// Gone returns nothing.
func (inArchive) Gone(context.Context, Reader, api.GoneQuery) (api.GoneList, error) {
	return api.GoneList{}, nil
}
