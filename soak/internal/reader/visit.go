package reader

import (
	"context"
	"io/fs"
	"time"

	"github.com/katbox/katbox/soak/internal/content"
)

// mostFiles is how many files of a volume are read in a visit.
const mostFiles = 12

// visit reads a volume, each part in another order and way each time, until the
// volume goes.
func (p *person) visit(ctx context.Context, s *subject) {
	p.counts.volumes.Add(1)
	if !p.cfg.Checker.Follows(s.volume) {
		p.visitOver(ctx, s)
		return
	}
	var things []content.Written
	for w := range s.spec.Written(s.filled) {
		things = append(things, w)
	}
	parts := []func(context.Context, *subject, []content.Written) error{p.checkFiles, p.readSome, p.readTar, p.intrude}
	p.random.Shuffle(len(parts), func(i, j int) { parts[i], parts[j] = parts[j], parts[i] })
	for _, part := range parts {
		if part(ctx, s, things) != nil {
			return
		}
	}
}

// readSome reads some of the files, each in a way of its own.
func (p *person) readSome(ctx context.Context, s *subject, things []content.Written) error {
	var files []content.Written
	for _, w := range things {
		if w.Type == 0 && len(w.Path) < longestPath {
			files = append(files, w)
		}
	}
	p.random.Shuffle(len(files), func(i, j int) { files[i], files[j] = files[j], files[i] })
	for _, w := range files[:min(mostFiles, len(files))] {
		if err := p.readFile(ctx, s, w); err != nil {
			return err
		}
	}
	return nil
}

// intrude asks for the bytes of what has none, and for what is outside.
func (p *person) intrude(ctx context.Context, s *subject, things []content.Written) error {
	for _, w := range things {
		if w.Type == 0 || len(w.Path) >= longestPath || w.Type == fs.ModeDir && p.random.IntN(20) > 0 {
			continue
		}
		if err := p.mustNotRead(ctx, s, w.Path); err != nil {
			return err
		}
		if w.Type != fs.ModeSymlink {
			continue
		}
		// Canaries have such files; links lead there and to their parent.
		for _, below := range []string{"/a", "/below/program", "/canary-0/a"} {
			if err := p.mustNotRead(ctx, s, w.Path+below); err != nil {
				return err
			}
		}
		if err := p.mustNotList(ctx, s, w.Path); err != nil {
			return err
		}
	}
	since := time.Now()
	if !s.mountedInside(since) {
		return nil
	}
	// What is outside can be seen in the mount, as long as it is there.
	if err := p.mustNotRead(ctx, s, mountName+"/a"); err != nil {
		return err
	}
	return p.mustNotList(ctx, s, mountName)
}
