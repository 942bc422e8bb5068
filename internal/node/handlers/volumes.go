package handlers

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/katbox/katbox/internal/model/api"

	"github.com/katbox/katbox/internal/model/duration"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/node/files"
)

// listVolumes answers with a page of the retained volumes.
func (a *answer) listVolumes(ctx context.Context) error {
	selection, bad := parseQuery(a.r.URL.Query())
	if bad != nil {
		return bad
	}
	return a.h.within(ctx, func(ctx context.Context) error {
		list := api.VolumeList{Items: []api.Volume{}}
		var keys []volume.Key
		patience := a.patience()
		for len(list.Items) == 0 {
			page, err := a.h.Volumes.List(ctx, selection)
			if err != nil {
				return err
			}
			for _, d := range page.Volumes {
				list.Items = append(list.Items, a.h.volume(d))
				keys = append(keys, d.Record.Key())
			}
			list.Continue = api.FormatKey(page.Next)
			if selection.Before = page.Next; page.Next.IsZero() || time.Since(a.Began) >= patience {
				break
			}
		}
		return a.page(len(list.Items), func(entries int) any {
			if entries < len(list.Items) {
				list.Items, list.Continue = list.Items[:entries], api.FormatKey(keys[entries-1])
			}
			return list
		})
	})
}

// patience is how long a list looks for something to answer with. A page of the node may be short, or
// empty, and not the last one; one with something in it is an answer. A gateway waits two seconds, and
// goes on with what other nodes have answered.
func (a *answer) patience() time.Duration {
	if a.h.Gateway {
		return 0
	}
	return a.h.list / 2
}

// describe answers with one volume.
func (a *answer) describe(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, a.h.list)
	defer cancel()
	d, err := a.h.Volumes.Describe(ctx, a.record.ID)
	if err != nil {
		return err
	}
	a.record = d.Record
	return a.JSON(http.StatusOK, a.h.volume(d))
}

// volume describes a volume in the words of the API.
func (h *handler) volume(d volume.Description) api.Volume { return Describe(h.Node, d) }

// Describe describes a volume of the node with that name in the words of the API.
func Describe(node string, d volume.Description) api.Volume {
	r := d.Record
	v := api.Volume{
		ID: string(r.ID), Namespace: r.Namespace, Pod: r.PodName, PodUID: string(r.Pod), Claim: d.Claim, Volume: r.VolumeName,
		ServiceAccount: r.ServiceAccount, Node: node, Phase: r.Phase.String(),
		PublishedAt: known(r.Published), RetainedAt: known(r.Unpublished), ExpiresAt: known(d.Deadline), MayGoEarlier: d.Early,
		ArchivedUntil: known(r.ArchivedUntil),
	}
	if o := r.Owner; o.Verdict != volume.Unasked {
		v.Owner = &api.Owner{
			Verdict: o.Verdict.String(), NamespaceUID: o.NamespaceUID, Kind: o.Kind, Name: o.Name, UID: o.UID, Job: o.Job, JobIndex: o.JobIndex,
		}
	}
	if d.Size != (volume.Size{}) {
		v.Bytes = &d.Size.Bytes
		if r.Pod != "" { // of a claim's volume the bytes alone are known
			v.Inodes = &d.Size.Inodes
		}
	}
	if r.Outcome != volume.OutcomeUnknown {
		v.Outcome = r.Outcome.String()
	}
	if h := r.Hold; h.Kind != volume.NoHold {
		v.Hold = &api.Hold{Kind: h.Kind.String(), Until: *known(r.HeldUntil()), By: h.By, Why: h.Why}
	}
	if r.Terms != (volume.Terms{}) {
		v.Terms = terms(r.Terms)
		v.Terms.LimitNotEnforced = d.LimitNotEnforced
	}
	return v
}

// terms describes terms in the words of the API.
func terms(t volume.Terms) *api.Terms {
	return &api.Terms{
		Lifespan: duration.Format(t.Lifespan), LifespanSucceeded: duration.Format(t.LifespanSucceeded), Retain: t.Retain.String(),
		LimitBytes: t.Limit.Bytes, LimitInodes: t.Limit.Inodes,
	}
}

// known returns a time as people see it; nil if it is not known.
func known(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.Round(0).UTC()
	return &t
}

// report answers with a text about the daemon.
func (a *answer) report(ctx context.Context) error {
	release, ok := a.h.measurements.take()
	if !ok {
		return tooMany("the node is being measured, or a report made; try again in a moment")
	}
	defer release()
	ctx, cancel := context.WithTimeout(ctx, measureLimit)
	defer cancel()
	a.Allow(measureLimit + answerLimit)
	a.Header().Set("Content-Type", "text/plain; charset=utf-8")
	return a.h.Report(ctx, a)
}

// read begins to read the volume of the request. The context that it returns ends, with the reason
// as its cause, when the volume is lost; cut is called then, too. The caller calls end.
func (a *answer) read(ctx context.Context, cut func()) (reading *files.Reading, during context.Context, end func(), err error) {
	reading, err = a.h.Volumes.Read(ctx, a.record.ID)
	if err != nil {
		return nil, nil, nil, err
	}
	a.record = reading.Volume.Record
	if why := context.Cause(reading.Lost); why != nil {
		reading.Close()
		return nil, nil, nil, why
	}
	during, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(reading.Lost, func() {
		cancel(context.Cause(reading.Lost))
		cut()
	})
	return reading, during, func() {
		stop()
		cancel(nil)
		reading.Close()
	}, nil
}

// lost returns why the volume was lost, if it was. From then on its files may be missing: what was read by then need not be all.
func lost(reading *files.Reading) error { return context.Cause(reading.Lost) }

// cause returns why something failed: because the volume was lost, if it was. The server ends the
// context of a request without a reason when a write fails.
func cause(ctx context.Context, err error) error {
	if why := context.Cause(ctx); err != nil && why != nil && !errors.Is(why, context.Canceled) {
		return why
	}
	return err
}
