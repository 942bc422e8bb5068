package reader

import (
	"context"
	"fmt"
	"time"

	"github.com/katbox/katbox/internal/model/api"
	"github.com/katbox/katbox/soak/internal/check"
)

// mostPages is far more pages than a list has: one that does not come to an end
// repeats itself.
const mostPages = 100_000

// list lists the volumes of a namespace, or all, page by page.
func (p *person) list(ctx context.Context) {
	q := api.Query{Limit: 1 + p.random.IntN(100)}
	if i := p.random.IntN(len(p.cfg.Namespaces) + 1); i > 0 {
		q.Namespace = p.cfg.Namespaces[i-1]
	}
	listing := p.cfg.Checker.BeginList(q.Namespace)
	var all []check.Listed
	for range mostPages {
		from := time.Now()
		page, err := p.page(ctx, q)
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			p.cfg.Checker.ReadFailed(nil, from, failure(err), fmt.Sprintf("a list of namespace %q: %v", q.Namespace, err))
			return
		}
		for _, v := range page.Items {
			if v.PodUID != "" { // else it is a retained local volume, which is judged by what its pool lists
				all = append(all, listed(v))
			}
		}
		if q.Continue = page.Continue; q.Continue == "" {
			p.counts.lists.Add(1)
			listing.End(all)
			return
		}
	}
	p.cfg.Checker.ReadFailed(nil, time.Now(), check.Refused, fmt.Sprintf("a list of namespace %q: it has no end", q.Namespace))
}

func (p *person) page(ctx context.Context, q api.Query) (api.VolumeList, error) {
	limited, cancel := context.WithTimeout(ctx, requestLimit)
	defer cancel()
	return p.client.List(limited, q)
}

func listed(v api.Volume) check.Listed {
	l := check.Listed{
		ID: v.ID, Namespace: v.Namespace, Pod: v.Pod, PodUID: v.PodUID, Volume: v.Volume, Retained: v.Phase == "Retained",
	}
	if v.RetainedAt != nil {
		l.RetainedAt = *v.RetainedAt
	}
	if v.ExpiresAt != nil {
		l.ExpiresAt = *v.ExpiresAt
	}
	return l
}
