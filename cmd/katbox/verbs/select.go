package verbs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/spf13/pflag"

	"github.com/katbox/katbox/internal/cli/verbs"
	"github.com/katbox/katbox/internal/model/api"
	"github.com/katbox/katbox/internal/model/terminal"
	"github.com/katbox/katbox/internal/model/volume"
)

// mostMatches bounds how many volumes are listed if one target matches several.
const mostMatches = 20

// choice is how one volume is chosen from those that a target matches.
type choice struct{ last bool }

func (c *choice) define(flags *pflag.FlagSet) {
	flags.BoolVar(&c.last, "last", false, "if several volumes match, take the one that was retained last")
}

// choose returns the only volume that a target matches, or the newest with --last. A volume that is
// named by its ID may be in any phase; the others are retained.
func (c choice) choose(ctx context.Context, s *session, t target) (api.Volume, error) {
	if t.id != "" {
		return s.byID(ctx, t.id)
	}
	m := verbs.Matches[api.Volume]{Most: mostMatches, Last: c.last}
	err := s.eachVolume(ctx, api.Query{Namespace: t.namespace, Pod: t.pod}, func(v api.Volume) error {
		if (t.volume == "" || t.volume == v.Volume) && m.Add(v, v.Volume == volume.LogsName && t.volume == "") {
			return verbs.ErrEnough
		}
		return nil
	})
	found, more := m.Found()
	switch {
	case err != nil:
		return api.Volume{}, err
	case len(found) == 0:
		return api.Volume{}, s.nothing(ctx, t)
	case len(found) == 1:
		return found[0], nil
	}
	listMatches(s, found)
	count := fmt.Sprint(len(found))
	if more {
		count = "more than " + count
	}
	return api.Volume{}, fmt.Errorf("%s retained volumes match %s: give one of these IDs, or --last for the newest", count, t)
}

// retained chooses a whole volume that is retained. done is what is done with it: "deleted".
func (c choice) retained(ctx context.Context, s *session, text, done string) (api.Volume, error) {
	t, err := parseTarget(text)
	switch {
	case err != nil:
		return api.Volume{}, err
	case t.hasPath:
		return api.Volume{}, verbs.WrongUsage("%s is a path: whole volumes are %s", verbs.Quoted(text), done)
	}
	v, err := c.choose(ctx, s, t)
	if err == nil && v.Phase != volume.Retained.String() {
		err = fmt.Errorf("%s is %s: a pod uses it, and only retained volumes are %s", describe(v), v.Phase, done)
	}
	return v, err
}

// listMatches shows volumes that one target matches, with their IDs. It writes to stderr, since
// stdout is for the file that the user asked for.
func listMatches(s *session, found []api.Volume) {
	table := newVolumeTable(s, s.Stderr, true)
	for _, v := range found {
		table.row(v)
	}
	table.Flush()
}

// nothing says why no volume matches a target.
func (s *session) nothing(ctx context.Context, t target) error {
	const running = "if the pod is still running, read its files with kubectl exec; " +
		"another node's volumes are listed by its own daemon"
	if t.volume != "" {
		other := false
		err := s.eachVolume(ctx, api.Query{Namespace: t.namespace, Pod: t.pod, Limit: 1}, func(api.Volume) error {
			other = true
			return verbs.ErrEnough
		})
		if err == nil && other {
			return verbs.NoVolume("pod %s/%s has no retained volume %s, but others: see katbox ls %s/%s",
				t.namespace, t.pod, t.volume, t.namespace, t.pod)
		}
	}
	return verbs.NoVolume("no retained volume on this node matches %s: it expired, or there was none; %s", t, running)
}

func (s *session) byID(ctx context.Context, id string) (api.Volume, error) {
	v, err := s.client.Volume(ctx, id)
	if verbs.HasCode(err, http.StatusNotFound) {
		hint := ""
		if !volume.ID(id).FromKubelet() {
			hint = "; to name a pod, give NAMESPACE/POD"
		}
		return v, verbs.NoVolume("there is no volume with the ID %s on this node: it expired, or it is on another node%s", id, hint)
	}
	return v, s.explain(err)
}

// eachVolume calls f with each retained volume that a query selects, the newest first, page by page,
// until f returns an error. verbs.ErrEnough is none for the caller.
func (s *session) eachVolume(ctx context.Context, q api.Query, f func(api.Volume) error) error {
	return s.eachPage(ctx, q, func(page []api.Volume) error {
		for _, v := range page {
			if err := f(v); err != nil {
				return err
			}
		}
		return nil
	})
}

// eachPage calls f with each page of a list of volumes.
func (s *session) eachPage(ctx context.Context, q api.Query, f func([]api.Volume) error) error {
	for {
		page, err := s.client.List(ctx, q)
		if err != nil {
			return s.explain(err)
		}
		if err := f(page.Items); err != nil {
			if errors.Is(err, verbs.ErrEnough) {
				return nil
			}
			return err
		}
		if page.Continue == "" {
			return nil
		}
		if page.Continue == q.Continue {
			return errors.New("the daemon's list does not come to its end")
		}
		q.Continue = page.Continue
	}
}

// chosenPath returns the volume and the path of the arguments of a verb that reads one file.
func (c choice) chosenPath(ctx context.Context, s *session, text string) (api.Volume, string, error) {
	t, err := parseTarget(text)
	if err != nil {
		return api.Volume{}, "", err
	}
	if !t.hasPath {
		return api.Volume{}, "", verbs.WrongUsage("%s names no file: add a colon and the path, as in %s:out/log.txt", verbs.Quoted(text), t)
	}
	v, err := c.choose(ctx, s, t)
	return v, t.path, err
}

// volumeTable lists volumes.
type volumeTable struct {
	*terminal.Table
	s    *session
	wide bool
}

func newVolumeTable(s *session, w io.Writer, wide bool) volumeTable {
	header := []string{"NAMESPACE", "POD", "VOLUME", "SIZE", "RETAINED", "EXPIRES"}
	if wide {
		header = append(header, "OUTCOME", "ID")
	}
	return volumeTable{terminal.NewTable(w, header...), s, wide}
}

func (t volumeTable) row(v api.Volume) {
	now := t.s.Now()
	size := terminal.Unknown
	if v.Bytes != nil {
		size = terminal.Size(*v.Bytes)
	}
	cells := []string{
		verbs.Known(v.Namespace), verbs.Known(podOf(v)), verbs.Known(v.Volume), size,
		terminal.Ago(now, at(v.RetainedAt)), terminal.In(now, at(v.ExpiresAt)) + verbs.HoldNote(holdKind(v)),
	}
	if t.wide {
		cells = append(cells, verbs.Known(v.Outcome), v.ID)
	}
	t.Row(cells...)
}

// podOf is the pod that a volume is of. A claim's volume has its claim instead, and is named by its ID.
func podOf(v api.Volume) string {
	if v.Claim != "" {
		return "pvc/" + v.Claim
	}
	return v.Pod
}

// holdKind is what a person has decided about a volume; empty if there is no decision.
func holdKind(v api.Volume) string {
	if v.Hold == nil {
		return ""
	}
	return v.Hold.Kind
}

// at returns the time that t points to, or the zero time.
func at(t *time.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return *t
}
