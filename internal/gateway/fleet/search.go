package fleet

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/katbox/katbox/internal/lib/logkeys"
	"github.com/katbox/katbox/internal/lib/paths"
	"github.com/katbox/katbox/internal/model/api"
	"github.com/katbox/katbox/internal/model/volume"
)

const (
	// searchTime is how long a search may take in all, and searchSilence how long a node may say nothing: it says how far it
	// is every five seconds, once it has a slot.
	searchTime    = 30 * time.Minute
	searchSilence = 30 * time.Second
	// searching is how many nodes a search asks at the same time. The answer of each takes up to 100 KiB.
	searching = 128
	// together is how many bytes of what a node has found are handed over at once, at least while there are more.
	together = 32 << 10
	// mostFound is how much a node finds where it tells no lines, and mostProgress how often it says how far it is.
	mostFound    = 4_000_000
	mostProgress = 10_000
)

// The reasons why a node is missing in a search, beside those of lists.
const (
	// Busy: too many others search the node.
	Busy = "Busy"
	// TooOld: the node's daemon is of a version that does not search.
	TooOld = "TooOld"
	// NotSearched: what is kept there cannot be searched.
	NotSearched = "NotSearched"
)

// Searcher is a [Node] whose volumes can be searched.
type Searcher interface {
	// Grep begins to search. The node logs who asks.
	Grep(ctx context.Context, by Reader, q api.GrepQuery) (*api.GrepStream[api.Volume], error)
}

// SearchRequest asks for a search.
type SearchRequest struct {
	// Request selects the volumes as for a list; its Limit and Continue are not used.
	Request
	// One is the only volume that is searched; nil for all that Request selects.
	One  *Found
	Grep api.Grep
	// Archived: also what is in the archive alone. Else that is counted, unless it is the One.
	Archived bool
}

// Search is a search that can run.
type Search struct {
	list *list
	grep api.Grep
	id   string
	// one is the volume of the archive that is searched alone; nil if none is. archived: also what is in the archive alone.
	one      *Entry
	archived bool

	mu sync.Mutex
	// sums are of nodes that have ended, inPart of the archive before its end, and stopped is the budget that was used up there.
	sums, inPart api.GrepSums
	stopped      string
	// left are volumes of the archive that are not searched. leftMore: there are or may be more.
	left     int64
	leftMore bool
}

// Search prepares a search: it decides which nodes are asked. The errors to expect are a NotConnectedError, and those of
// Namespaces.Lookup.
func (f *Fleet) Search(ctx context.Context, r SearchRequest) (*Search, error) {
	l, err := f.begin(r.Request)
	if err != nil {
		return nil, err
	}
	s := &Search{list: l, grep: r.Grep, archived: r.Archived}
	nodes := f.cfg.Nodes.Look(ctx, r.Namespace)
	if r.One == nil {
		if err := l.choose(ctx, nodes); err != nil {
			return s, err
		}
		if s.archived {
			l.addArchive()
			return s, l.connected()
		}
		err := l.connected()
		l.addArchive()
		known := len(l.away)
		l.away = slices.DeleteFunc(l.away, func(m Missing) bool { return m.Node == Archived })
		s.leftMore = len(l.away) < known
		return s, err
	}
	v, name := r.One.Volume, r.One.Node.Node()
	q := api.Query{Namespace: v.Namespace, NoNamespace: v.Namespace == ""}
	if !r.Reader.Everywhere {
		tenancy, _, err := f.cfg.Namespaces.Lookup(ctx, r.Namespace) // nothing belongs to one that is not there
		if err != nil {
			return nil, fmt.Errorf("look up the namespace %s: %w", r.Namespace, err)
		}
		q.Tenancy = &tenancy
	}
	s.id, l.nodes = v.ID, nodes
	l.sources = []*source{{
		fleet: f, reader: r.Reader, node: r.One.Node, name: name, query: q, keep: func(e Entry) bool { return e.Volume.ID == v.ID },
		archived: v.Archived != "",
	}}
	if v.Archived != "" {
		s.one = &r.One.Entry
	}
	return s, nil
}

// Run searches. It calls found, from several goroutines, for what nodes find in one volume after another; what is found in one
// may come in several calls. The error is that of found or of ctx.
func (s *Search) Run(ctx context.Context, found func(Entry, []api.GrepFound) error) (api.GrepEnd, error) {
	during, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	// Not a deadline: a node is not to blame for what takes long.
	defer time.AfterFunc(searchTime, func() { cancel(context.DeadlineExceeded) }).Stop()
	var failed error
	var once sync.Once
	tell := func(e Entry, all []api.GrepFound) error {
		err := found(e, all)
		if err != nil {
			once.Do(func() { failed = err })
			cancel(err)
		}
		return err
	}
	slots := make(chan struct{}, searching)
	var running, beside sync.WaitGroup
	nodes, parts := s.split()
	counting, enough := context.WithCancel(during)
	defer enough()
	if len(parts) > 0 {
		beside.Go(func() { s.archive(counting, parts, tell) })
	}
	for _, node := range nodes {
		select {
		case slots <- struct{}{}:
		case <-during.Done():
		}
		if during.Err() != nil {
			node.failure = NoAnswer
			continue
		}
		running.Go(func() {
			defer func() { <-slots }()
			if err := s.ask(during, node, tell); err != nil {
				node.failure = reasonOf(err)
				s.list.cfg.Log.V(1).Info("a node did not search", logkeys.Node, node.name, logkeys.Cause, volume.OneLine(err))
			}
		})
	}
	running.Wait()
	if s.counts() {
		defer time.AfterFunc(countGrace, enough).Stop()
	}
	beside.Wait()
	if err := ctx.Err(); err != nil {
		return api.GrepEnd{}, err
	}
	return s.end(), failed
}

// end sums up what the nodes have said.
func (s *Search) end() api.GrepEnd {
	status := s.list.status()
	end := api.GrepEnd{
		GrepSums: s.sums, Nodes: status.Nodes, MissingMore: status.MissingMore, Archived: s.left, ArchivedMore: s.leftMore,
		ArchiveStopped: s.stopped,
	}
	for _, m := range status.Missing {
		end.Missing = append(end.Missing, api.GrepMissing{Node: m.Node, Reason: m.Reason})
	}
	return end
}

// errNotSearched: what is kept there cannot be searched.
var errNotSearched = errors.New("what is kept there cannot be searched")

// reasonOf returns why a node has not searched to its end.
func reasonOf(err error) string {
	busy := (*api.Error)(nil)
	switch {
	case errors.Is(err, errNotSearched):
		return NotSearched
	case errors.Is(err, api.ErrOlder):
		return TooOld
	case errors.As(err, &busy) && busy.Reason == api.TooManyRequests:
		return Busy
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return NoAnswer
	}
	return Failed
}

// ask searches the volumes of one node.
func (s *Search) ask(ctx context.Context, node *source, tell func(Entry, []api.GrepFound) error) error {
	searcher, ok := node.node.(Searcher)
	if !ok {
		return errNotSearched
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	silence := time.AfterFunc(searchSilence, func() { cancel(context.DeadlineExceeded) })
	defer silence.Stop()
	err := func() error {
		stream, err := searcher.Grep(ctx, node.reader, api.GrepQuery{Grep: s.grep, Query: node.query, ID: s.id})
		if s.id != "" && isLost(err) {
			s.add(node, api.GrepSums{Lost: 1})
			return nil
		}
		if err != nil {
			return err
		}
		defer stream.Close()
		r := &answerOf{source: node, grep: s.grep}
		for {
			record, err := stream.Next()
			if err != nil {
				return err
			}
			// The reader may take his time, which is not the node's.
			silence.Stop()
			err = r.take(record, stream.Buffered(), tell)
			silence.Reset(searchSilence)
			if errors.Is(err, io.EOF) {
				s.add(node, record.End.GrepSums)
				return nil
			}
			if err != nil {
				return err
			}
		}
	}()
	if why := context.Cause(ctx); err != nil && why != nil {
		return why
	}
	return err
}

// add adds what a node says at its end.
func (s *Search) add(node *source, sums api.GrepSums) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sums.Add(sums)
	node.answered = true
	if node.archived {
		s.inPart = api.GrepSums{}
	}
}

// Sums returns what the nodes that have come to their end have searched, and what of the archive is searched by now.
func (s *Search) Sums() (sums api.GrepSums) {
	s.mu.Lock()
	defer s.mu.Unlock()
	sums.Add(s.sums)
	sums.Add(s.inPart)
	return sums
}

// isLost reports whether a node says that a volume is not retained any more.
func isLost(err error) bool {
	said := (*api.Error)(nil)
	return errors.As(err, &said) && (said.Reason == api.NotFound || said.Reason == api.Conflict || said.Reason == api.Expired)
}

// answerOf is what a node has answered to a search.
type answerOf struct {
	*source
	grep api.Grep
	// in is the volume of what is found; nil before the first one. hidden: the reader may not see it.
	in     *Entry
	hidden bool
	// waits is what was found in it and not handed over, and bytes how long that is.
	waits []api.GrepFound
	bytes int
	// matches and others count what was found in all, and found what was in the volume; progress how often it said how far it is.
	matches, others, found, progress int
}

// take takes the next record. more says that another one is there. The error is io.EOF behind the last one; any other error
// that is not of tell says what cannot be true.
func (a *answerOf) take(r api.GrepRecord[api.Volume], more bool, tell func(Entry, []api.GrepFound) error) error {
	switch {
	case r.Found != nil:
		if err := a.check(r.Found); err != nil {
			a.fleet.dropped(a.name, 1, err)
			return err
		}
		if a.hidden {
			return nil
		}
		a.waits = append(a.waits, *r.Found)
		if a.bytes += len(r.Found.Text) + len(r.Found.File) + bareBytes/10; a.bytes < together && more {
			return nil
		}
		return a.tell(tell)
	case r.Volume != nil:
		if err := a.tell(tell); err != nil {
			return err
		}
		if err := a.enter(*r.Volume); err != nil {
			a.fleet.dropped(a.name, 1, err)
			return err
		}
	case r.End != nil:
		if err := a.tell(tell); err != nil {
			return err
		}
		return io.EOF
	default:
		if a.progress++; a.progress > mostProgress {
			return errors.New("it says too often how far it is")
		}
	}
	return a.tell(tell)
}

// tell hands over what waits.
func (a *answerOf) tell(tell func(Entry, []api.GrepFound) error) error {
	if len(a.waits) == 0 {
		return nil
	}
	all := a.waits
	a.waits, a.bytes = nil, 0
	return tell(*a.in, all)
}

// enter begins what was found in a volume. It is judged as in a list: a node can only speak of what it may list.
func (a *answerOf) enter(v api.Volume) error {
	if a.in != nil && a.found == 0 {
		return errors.New("nothing was found in a volume")
	}
	a.found = 0
	if err := validateVolume(&v, a.name, a.query); err != nil {
		return err
	}
	at := placeOf(&v)
	if at.compare(a.frontier) >= 0 {
		return fmt.Errorf("%q is out of order, or there twice", v.ID)
	}
	a.frontier = at
	e, visible := a.fleet.judge(v, a.reader, a.query.Tenancy)
	a.in, a.hidden = e, !visible || a.keep != nil && !a.keep(*e)
	return nil
}

// check returns nil if something can have been found.
func (a *answerOf) check(f *api.GrepFound) error {
	if a.in == nil {
		return errors.New("something was found in no volume")
	}
	a.found++
	if f.Context {
		a.others++
	} else {
		a.matches++
	}
	path, err := paths.ParseRef(f.File)
	switch {
	case err != nil:
		return err
	case path.IsTop(), path.Ref() != f.File:
		return fmt.Errorf("%.300q is no ref of a file", f.File)
	case len(f.Text) > api.MostGrepText, !utf8.ValidString(f.Text), f.Line < 0, f.Count < 0, f.Count > mostSize:
		return fmt.Errorf("a line of %.300q has the number %d, %d bytes, and counts %d", f.File, f.Line, len(f.Text), f.Count)
	case a.grep.Tell == api.TellLines && a.matches > api.MostGrepLines, a.matches > mostFound,
		a.others > 2*api.MostGrepContext*api.MostGrepLines,
		f.Context && a.grep.Context == 0:
		return fmt.Errorf("it has found %d lines, and %d beside them", a.matches, a.others)
	}
	if strings.Contains(f.Text, "\n") {
		return fmt.Errorf("a line of %.300q has an end in it", f.File)
	}
	if f.Time.IsZero() {
		return nil
	}
	return validateTime(f.Time)
}
