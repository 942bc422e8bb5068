package main

// listSheet is how long lists take.
func (x *result) listSheet() sheet {
	s := sheet{title: "How long lists take, in ms", head: []string{"retained", "asked for", "volumes", "p50", "p99", "max"}}
	for _, p := range x.Points {
		if p.Lists == nil {
			continue
		}
		for _, q := range p.Lists.Questions {
			s.rows = append(s.rows, []string{count(p.Retained), q.For, count(q.Volumes), short(q.Took.P50), short(q.Took.P99), short(q.Took.Max)})
		}
	}
	return s
}

// besideSheet is what the calls notice of lists.
func (x *result) besideSheet() sheet {
	s := sheet{title: "Calls beside a client that pages through all volumes, in ms",
		head: []string{"callers", "retained", "pages/s", "call", "p99", "alone", "ratio"}}
	for _, p := range x.Points {
		if p.Lists == nil {
			continue
		}
		for _, call := range calls {
			beside, alone := call.of(p.Lists.Beside.Median), call.of(p.Lists.Alone.Median)
			s.rows = append(s.rows, []string{count(p.Callers), count(p.Retained), whole(p.Lists.PagesPerSecond), call.name,
				short(beside.P99), short(alone.P99),
				times(inTurns(p.Lists.Beside, p.Lists.Alone, func(r round) float64 { return call.of(r).P99 }))})
		}
	}
	return s
}
