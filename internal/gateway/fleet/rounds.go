package fleet

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"
)

// question is what a source is asked for in one round.
type question struct {
	*source
	volumes int
}

// run asks the nodes, round after round, until the page is as long as it can be.
func (l *list) run(ctx context.Context) error {
	during, cancel := context.WithTimeout(ctx, listTime)
	defer cancel()
	var first error
	next := l.begin
	for round := 0; round < rounds && during.Err() == nil; round++ {
		questions := next()
		if len(questions) == 0 {
			break
		}
		if err := l.round(during, questions); first == nil {
			first = err
		}
		l.sort()
		next = l.again
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	l.log(first)
	return l.silence()
}

// silence returns an error if no node at all has answered: an empty list would look as if there were
// no volumes.
func (l *list) silence() error {
	nodes := slices.Clone(l.skipped)
	for _, s := range l.sources {
		if s.answered {
			return nil
		}
		if m := (Missing{Node: s.name, Reason: s.failure}); !slices.Contains(nodes, m) {
			nodes = append(nodes, m)
		}
	}
	if len(nodes) == 0 {
		return nil
	}
	return silent(nodes)
}

// begin returns the questions of the first round: each source is asked for twice its share.
func (l *list) begin() []question {
	l.divide()
	questions := make([]question, len(l.sources))
	for i, s := range l.sources {
		questions[i] = question{s, min(max(2, (2*l.limit+len(l.sources)-1)/len(l.sources)), max(2, l.limit))}
	}
	return questions
}

// divide decides which sources are asked in the first round: those that may have volumes above the page, and of the others those with
// the newest volumes. Among these N have the N newest; twice as many are asked, since some volumes are not shown. The rest waits. A node
// may have retained more since it said what it holds, so a few nodes are all asked; and so are those of a list that selects, since most
// of them may have nothing for it.
func (l *list) divide() {
	most := max(l.least, 2*l.limit)
	if len(l.sources) <= most || l.r.selects() {
		return
	}
	slices.SortFunc(l.sources, func(a, b *source) int { return b.newest.compare(a.newest) })
	first := slices.IndexFunc(l.sources, func(s *source) bool { return s.newest.compare(l.before.place()) < 0 })
	if first >= 0 && first+most < len(l.sources) {
		l.sources, l.rest = slices.Clip(l.sources[:first+most]), l.sources[first+most:]
	}
	l.shuffle()
}

// again returns the questions of another round. A source is asked again, and one of the rest for the first time, if its frontier is
// above the oldest entry that the page may hold. How many more of its volumes are in the page is estimated from how many it has among
// the entries above its frontier: a node that has all of the newest volumes is asked for many at once, and one of thousands of equal
// nodes for a few.
func (l *list) again() []question {
	var floor place
	bounded := l.full()
	if bounded {
		floor = placeOf(&l.kept[0].Volume)
	}
	for _, s := range l.sources {
		// The page ends at the frontier of a node that has failed after an answer.
		if s.answered && !s.ended && s.failure != "" && (!bounded || s.frontier.compare(floor) > 0) {
			floor, bounded = s.frontier, true
		}
	}
	for len(l.rest) > 0 && (!bounded || l.rest[0].newest.compare(floor) > 0) {
		l.sources, l.rest = append(l.sources, l.rest[0]), l.rest[1:]
	}
	var questions []question
	sum := 0
	for _, s := range l.sources {
		frontier := s.frontier
		if !s.answered {
			frontier = s.newest
		}
		if s.ended || s.failure != "" || bounded && frontier.compare(floor) <= 0 {
			continue
		}
		rank := max(1, l.above(frontier))
		q := question{s, 1 + (3*max(1, s.kept)*(l.limit-min(rank, l.limit))+2*rank-1)/(2*rank)}
		q.volumes = min(max(q.volumes, 2), max(2, l.limit))
		questions, sum = append(questions, q), sum+q.volumes
	}
	most := mostVolumes
	if len(l.kept) > 0 {
		most = min(most, mostRound*len(l.kept)/l.bytes)
	}
	if sum > most {
		for i := range questions {
			questions[i].volumes = max(2, questions[i].volumes*most/sum)
		}
	}
	return questions
}

// round asks sources, many at the same time, and adds what they answer. The error is the first of a
// source.
func (l *list) round(ctx context.Context, questions []question) error {
	return parallelly(ctx, questions, l.ask)
}

// asked is what parallelly needs of a question: the source that it is for.
type asked interface{ from() *source }

func (s *source) from() *source { return s }

// parallelly asks sources, many at the same time. The error is the first of a source.
func parallelly[Q asked](ctx context.Context, questions []Q, ask func(context.Context, Q) error) error {
	slots := make(chan struct{}, parallel)
	var running sync.WaitGroup
	var mu sync.Mutex
	var first error
	failed := func(err error) {
		mu.Lock()
		defer mu.Unlock()
		first = cmp.Or(first, err)
	}
	for i, q := range questions {
		select {
		case slots <- struct{}{}:
		case <-ctx.Done():
		}
		if ctx.Err() != nil {
			for _, q := range questions[i:] {
				q.from().failure = NoAnswer
			}
			failed(errors.New("time was up before all nodes were asked"))
			break
		}
		running.Go(func() {
			free := sync.OnceFunc(func() { <-slots })
			defer free()
			defer time.AfterFunc(patience, free).Stop()
			failed(ask(ctx, q))
		})
	}
	running.Wait()
	return first
}

// ask asks one source and adds what it answers.
func (l *list) ask(ctx context.Context, q question) error {
	ctx, cancel := context.WithTimeout(ctx, nodeTime)
	defer cancel()
	entries, err := q.next(ctx, q.volumes)
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range entries {
		if !l.add(e) {
			break // the others are older
		}
	}
	return nil
}
