package fleet

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"

	"github.com/katbox/katbox/internal/lib/logkeys"
	"github.com/katbox/katbox/internal/model/api"
	"github.com/katbox/katbox/internal/model/volume"
)

// list is a page in the making.
type list struct {
	*Fleet
	r Request
	// limit is how many entries the page may hold.
	limit int
	// before is what the page before said.
	before token
	// sources are asked. rest are not, unless they are needed: the one with the newest volume comes first.
	sources, rest []*source
	// holdings are how many volumes the nodes of both hold that may be in the list; nil if that is not known.
	holdings map[string]*int64
	// where is where the archive is looked through for what query selects; it selects nothing where nothing is.
	where Where
	query api.Query
	// nodes are all nodes when the list began.
	nodes Look
	// ofGone: it is a list of what is gone.
	ofGone bool
	// away are the nodes that are not connected, and skipped those that may hold such volumes and are not
	// asked at present.
	away, skipped []Missing

	mu sync.Mutex
	newest
}

// List returns a page of the retained volumes, the newest first. The errors to expect are
// ErrContinue, ErrExpired, ErrSilent, a NotConnectedError, and those of Namespaces.Lookup.
func (f *Fleet) List(ctx context.Context, r Request) (Page, error) {
	l, err := f.begin(r)
	if err != nil {
		return Page{}, err
	}
	if l.before, err = f.read(r); err != nil {
		return Page{}, err
	}
	if err := l.choose(ctx, f.cfg.Nodes.Look(ctx, r.Namespace)); err != nil {
		return Page{}, err
	}
	l.addArchive()
	if err := l.connected(); err != nil {
		return Page{}, err
	}
	if err := l.run(ctx); err != nil {
		return Page{}, err
	}
	return l.page()
}

// begin returns an empty list.
func (f *Fleet) begin(r Request) (*list, error) {
	if r.Namespace == "" && !r.Reader.Everywhere {
		return nil, errors.New("list of all namespaces for a reader who may not list all")
	}
	l := &list{Fleet: f, r: r, holdings: map[string]*int64{}}
	l.limit = r.Limit
	if r.Limit <= 0 {
		l.limit = standardLimit
	}
	l.limit = min(l.limit, mostLimit)
	l.newest.limit = l.limit
	return l, nil
}

// choose decides which of the nodes are asked, and for what.
func (l *list) choose(ctx context.Context, nodes Look) error {
	l.nodes = nodes
	q := l.r.Query
	q.Namespace, q.Tenancy, q.NoNamespace = l.r.Namespace, nil, false
	if !l.r.Reader.Everywhere {
		tenancy, ok, err := l.cfg.Namespaces.Lookup(ctx, l.r.Namespace)
		if err != nil {
			return fmt.Errorf("look up the namespace %s: %w", l.r.Namespace, err)
		}
		if !ok {
			return nil // and so no volume belongs to it
		}
		q.Tenancy = &tenancy
	}
	l.where, l.query = where(l.cfg.Namespaces, q), q
	for _, m := range nodes.Missing {
		if l.selects(m.Node) {
			l.away = append(l.away, m)
		}
	}
	for _, h := range nodes.Held {
		l.consider(h, q)
	}
	if l.r.Namespace == l.cfg.Namespace && l.r.Reader.Everywhere {
		q.Namespace, q.NoNamespace = "", true
		for _, h := range l.unknown(ctx) {
			l.consider(h, q)
		}
	}
	l.shuffle()
	return nil
}

// shuffle changes the order in which the sources are asked, so that it is not always the same nodes that a list has no time for.
func (l *list) shuffle() {
	rand.Shuffle(len(l.sources), func(i, j int) { l.sources[i], l.sources[j] = l.sources[j], l.sources[i] })
}

// unknown returns the nodes that may hold volumes whose namespace is not known.
func (l *list) unknown(ctx context.Context) []Held {
	if l.ofGone {
		return l.nodes.Held // of any namespace
	}
	return l.cfg.Nodes.Look(ctx, "").Held
}

// connected returns an error if no node at all is, and nothing of the archive can be asked: an empty list would look as if there were
// no volumes.
func (l *list) connected() error {
	missing, all := l.nodes.Missing, l.nodes.Count
	if l.nodes.Arrays {
		all++
	}
	if l.where != (Where{}) && len(l.sources) == 0 && len(missing) > 0 && len(missing) >= all {
		return &NotConnectedError{Missing: missing}
	}
	return nil
}

// selects reports whether a node may hold volumes that are selected.
func (l *list) selects(node string) bool { return l.r.Nodes == nil || l.r.Nodes(node) }

// consider makes a source of a node if that may hold what q selects.
func (l *list) consider(h Held, q api.Query) {
	name := h.Node.Node()
	if !l.selects(name) {
		return
	}
	volumes, newest, exact := held(h.Holdings, q)
	switch {
	case volumes == 0 && exact:
		return
	case h.Skip != "":
		l.skipped = append(l.skipped, Missing{Node: name, Reason: h.Skip})
		return
	}
	if known, ok := l.holdings[name]; ok && exact && known != nil {
		volumes += *known
	} else if ok {
		exact = false
	}
	l.holdings[name] = nil
	if exact {
		l.holdings[name] = &volumes
	}
	l.sources = append(l.sources, &source{
		fleet: l.Fleet, reader: l.r.Reader, keep: l.r.Keep, node: h.Node, name: name, query: q, frontier: l.before.place(), newest: newest,
	})
}

// mostHeld bounds what a node is believed to hold of a namespace.
const mostHeld = 1 << 40

// held returns how many volumes that q selects by its namespace are in a node's holdings, the place below which they are, and
// whether the number is exact.
func held(holdings []api.Holding, q api.Query) (volumes int64, newest place, exact bool) {
	newest, exact = bottom, true
	for _, h := range holdings {
		if h.Volumes <= 0 {
			continue
		}
		counts := true
		all := q.Namespace == "" && !q.NoNamespace
		switch {
		case all:
		case h.Namespace == volume.OtherNamespaces:
			counts = false
		case h.Namespace != q.Namespace: // both are empty if q selects the volumes without a namespace
			continue
		case q.Tenancy == nil:
		case h.Verdict == volume.Confirmed.String():
			if h.NamespaceUID != q.Tenancy.UID {
				continue
			}
		case h.Verdict == volume.Denied.String():
			continue
		default:
			counts = false // some may have been published before the namespace was created
		}
		if top := above(h.Newest); top.compare(newest) > 0 {
			newest = top
		}
		if !counts {
			exact = false
			continue
		}
		volumes = min(volumes+int64(h.Volumes), mostHeld)
	}
	return volumes, newest, exact
}

// page makes the page of what the nodes have answered.
func (l *list) page() (Page, error) {
	cut, open := l.cut()
	count := min(len(l.kept), l.limit)
	if open {
		count = min(count, l.above(cut))
	}
	page := Page{Entries: l.take(count), Fleet: l.status()}
	if len(page.Fleet.Missing) > 0 {
		page.Warnings = append(page.Warnings, page.Fleet.warning())
	}
	if !open && l.out == nil {
		return page, nil
	}
	if count == l.limit || count == len(l.kept) && l.out != nil {
		cut = placeOf(&page.Entries[count-1].Volume)
	}
	t := token{
		At: cut.at, ID: cut.id, Node: cut.node, Listed: l.before.Listed + int64(count),
		Missing: page.Fleet.Missing, More: page.Fleet.MissingMore,
	}
	var err error
	if page.Continue, err = l.write(t, l.r); err != nil {
		return Page{}, err
	}
	page.Remaining = l.remaining(t.Listed)
	switch {
	case l.r.Limit <= 0:
		page.Warnings = append(page.Warnings, fmt.Sprintf(
			"this list is not complete: without a limit it ends after %d volumes; ask on with \"continue\"", count))
	case l.r.Limit > mostLimit:
		page.Warnings = append(page.Warnings, fmt.Sprintf(
			"this list is not complete: limit=%d is more than %d; ask on with \"continue\"", l.r.Limit, mostLimit))
	}
	return page, nil
}

// cut returns the highest frontier of a node that may have more; false if there is none. The page
// holds nothing below it, since that node may have a newer volume. That of a node which was not asked is
// above the newest volume that it says it holds.
func (l *list) cut() (cut place, open bool) {
	for _, s := range l.sources {
		if s.answered && !s.ended && (!open || s.frontier.compare(cut) > 0) {
			cut, open = s.frontier, true
		}
	}
	if len(l.rest) > 0 && (!open || l.rest[0].newest.compare(cut) > 0) {
		cut, open = l.rest[0].newest, true
	}
	return cut, open
}

// remaining estimates how many entries follow after those that were listed.
func (l *list) remaining(listed int64) *int64 {
	if l.r.selects() {
		return nil
	}
	var all int64
	for _, s := range l.sources {
		if !s.answered {
			l.holdings[s.name] = new(int64) // what it holds does not follow
		}
	}
	for _, volumes := range l.holdings {
		if volumes == nil {
			return nil
		}
		all += *volumes
	}
	if all -= listed; all <= 0 {
		return nil
	}
	return &all
}

// log writes how a list went, if a node is missing.
func (l *list) log(first error) {
	if first != nil {
		l.cfg.Log.Info("a list lacks nodes that have not answered", logkeys.Namespace, l.r.Namespace,
			"asked", l.status().Asked, logkeys.Cause, volume.OneLine(first))
	}
}

// names joins names for people.
func names(missing []Missing, more int) string {
	all := make([]string, len(missing), len(missing)+1)
	for i, m := range missing {
		all[i] = m.Node
	}
	if more > 0 {
		all = append(all, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(all, ", ")
}
