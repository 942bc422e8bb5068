package handlers

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"net/url"
	"time"

	"github.com/katbox/katbox/internal/lib/grep"
	"github.com/katbox/katbox/internal/lib/retry"
	"github.com/katbox/katbox/internal/lib/shares"
	"github.com/katbox/katbox/internal/model/api"
	"github.com/katbox/katbox/internal/model/asked"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/node/files"
	"github.com/katbox/katbox/internal/node/search"
)

const (
	// mostSearches is how many run at once on a node. They are shared out by the namespaces of the volumes, and one waits
	// searchWait for its turn.
	mostSearches = 4
	searchWait   = 10 * time.Second
	// searchLimit is how long one may take.
	searchLimit = 10 * time.Minute
	// searchPage is how many volumes are listed at once.
	searchPage = 500
	// sendEvery is how long what was found waits for more, and progressEvery how long a search says nothing.
	sendEvery     = 100 * time.Millisecond
	progressEvery = 5 * time.Second
	// lostWait is how long a client may take to read what was found in a volume that is lost meanwhile.
	lostWait = 2 * time.Second
)

// errTimeUp: a search took its time.
var errTimeUp = &grep.UsedUpError{Budget: api.StopTime}

// parseGrepQuery reads the parameters of a search.
func parseGrepQuery(v url.Values) (q api.GrepQuery, s volume.Selection, err *api.Error) {
	p := asked.New(v)
	s = selection(p)
	s.Since, s.Limit = p.Time("since"), searchPage
	q.ID = p.Text("id")
	for _, name := range api.GrepParameters {
		p.All(name) // which ParseGrep reads
	}
	if err := p.End(); err != nil {
		return q, s, err
	}
	q.Grep, err = api.ParseGrep(v)
	return q, s, err
}

// grep streams what matches in the volumes that are selected, the newest first.
func (a *answer) grep(ctx context.Context) error {
	q, selection, wrong := parseGrepQuery(a.r.URL.Query())
	if wrong != nil {
		return wrong
	}
	pattern, wrong := q.Compile()
	if wrong != nil {
		return wrong
	}
	options := grep.Options{Pattern: pattern, Tell: q.Tell, Context: q.Context, Bytes: q.MaxBytes}
	if q.Files != "" {
		if options.Files, wrong = api.ParseGlob(q.Files); wrong != nil {
			return wrong
		}
	}
	of := selection.Namespace
	if q.ID != "" {
		id, err := volume.ParseID("volume ID", q.ID)
		if err != nil {
			return bad(api.BadParameter, "id", "%q is not a volume ID: %v", q.ID, err)
		}
		a.record.ID = id
		if of, _, err = a.whose(ctx); err != nil {
			return err
		}
	}
	a.record.Namespace = of
	release, err := a.turn(ctx, of)
	if err != nil {
		return err
	}
	defer release()
	a.h.Metrics.StreamBegan()
	defer a.h.Metrics.StreamEnded()
	return a.search(ctx, options, selection)
}

// turn waits for a slot of a namespace.
func (a *answer) turn(ctx context.Context, of string) (release func(), err error) {
	waiting, cancel := context.WithTimeout(ctx, searchWait)
	defer cancel()
	release, err = a.h.searches.Wait(waiting, of)
	if errors.Is(err, shares.ErrQueue) || err != nil && ctx.Err() == nil {
		a.h.Metrics.StreamRefused()
		return nil, tooMany("%d searches run on this node, which is the most; try again when one has ended", mostSearches)
	}
	return release, err
}

// grepping is the answer to a search.
type grepping struct {
	*answer
	*search.Search
	to *sender
	// high ends the low I/O priority.
	high func()
	// waits is what was found and not sent since sent.
	waits bytes.Buffer
	sent  time.Time
}

// search answers with what is found.
func (a *answer) search(ctx context.Context, o grep.Options, selection volume.Selection) error {
	_, own := a.h.searches.Taken(a.record.Namespace)
	g := &grepping{answer: a, to: newSender(a, own)}
	defer g.to.end()
	ctx, cancel := context.WithTimeoutCause(ctx, searchLimit, errTimeUp)
	defer cancel()
	// A client that does not read keeps the slot no longer than its stream may stand still.
	defer time.AfterFunc(searchLimit+g.to.stall, g.to.cut).Stop()
	o.Tick = g.tick
	g.Search = search.New(o)
	begin := func() {
		g.to.renew()
		a.Header().Set("Content-Type", "application/x-ndjson")
		a.WriteHeader(http.StatusOK)
		_ = a.Control.Flush() // an error comes again
	}
	g.high = a.h.LowPriority()
	defer func() { g.high() }()
	var err error
	if a.record.ID != "" {
		err = g.one(ctx, begin)
	} else {
		begin()
		err = g.all(ctx, selection)
	}
	if up := (*grep.UsedUpError)(nil); errors.As(err, &up) {
		g.Sums.Stop(up.Budget)
		err = nil
	}
	if err != nil {
		return err
	}
	return g.add(api.GrepRecord[api.Volume]{End: &api.GrepEnd{GrepSums: g.Sums}})
}

// one searches the volume of the request.
func (g *grepping) one(ctx context.Context, begin func()) error {
	reading, err := g.h.Volumes.Read(ctx, g.record.ID)
	if err != nil {
		return err
	}
	reading.Close()
	begin()
	return g.volume(ctx, reading.Volume)
}

// all searches the volumes that are selected.
func (g *grepping) all(ctx context.Context, s volume.Selection) error {
	for {
		page, err := g.h.Volumes.List(ctx, s)
		if err != nil {
			return cause(ctx, err)
		}
		for _, d := range page.Volumes {
			if err := g.volume(ctx, d); err != nil {
				return err
			}
		}
		if page.Next.IsZero() {
			return nil
		}
		s.Before = page.Next
	}
}

// volume searches a volume. One that is lost meanwhile is counted.
func (g *grepping) volume(ctx context.Context, d volume.Description) error {
	if err := cause(ctx, g.tick()); err != nil {
		return err
	}
	reading, err := g.h.Volumes.Read(ctx, d.Record.ID)
	if err == nil {
		err = g.files(ctx, reading, d)
		reading.Close()
	}
	up := (*grep.UsedUpError)(nil)
	switch {
	case err == nil:
		g.Sums.Volumes++
	case ctx.Err() != nil, errors.As(err, &up), errors.Is(err, api.ErrLeft), errors.Is(err, errStalled),
		errors.Is(err, volume.ErrUnavailable):
		return cause(ctx, err)
	case errors.Is(err, volume.ErrNotFound), errors.Is(err, volume.ErrNotRetained), errors.Is(err, volume.ErrGone):
		g.Sums.Lost++
	default:
		g.Sums.Break()
	}
	return nil
}

// files searches the files of a volume. A client that does not read keeps none of them open once the volume is lost.
func (g *grepping) files(ctx context.Context, reading *files.Reading, d volume.Description) error {
	over, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(reading.Lost, func() {
		if retry.Pause(over, lostWait) == nil {
			g.to.cut()
		}
	})()
	said := false
	return g.Volume(ctx, reading, d.Record.VolumeName == volume.LogsName, func(f api.GrepFound) error {
		if !said {
			said = true
			v := g.h.volume(d)
			if err := g.add(api.GrepRecord[api.Volume]{Volume: &v}); err != nil {
				return err
			}
		}
		return g.add(api.GrepRecord[api.Volume]{Found: &f})
	})
}

// add adds a record, and sends what waits if that is long, has waited, or is the end.
func (g *grepping) add(r api.GrepRecord[api.Volume]) error {
	text, err := api.Encode(r)
	if err != nil {
		return err
	}
	g.waits.Write(text)
	if g.waits.Len() >= progress/2 || r.End != nil {
		return g.send()
	}
	return g.tick()
}

// tick sends what has waited, and says every few seconds how far the search is.
func (g *grepping) tick() error {
	switch quiet := time.Since(g.sent); {
	case quiet < sendEvery, g.waits.Len() == 0 && quiet < progressEvery:
		return nil
	case g.waits.Len() == 0 && g.sent.IsZero():
		g.sent = time.Now()
		return nil
	case g.waits.Len() == 0:
		text, err := api.Encode(api.GrepRecord[api.Volume]{Progress: &g.Sums})
		if err != nil {
			return err
		}
		g.waits.Write(text)
	}
	return g.send()
}

// send sends what waits. It does not keep a thread while it waits for the client.
func (g *grepping) send() error {
	g.high()
	defer func() { g.high = g.h.LowPriority() }()
	_, err := g.to.Write(g.waits.Bytes())
	g.waits.Reset()
	g.sent = time.Now()
	if err == nil && g.Control.Flush() != nil {
		err = api.ErrLeft
	}
	return err
}
