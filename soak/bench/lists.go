package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"sync/atomic"
	"time"
)

const (
	// fewNamespace has one of each fewEach retained volumes, the namespace of all others has the rest.
	fewNamespace = "few"
	fewEach      = 1_000
	// pageSize is what a page holds unless the request says otherwise, largestPage what it may hold.
	pageSize, largestPage = 500, 5_000
	// listAsks is how often each list is asked for, usageAsks how often the usage, which goes through
	// all volumes.
	listAsks, usageAsks = 40, 5
)

// namespaceOf is where the retained volume with this number is.
func namespaceOf(i int) string {
	if i%fewEach == 0 {
		return fewNamespace
	}
	return namespace
}

// lists is how long a person waits who looks at what is retained, and what the calls notice of one
// who looks at all of it.
type lists struct {
	Questions []question `json:"questions"`
	// Alone and Beside are rounds in turns: without, and with one who pages through all volumes.
	Alone  measured `json:"alone"`
	Beside measured `json:"beside"`
	// PagesPerSecond is what that one gets meanwhile.
	PagesPerSecond float64 `json:"pagesPerSecond"`
}

// question is what a person asks, and how long the answers took.
type question struct {
	For string `json:"for"`
	// Volumes is how many the answer had.
	Volumes int     `json:"volumes"`
	Took    latency `json:"took"`
}

// measureLists asks a Katbox that retains this number of volumes.
func (s *environment) measureLists(ctx context.Context, v *server, at spot) (*lists, error) {
	a := newAdmin(v.name, v.layout.Admin)
	defer a.close()
	middle, err := a.middle(ctx, at.Retained)
	if err != nil {
		return nil, err
	}
	var l lists
	for _, q := range []struct {
		what, token string
		query       url.Values
	}{
		{"first page of a namespace with nearly all", "", url.Values{"namespace": {namespace}}},
		{"first page of a namespace with one of 1,000", "", url.Values{"namespace": {fewNamespace}}},
		{"first page of all namespaces", "", url.Values{}},
		{"page in the middle of all namespaces", middle, url.Values{}},
	} {
		answered, err := ask(q.what, listAsks, func() (int, time.Duration, error) {
			p, took, err := a.list(ctx, q.token, q.query)
			return len(p.Items), took, err
		})
		if err != nil {
			return nil, err
		}
		l.Questions = append(l.Questions, answered)
	}
	usage, err := ask("usage of the disk", usageAsks, func() (int, time.Duration, error) {
		_, took, err := a.get(ctx, "/v1/usage", nil)
		return at.Retained, took, err
	})
	if err != nil {
		return nil, err
	}
	l.Questions = append(l.Questions, usage)
	return &l, s.besideLists(ctx, v, a, at.Callers, &l)
}

// ask asks the same several times. The first answer counts too.
func ask(what string, asks int, once func() (volumes int, took time.Duration, err error)) (question, error) {
	q := question{For: what}
	var all []time.Duration
	for range asks {
		volumes, took, err := once()
		if err != nil {
			return q, fmt.Errorf("%s: %w", what, err)
		}
		q.Volumes, all = volumes, append(all, took)
	}
	q.Took = latencyOf(all)
	return q, nil
}

// middle returns the token of a page in the middle of this number of volumes.
func (a *admin) middle(ctx context.Context, volumes int) (token string, err error) {
	for seen := 0; seen < volumes/2; {
		p, _, err := a.list(ctx, token, url.Values{"limit": {strconv.Itoa(min(largestPage, volumes/2-seen))}})
		if err != nil {
			return "", err
		}
		if p.Continue == "" {
			return "", fmt.Errorf("%s: the list ends after %d volumes", a.name, seen+len(p.Items))
		}
		seen, token = seen+len(p.Items), p.Continue
	}
	return token, nil
}

// besideLists lets callers do rounds, in turns without and beside one who pages through all.
func (s *environment) besideLists(ctx context.Context, v *server, a *admin, callers int, l *lists) error {
	warm, err := v.round(ctx, callers, 8*callers)
	if err != nil {
		return err
	}
	size := volumesFor(warm, callers, s.options.round)
	var rates []float64
	for range s.options.rounds {
		alone, err := v.round(ctx, callers, size)
		if err != nil {
			return err
		}
		pages, stop := a.pageOn(ctx)
		beside, err := v.round(ctx, callers, size)
		rates = append(rates, float64(pages())/beside.Seconds)
		if err := errors.Join(err, stop()); err != nil {
			return err
		}
		l.Alone.Rounds, l.Beside.Rounds = append(l.Alone.Rounds, alone), append(l.Beside.Rounds, beside)
	}
	l.Alone.Median, l.Beside.Median = medianRound(l.Alone.Rounds), medianRound(l.Beside.Rounds)
	l.PagesPerSecond = median(rates)
	return nil
}

// pageOn pages through all volumes, over and over, until stop is called. pages returns how many
// pages came by then.
func (a *admin) pageOn(ctx context.Context) (pages func() int64, stop func() error) {
	ctx, cancel := context.WithCancel(ctx)
	var count atomic.Int64
	ended := make(chan error, 1)
	go func() {
		token := ""
		for {
			p, _, err := a.list(ctx, token, url.Values{"limit": {strconv.Itoa(pageSize)}})
			if err != nil {
				if ctx.Err() != nil {
					err = nil
				}
				ended <- err
				return
			}
			count.Add(1)
			token = p.Continue
		}
	}()
	return count.Load, func() error {
		cancel()
		return <-ended
	}
}
