package verbs

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/katbox/katbox/internal/cli/verbs"
	"github.com/katbox/katbox/internal/model/api"
	"github.com/katbox/katbox/internal/model/duration"
	"github.com/katbox/katbox/internal/model/terminal"
)

// listGone lists volumes that are gone.
func (o *lsOptions) listGone(ctx context.Context, s *session, t target) error {
	query, err := o.query(s, t)
	if err != nil {
		return err
	}
	q := api.GoneQuery{Query: query, ID: t.id}
	if o.Output == verbs.OutputJSON {
		items := verbs.NewItems[api.GoneVolume](s.Stdout, `{"items":[`, "]}\n")
		if _, err := o.eachGone(ctx, s, t, q, items.Write); err != nil {
			return err
		}
		return items.End()
	}
	var table *terminal.Table
	wide := o.Output == verbs.OutputWide
	count, err := o.eachGone(ctx, s, t, q, func(page []api.GoneVolume) error {
		if table == nil {
			table = newGoneTable(s, wide)
		}
		for _, v := range page {
			goneRow(s, table, v, wide)
		}
		return table.Flush()
	})
	if err == nil && count == 0 {
		fmt.Fprintln(s.Stderr, "no volume is gone that this node remembers")
	}
	return err
}

// hintGone is what an empty list says if some of what it selects went early lately. A daemon that cannot be asked adds nothing.
func (o *lsOptions) hintGone(ctx context.Context, s *session, t target, q api.Query) (hint string) {
	if lately := s.Now().Add(-verbs.Lately); q.Since.Before(lately) {
		q.Since = lately
	}
	all := *o
	all.Limit = 0
	_, _ = all.eachGone(ctx, s, t, api.GoneQuery{Query: q}, func(page []api.GoneVolume) error {
		if slices.ContainsFunc(page, func(v api.GoneVolume) bool { return v.Early }) {
			hint = verbs.HintGone
			return verbs.ErrEnough
		}
		return nil
	})
	return hint
}

// eachGone calls f with each page that is not empty of what the target and the flags select. It returns
// how many volumes that were.
func (o *lsOptions) eachGone(
	ctx context.Context, s *session, t target, q api.GoneQuery, f func([]api.GoneVolume) error,
) (count int, err error) {
	for {
		page, err := s.client.Gone(ctx, q)
		if err != nil {
			return count, s.explain(err)
		}
		kept, enough := page.Items[:0], false
		for _, v := range page.Items {
			if enough = v.GoneAt.Before(q.Since) || o.Limit > 0 && count+len(kept) == o.Limit; enough {
				break
			}
			if t.volume == "" || t.volume == v.Volume.Volume {
				kept = append(kept, v)
			}
		}
		if count += len(kept); len(kept) > 0 {
			if err := f(kept); err != nil {
				return count, err
			}
		}
		switch {
		case enough || page.Continue == 0:
			return count, nil
		case q.Continue != 0 && page.Continue >= q.Continue:
			return count, errors.New("the daemon's list does not come to its end")
		}
		q.Continue = page.Continue
	}
}

func newGoneTable(s *session, wide bool) *terminal.Table {
	header := []string{"NAMESPACE", "POD", "VOLUME", "SIZE", "OUTCOME", "GONE", "KEPT", "WHY"}
	if wide {
		header = append([]string{"ID"}, header...)
	}
	return terminal.NewTable(s.Stdout, header...)
}

func goneRow(s *session, table *terminal.Table, v api.GoneVolume, wide bool) {
	size := terminal.Unknown
	if v.Bytes != nil {
		size = terminal.Size(*v.Bytes)
	}
	cells := []string{
		verbs.Known(v.Namespace), verbs.Known(v.Pod), verbs.Known(v.Volume.Volume), size, verbs.Known(v.Outcome),
		terminal.Ago(s.Now(), v.GoneAt), duration.KeptOf(v.Kept, v.Promised), verbs.WhyGone(s.Now(), v.Reason, v.By, v.Why, at(v.ArchivedUntil)),
	}
	if wide {
		cells = append([]string{v.ID}, cells...)
	}
	table.Row(cells...)
}
