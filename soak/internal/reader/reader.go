package reader

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/katbox/katbox/internal/model/api"
	"github.com/katbox/katbox/soak/internal/check"
	"github.com/katbox/katbox/soak/internal/content"
	"github.com/katbox/katbox/soak/internal/history"
	"github.com/katbox/katbox/soak/internal/pause"
	"github.com/katbox/katbox/soak/internal/workload"
)

const (
	// requestLimit is how long a request may take, but for the reading of a stream.
	requestLimit = 20 * time.Second
	// shortestRest is how long a reader rests after each volume, at the least. It
	// rests for longerRest times as long as it worked, so that readers are the
	// smaller part of the load.
	shortestRest = 50 * time.Millisecond
	longerRest   = 2
	// holders is among how many readers one is slow.
	holders = 3
	// mostSubjects is how many volumes may be read; those that came first go.
	mostSubjects = 2000
)

// Config says what to read. All fields are required.
type Config struct {
	// Socket is the driver's admin socket.
	Socket string
	// Readers is how many read at a time.
	Readers int
	// Namespaces are those of the pods.
	Namespaces []string
	// Seed decides what is read.
	Seed     uint64
	Checker  *check.Checker
	Findings *history.Findings
}

// Reader reads. It may be used by many goroutines.
type Reader struct {
	cfg    Config
	client *api.Client
	counts counts

	mu       sync.Mutex
	subjects []*subject
}

// subject is a volume that may be read.
type subject struct {
	volume *history.Volume
	spec   content.Spec
	filled content.Filled
	// sparse says that it has a file that takes long to read.
	sparse bool
}

// New prepares a reader; Run has it read.
func New(cfg Config) *Reader { return &Reader{cfg: cfg, client: api.Dial(cfg.Socket)} }

// Retained says that a volume is retained, with its content as it was filled. What
// befell it must not have changed the content.
func (r *Reader) Retained(v *history.Volume, spec content.Spec, filled content.Filled) {
	s := &subject{volume: v, spec: spec, filled: filled}
	for w := range spec.Written(filled) {
		s.sparse = s.sparse || w.Sparse
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.subjects) == mostSubjects {
		r.subjects = slices.Delete(r.subjects, 0, 1)
	}
	r.subjects = append(r.subjects, s)
}

// Run reads until ctx ends.
func (r *Reader) Run(ctx context.Context) {
	defer r.client.Close()
	var readers sync.WaitGroup
	for i := range r.cfg.Readers {
		one := &person{Reader: r, random: rand.New(rand.NewPCG(r.cfg.Seed, uint64(i))), holds: i%holders == 0}
		readers.Go(func() { one.read(ctx) })
	}
	readers.Wait()
}

// Remove removes a volume, as a person does.
func (r *Reader) Remove(ctx context.Context, v *history.Volume) {
	if ctx.Err() != nil || !r.cfg.Checker.Follows(v) {
		return
	}
	end := r.cfg.Checker.BeginRemoval(v)
	limited, cancel := context.WithTimeout(ctx, requestLimit)
	defer cancel()
	err := r.client.Purge(limited, v.ID, "")
	if ctx.Err() != nil {
		return
	}
	end(failure(err), err)
}

// pick takes one of the volumes. Those that are over it forgets, each once picked.
func (r *Reader) pick(random *rand.Rand, wanted func(*subject) bool) *subject {
	r.mu.Lock()
	defer r.mu.Unlock()
	for range 20 {
		if len(r.subjects) == 0 {
			return nil
		}
		i := random.IntN(len(r.subjects))
		s := r.subjects[i]
		switch over := !s.there() || r.cfg.Checker.IsPublished(s.volume.ID); {
		case !wanted(s):
			continue
		case over:
			r.subjects = slices.Delete(r.subjects, i, i+1)
		case !r.cfg.Checker.Follows(s.volume):
			continue // it is about to be published, or it was reported that it should be gone
		}
		return s
	}
	return nil
}

// person is one of the readers.
type person struct {
	*Reader
	random *rand.Rand
	// holds says that it also reads very slowly: to the end of a volume.
	holds bool
}

// read lists and reads, in turn.
func (p *person) read(ctx context.Context) {
	for ctx.Err() == nil {
		began := time.Now()
		p.list(ctx)
		if s := p.pick(p.random, p.canHold); s != nil {
			p.hold(ctx, s)
			began = time.Now() // to hold a stream is no work
		} else if s := p.pick(p.random, anyone); s != nil {
			p.visit(ctx, s)
		}
		if pause.For(ctx, max(shortestRest, longerRest*time.Since(began))) != nil {
			return
		}
	}
}

func anyone(*subject) bool { return true }

// canHold reports whether the reader holds a stream of the volume. One that is over it leaves to visitors.
func (p *person) canHold(s *subject) bool {
	return p.holds && s.sparse && p.cfg.Checker.Follows(s.volume)
}

// mountedInside reports whether something was mounted in the volume's data since a
// time.
func (s *subject) mountedInside(since time.Time) bool {
	return s.volume.Troubled(since, time.Now(), workload.ForeignMount)
}

// wrong reports what is wrong with what the driver said of a volume.
func (p *person) wrong(promise history.Promise, s *subject, format string, args ...any) {
	p.cfg.Findings.Add(promise, s.volume, "read through the admin socket: "+fmt.Sprintf(format, args...))
}
