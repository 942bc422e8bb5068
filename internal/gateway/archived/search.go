package archived

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"time"

	"github.com/katbox/katbox/internal/gateway/bucket"
	"github.com/katbox/katbox/internal/gateway/fleet"
	"github.com/katbox/katbox/internal/gateway/gatewaymetrics"
	"github.com/katbox/katbox/internal/lib/grep"
	"github.com/katbox/katbox/internal/lib/logkeys"
	"github.com/katbox/katbox/internal/lib/paths"
	"github.com/katbox/katbox/internal/lib/retry"
	"github.com/katbox/katbox/internal/lib/shares"
	"github.com/katbox/katbox/internal/model/api"
	form "github.com/katbox/katbox/internal/model/archived"
	"github.com/katbox/katbox/internal/model/volume"
)

const (
	// mostSearched is how much one search reads, in bytes, unless its reader asks for less: what 2,000 pieces have.
	mostSearched = 16 << 30
	// mostLinked bounds the files that are searched under another name than their first one.
	mostLinked = 16 << 10
	// crowdedPause is the pause of a search whose reader waits for as many turns as it may.
	crowdedPause = time.Second
)

// Search begins a search through archived volumes, one after another. It takes a turn for each volume, as a request for bytes does,
// so other readers come in between.
func (a *Archive) Search(by fleet.Reader, g api.Grep, tick func() error) (fleet.VolumeSearch, error) {
	most := min(cmp.Or(g.MaxBytes, mostSearched), mostSearched)
	o := grep.Options{Tell: g.Tell, Context: g.Context, Bytes: most, Tick: tick}
	bad := (*api.Error)(nil)
	if o.Pattern, bad = g.Compile(); bad != nil {
		return nil, bad
	}
	if g.Files != "" {
		if o.Files, bad = api.ParseGlob(g.Files); bad != nil {
			return nil, bad
		}
	}
	of, _ := shares.Reader(by.User)
	return &volumeSearch{archive: a, of: of, most: most, search: grep.New(o)}, nil
}

// volumeSearch is a search of one reader.
type volumeSearch struct {
	archive *Archive
	of      string
	search  *grep.Search
	// most is how much it reads: bytes of files, and as many of pieces, of which it may leave out most.
	most, pieces int64
}

// Sums are what was searched by now.
func (s *volumeSearch) Sums() api.GrepSums { return s.search.Sums }

// Volume searches a volume. One whose archive has ended meanwhile, or cannot be read, is counted. It waits as long as its reader's other
// requests leave no room for the volume's index.
func (s *volumeSearch) Volume(ctx context.Context, v api.Volume, found func(api.GrepFound) error) error {
	for {
		ended, err := s.inTurn(ctx, v, found)
		busy := (*api.Error)(nil)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err == nil:
			s.search.Sums.Volumes++
		case ended, errors.Is(err, bucket.ErrAway), errors.Is(err, errNoCluster):
			return err
		case errors.As(err, &busy) && busy.Reason == api.TooManyRequests:
			if retry.Pause(ctx, crowdedPause) == nil {
				continue
			}
			return context.Cause(ctx)
		case errors.Is(err, volume.ErrGone):
			s.search.Sums.Lost++
		default:
			s.search.Sums.Break()
		}
		return nil
	}
}

// inTurn is read in a turn.
func (s *volumeSearch) inTurn(ctx context.Context, v api.Volume, found func(api.GrepFound) error) (ended bool, err error) {
	end, err := s.turn(ctx)
	if err != nil {
		return false, err
	}
	defer end()
	ended, err = s.read(ctx, v, found)
	outcome := gatewaymetrics.Done
	if err != nil && !ended {
		outcome = gatewaymetrics.Failed
	}
	s.archive.cfg.Metrics.ArchiveRead(outcome)
	return ended, err
}

// read searches a volume in the archive; see files. What a node has written there ends no process.
func (s *volumeSearch) read(ctx context.Context, v api.Volume, found func(api.GrepFound) error) (ended bool, err error) {
	x, release, err := s.archive.open(ctx, s.of, v)
	if err != nil {
		return false, err
	}
	defer release()
	defer func() {
		if p := recover(); p != nil {
			ended, err = false, fmt.Errorf("panic: %v", p)
			s.archive.cfg.Log.Error(err, "a search in the archive has failed; this is a bug in Katbox", logkeys.VolumeID, v.ID,
				"stack", string(debug.Stack()))
		}
	}()
	return s.files(ctx, x, v.Volume == volume.LogsName, found)
}

// turn waits for a turn.
func (s *volumeSearch) turn(ctx context.Context) (end func(), err error) {
	for {
		end, err = s.archive.streaming.Wait(ctx, s.of)
		if !errors.Is(err, shares.ErrQueue) {
			return end, err
		}
		if err := retry.Pause(ctx, crowdedPause); err != nil {
			return nil, err
		}
	}
}

// files searches the files of a volume. A file with several names is searched once, under the first one that is selected. ended: the
// error is not about the volume, but ends the search.
func (s *volumeSearch) files(ctx context.Context, x *index, logs bool, found func(api.GrepFound) error) (ended bool, err error) {
	linked, err := x.linked(ctx, s.search)
	if err != nil {
		return false, err
	}
	from := x.reader(ctx)
	defer from.close()
	err = x.entries(ctx, func(e *form.Entry) error {
		if err := s.search.Tick(); err != nil {
			ended = true
			return err
		}
		name := e.Name
		switch other, is := linked[name]; {
		case e.Type != api.File, e.Link != "":
			return nil
		case s.search.Selects(name):
		case is:
			name = other
		default:
			return nil
		}
		err := s.file(ctx, from, e, name, logs, found)
		ended = err != nil
		return err
	})
	return ended, err
}

// file searches a file. Its error ends the search: without the bucket, each other file would wait for it as well.
func (s *volumeSearch) file(
	ctx context.Context, from *content, e *form.Entry, name string, logs bool, found func(api.GrepFound) error,
) error {
	takes, err := s.search.Takes(e.Size)
	if !takes {
		return err
	}
	if s.pieces >= s.most {
		return &grep.UsedUpError{Budget: api.StopBytes}
	}
	read := from.read
	in := io.NewSectionReader(from.file(*e), 0, e.Size)
	err = s.search.File(ctx, nil, paths.Path{}.Join(name).Ref(), grep.KindOf(name, logs), in, found)
	s.pieces += from.read - read
	if err == nil {
		err = from.away
	}
	return err
}

// linked returns the selected name of each file whose first name is not selected.
func (x *index) linked(ctx context.Context, s *grep.Search) (map[string]string, error) {
	if s.Files == nil {
		return nil, nil
	}
	names := map[string]string{}
	err := x.entries(ctx, func(e *form.Entry) error {
		if e.Type != api.File || e.Link == "" || !s.Selects(e.Name) || s.Selects(e.Link) {
			return nil
		}
		switch _, known := names[e.Link]; {
		case known:
		case len(names) == mostLinked:
			s.Sums.Unreadable++
		default:
			names[e.Link] = e.Name
		}
		return nil
	})
	return names, err
}
