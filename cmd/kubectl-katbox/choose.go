package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/pflag"

	"github.com/katbox/katbox/internal/cli/verbs"
	"github.com/katbox/katbox/internal/model/api"
	"github.com/katbox/katbox/internal/model/resource"
	"github.com/katbox/katbox/internal/model/terminal"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/plugin/cluster"
)

// mostMatches bounds how many volumes are listed if one target matches several.
const mostMatches = 20

// choice is how volumes are chosen from those that a target matches.
type choice struct {
	last             bool
	volume, selector string
	// certain refuses the only volume that matches, or the newest, if nodes did not answer: one of theirs may
	// be meant. The name of a volume is certain always.
	certain bool
}

// define adds the flags. ls has -l for another thing.
func (c *choice) define(flags *pflag.FlagSet) {
	short := "l"
	if flags.ShorthandLookup(short) != nil {
		short = ""
	}
	flags.BoolVar(&c.last, "last", false, "if several volumes match, take the one that was retained last")
	flags.StringVar(&c.volume, "volume", "", "only volumes with this name in the pod")
	flags.StringVarP(&c.selector, "selector", short, "", "only volumes with these labels")
}

// one returns the only volume that a target matches, or the newest with --last.
func (c *choice) one(ctx context.Context, s *session, t target) (resource.RetainedVolume, error) {
	found, more, incomplete, err := c.matches(ctx, s, t, mostMatches)
	switch {
	case err != nil:
		return resource.RetainedVolume{}, err
	case len(found) == 0:
		return resource.RetainedVolume{}, c.nothing(ctx, s, t, incomplete)
	case len(found) == 1 && c.certain && incomplete && t.volume == "":
		return resource.RetainedVolume{}, fmt.Errorf("nodes did not answer, and what they have may match %s too: "+
			"give the name %s if you mean this one, or try again later", t, found[0].Name)
	case len(found) == 1:
		return found[0], nil
	}
	s.listMatches(s.Stderr, found)
	count := fmt.Sprint(len(found))
	if more {
		count = "more than " + count
	}
	return resource.RetainedVolume{}, fmt.Errorf("%s retained volumes match %s: give one of these names, or --last for the newest", count, t)
}

// matches returns the first volumes that a target matches, or the newest with --last, and whether there are more than most.
func (c *choice) matches(ctx context.Context, s *session, t target, most int) (
	found []resource.RetainedVolume, more, incomplete bool, err error,
) {
	m := verbs.Matches[resource.RetainedVolume]{Most: most, Last: c.last}
	incomplete, err = c.each(ctx, s, t, func(v resource.RetainedVolume) error {
		if m.Add(v, v.Spec.VolumeName == volume.LogsName && c.volume == "" && t.volume == "") {
			return cluster.ErrEnough
		}
		return nil
	})
	found, more = m.Found()
	return found, more, incomplete, err
}

// each calls f with each volume that a target matches, the newest first, page by page, until f returns an
// error. cluster.ErrEnough is none for the caller. incomplete says that nodes did not answer, so that there
// may be more.
func (c *choice) each(ctx context.Context, s *session, t target, f func(resource.RetainedVolume) error) (incomplete bool, err error) {
	if t.volume != "" && s.namespace != "" && c.volume == "" && c.selector == "" {
		// Who may get a volume need not be one who may list them.
		v, err := s.client.Get(ctx, s.namespace, t.volume)
		if err != nil {
			return false, s.client.Explain(ctx, cluster.ID(s.namespace, t.volume), err)
		}
		if err := f(v); !errors.Is(err, cluster.ErrEnough) {
			return false, err
		}
		return false, nil
	}
	return s.eachPage(ctx, t.query(s.namespace, c.selector), func(page cluster.Page) error {
		for _, v := range page.Items {
			if c.volume != "" && c.volume != v.Spec.VolumeName {
				continue
			}
			if err := f(v); err != nil {
				return err
			}
		}
		return nil
	})
}

// eachPage calls f with each page of a list, and shows the warnings of each before.
func (s *session) eachPage(ctx context.Context, q cluster.Query, f func(cluster.Page) error) (incomplete bool, err error) {
	failed := error(nil)
	err = s.client.Pages(ctx, q, func(page cluster.Page) error {
		incomplete = incomplete || page.Incomplete()
		s.warnOf(page)
		failed = f(page)
		return failed
	})
	if err != nil && failed == nil {
		err = s.client.Explain(ctx, "", err)
	}
	return incomplete, err
}

// warnOf shows the warnings of a page. A proxy may have dropped those of the gateway.
func (s *session) warnOf(page cluster.Page) {
	s.warn(page.Warnings...)
	if f := page.Fleet; page.Incomplete() && len(page.Warnings) == 0 {
		s.warn(notAnswered(f) + " did not answer; what they have is not in this list")
	}
}

// notAnswered says who did not answer.
func notAnswered(f *resource.Fleet) string {
	var names []string
	for _, m := range f.Missing {
		names = append(names, m.Node)
	}
	who, _ := api.Away(names, f.MissingMore, f.Nodes)
	return who
}

// listMatches shows volumes that one target matches, with their names.
func (s *session) listMatches(w io.Writer, found []resource.RetainedVolume) {
	table := newVolumeTable(w, s, true)
	for i := range found {
		table.row(&found[i])
	}
	_ = table.Flush() // an error says what to do all the same
}

// nothing says why no volume matches a target.
func (c *choice) nothing(ctx context.Context, s *session, t target, incomplete bool) error {
	where := "in any namespace"
	if s.namespace != "" {
		where = "in namespace " + s.namespace
	}
	if incomplete {
		return fmt.Errorf("no retained volume %s matches %s, but nodes did not answer, and it may be on one of them: try again later", where, t)
	}
	if c.volume != "" || c.selector != "" {
		if s.matchesAny(ctx, t.query(s.namespace, "")) {
			return verbs.NoVolume("%s has retained volumes %s, but none that --volume and --selector choose: see %s list %s", t, where, s.Program, t)
		}
	}
	if job := (target{job: t.pod}); t.pod != "" && s.matchesAny(ctx, job.query(s.namespace, "")) {
		return verbs.NoVolume("no retained volume %s is of a pod %s, but there are some of the Job: give %s", where, t.pod, job)
	}
	if gone := s.gone(ctx, t, c.selector, c.volume); gone != "" {
		return verbs.NoVolume("no retained volume %s matches %s any more: %s", where, t, gone)
	}
	if t.owner != "" {
		return verbs.NoVolume("no retained volume %s is of a pod that %s made: owners are named as the column OWNER of %s list has them, and a "+
			"namespace is given with -n", where, t, s.Program)
	}
	return verbs.NoVolume("no retained volume %s matches %s: it expired, there was none, or its pod ended in the last seconds; see %s list. "+
		"If the pod still runs, read its files with kubectl exec", where, t, s.Program)
}

// gone says when and why the last of the volumes went that a target means, of any name or of one; empty if no node remembers it.
func (s *session) gone(ctx context.Context, t target, selector, name string) (text string) {
	_ = s.client.Pages(ctx, ofGone(t.query(s.namespace, selector)), func(page cluster.Page) error {
		for _, v := range page.Items {
			if g := v.Status.Gone; g != nil && (name == "" || name == v.Spec.VolumeName) {
				text = fmt.Sprintf("the last one went %s, and was kept for %s of %s (%s); see %s list --gone %s", terminal.Ago(s.Now(), g.At.Time),
					g.Kept, g.Promised, verbs.WhyGone(s.Now(), g.Reason, g.By, g.Why, time.Time{}), s.Program, t)
				return cluster.ErrEnough
			}
		}
		return nil
	})
	return text
}

// matchesAny reports whether a query selects a volume, as far as that can be found out.
func (s *session) matchesAny(ctx context.Context, q cluster.Query) bool {
	q.Limit = 1
	any := false
	err := s.client.Pages(ctx, q, func(page cluster.Page) error {
		if any = len(page.Items) > 0; any {
			return cluster.ErrEnough
		}
		return nil
	})
	return err == nil && any
}

// files returns a volume as the verbs for files take it.
func (s *session) files(v resource.RetainedVolume) verbs.Volume {
	files := verbs.Volume{Reader: s.client, ID: cluster.ID(v.Namespace, v.Name), Target: v.Name, What: describe(v)}
	if v.Status.Bytes != nil {
		files.Bytes = *v.Status.Bytes
	}
	return files
}

// describe returns a volume for messages: "volume scratch of pod ci/nightly-x7k2q".
func describe(v resource.RetainedVolume) string {
	if v.Spec.ClaimName != "" {
		return fmt.Sprintf("volume %s of claim %s/%s", v.Name, v.Namespace, v.Spec.ClaimName)
	}
	if v.Spec.PodName == "" || v.Spec.VolumeName == "" {
		return "volume " + v.Name
	}
	return fmt.Sprintf("volume %s of pod %s/%s", v.Spec.VolumeName, v.Namespace, v.Spec.PodName)
}

// chosenPath returns the volume and the path of the argument of a verb that reads one file.
func (c *choice) chosenPath(ctx context.Context, s *session, text string) (verbs.Volume, string, error) {
	t, err := parseTarget(text)
	if err != nil {
		return verbs.Volume{}, "", err
	}
	if !t.hasPath {
		return verbs.Volume{}, "", verbs.WrongUsage("%s names no file: add a colon and the path, as in %s:out/log.txt", verbs.Quoted(text), t)
	}
	v, err := c.one(ctx, s, t)
	return s.files(v), t.path, err
}
