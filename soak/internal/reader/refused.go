package reader

import (
	"context"
	"io"
	"time"

	"github.com/katbox/katbox/internal/model/api"
	"github.com/katbox/katbox/soak/internal/check"
	"github.com/katbox/katbox/soak/internal/content"
	"github.com/katbox/katbox/soak/internal/history"
)

// mostShown is how many bytes of what must not be read are shown.
const mostShown = 64

// mustNotRead asks for the bytes of something that is no file in the volume.
func (p *person) mustNotRead(ctx context.Context, s *subject, path string) error {
	from := time.Now()
	limited, cancel := context.WithTimeout(ctx, requestLimit)
	defer cancel()
	stream, err := p.client.Bytes(limited, s.volume.ID, api.BytesQuery{Path: refOf(path)})
	if err == nil {
		defer stream.Close()
		shown, _ := io.ReadAll(io.LimitReader(stream, mostShown))
		if s.isMount(path) && !s.mountedInside(time.Now()) {
			return nil
		}
		p.wrong(history.ReadsInside, s, "%q is no file in the volume, but it has %d bytes and begins with %q", path, stream.Size, shown)
		return errOver
	}
	return p.mustRefuse(ctx, s, from, path, err)
}

// mustNotList asks for a list of something that is no directory in the volume.
func (p *person) mustNotList(ctx context.Context, s *subject, path string) error {
	from := time.Now()
	limited, cancel := context.WithTimeout(ctx, requestLimit)
	defer cancel()
	list, err := p.client.Files(limited, s.volume.ID, api.FilesQuery{Path: refOf(path)})
	if err == nil {
		if s.isMount(path) && !s.mountedInside(time.Now()) {
			return nil
		}
		p.wrong(history.ReadsInside, s, "%q is no directory in the volume, but it lists %d names", path, len(list.Entries))
		return errOver
	}
	return p.mustRefuse(ctx, s, from, path, err)
}

// mustRefuse takes a refusal as right, and lets the checker judge all others.
func (p *person) mustRefuse(ctx context.Context, s *subject, from time.Time, path string, err error) error {
	if isBadRequest(err) || isNotFound(err) && p.cfg.Checker.Follows(s.volume) {
		p.counts.refused.Add(1)
		return nil
	}
	return p.judge(ctx, s, from, "a request for "+path, err)
}

// visitOver asks for a volume that is gone or published again. Of one that is there
// and not in use nothing is known: it was reported that it should be gone, or it is
// about to be published.
func (p *person) visitOver(ctx context.Context, s *subject) {
	there := s.there()
	if there && !p.cfg.Checker.IsPublished(s.volume.ID) {
		return
	}
	from := time.Now()
	limited, cancel := context.WithTimeout(ctx, requestLimit)
	defer cancel()
	stream, err := p.client.Bytes(limited, s.volume.ID, api.BytesQuery{Path: content.MarkerName})
	switch {
	case err == nil:
		stream.Close()
		if !there {
			p.wrong(history.ReadsTrue, s, "its data is gone, but its marker can be read")
		} else if p.cfg.Checker.IsPublished(s.volume.ID) {
			p.wrong(history.ReadsTrue, s, "it is published, but its marker can be read")
		}
	case failure(err) == check.Absent:
		p.counts.ended.Add(1)
	default:
		_ = p.judge(ctx, s, from, "a request for a volume that is gone", err) // the visit is over anyway
	}
}
