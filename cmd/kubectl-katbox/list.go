package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/katbox/katbox/internal/cli/verbs"
	"github.com/katbox/katbox/internal/lib/retry"
	"github.com/katbox/katbox/internal/model/api"
	"github.com/katbox/katbox/internal/model/duration"
	"github.com/katbox/katbox/internal/model/resource"
	"github.com/katbox/katbox/internal/plugin/cluster"
)

// The values of --output.
const (
	outputTable = ""
	outputWide  = "wide"
	outputJSON  = "json"
	outputYAML  = "yaml"
	outputName  = "name"
)

// pageSize is how many volumes a page has at most.
const pageSize = 500

// goneSize is how many volumes are listed that are gone, at most.
const goneSize = 5000

func listVerb(conn *connection) *cobra.Command {
	o := &listOptions{}
	verb := &cobra.Command{
		Use:               "list [TARGET]",
		Short:             "lists retained volumes, the newest first",
		Args:              verbs.Arguments(0, 1),
		SuggestFor:        []string{"get"},
		ValidArgsFunction: conn.targets(volumesAlone, 1),
		Example: `  kubectl katbox list                       those of the namespace
  kubectl katbox list -A --since 6h         those of all namespaces that were retained in the last six hours
  kubectl katbox list --job nightly-2900    those of a Job's pods
  kubectl katbox list -o name --pod web-0   names, for other verbs
  kubectl katbox list --gone --since 2d     what is gone: when, why, and how long it was kept
  kubectl katbox list --watch               the list, and then what changes, until Ctrl-C
  kubectl katbox list -A --strict           exit code 3 if nodes did not answer, so that volumes may be missing`,
		RunE: inCluster(conn, o.run),
	}
	o.define(verb.Flags())
	completeFlag(verb, "output", oneOf(outputWide, outputJSON, outputYAML, outputName))
	return verb
}

// listOptions are the flags of list.
type listOptions struct {
	job, pod, node, since, selector, volume, output string
	limit                                           int
	watch, strict, gone                             bool
}

func (o *listOptions) define(flags *pflag.FlagSet) {
	flags.StringVar(&o.job, "job", "", "only volumes of this Job's pods")
	flags.StringVar(&o.pod, "pod", "", "only volumes of pods with this name")
	flags.StringVar(&o.node, "node", "", "only volumes on this node")
	flags.StringVar(&o.since, "since", "", "only volumes that were retained, or are gone, since then: 90m, 6h, 2d")
	flags.StringVar(&o.volume, "volume", "", "only volumes with this name in the pod")
	flags.StringVarP(&o.selector, "selector", "l", "", "only volumes with these labels: batch.kubernetes.io/job-name, katbox.io/owner-kind")
	flags.StringVarP(&o.output, "output", "o", outputTable, "wide (with pod and node), json, yaml, or name")
	flags.IntVar(&o.limit, "limit", 0, "list at most this many; 0 for all")
	flags.BoolVarP(&o.watch, "watch", "w", false, "then show what is added, changed and gone, until Ctrl-C; asks every few seconds")
	flags.BoolVar(&o.gone, "gone", false, "volumes that are gone, the last one first: when, why, and how long they were kept")
	flags.BoolVar(&o.strict, "strict", false, "exit with code 3 if nodes did not answer")
}

// listing is a list that the user asks for.
type listing struct {
	*listOptions
	s *session
	q cluster.Query
	// after is the time since which the volumes were retained; zero for any.
	after time.Time
	// found says that the target names one volume, which has to be there.
	found target
}

func (o *listOptions) run(ctx context.Context, s *session, args []string) error {
	t := target{}
	if len(args) > 0 {
		var err error
		if t, err = parseTarget(args[0]); err != nil {
			return err
		}
	}
	if err := o.check(s, t); err != nil {
		return err
	}
	l := &listing{listOptions: o, s: s, q: t.query(s.namespace, o.selector), found: t}
	if o.since != "" {
		d, err := duration.Parse(o.since)
		if err != nil || d < 0 {
			return verbs.WrongUsage("--since %s is not a duration; write it as 90m, 6h or 2d", verbs.Quoted(o.since))
		}
		l.after = s.Now().Add(-d)
	}
	if o.job != "" {
		l.q.LabelSelector = and(labels.Set{resource.LabelJob: o.job}.String(), l.q.LabelSelector)
	}
	for _, field := range []struct{ name, value string }{{fieldPod, o.pod}, {fieldNode, o.node}} {
		if field.value != "" {
			l.q.FieldSelector = and(l.q.FieldSelector, equals(field.name, field.value))
		}
	}
	if o.gone {
		l.q.FieldSelector = and(l.q.FieldSelector, equals(fieldPhase, api.PhaseGone))
	}
	if o.watch {
		return l.follow(ctx, retry.Pause)
	}
	return l.once(ctx)
}

// check refuses what does not go together, and names that no object can have.
func (o *listOptions) check(s *session, t target) error {
	for _, flag := range []struct{ name, value string }{{"job", o.job}, {"pod", o.pod}, {"node", o.node}} {
		if flag.value != "" && !objectName(flag.value) {
			return verbs.WrongUsage("--%s %s is not the name of a %s", flag.name, verbs.Quoted(flag.value), flag.name)
		}
	}
	if _, err := labels.Parse(o.selector); err != nil {
		return verbs.WrongUsage("--selector %s cannot be read: %s", verbs.Quoted(o.selector), err)
	}
	switch {
	case t.hasPath:
		return verbs.WrongUsage("a path names a file, and this lists volumes: see %s ls --help", s.Program)
	case t.pod != "" && o.pod != "" && t.pod != o.pod:
		return verbs.WrongUsage("the pod is %s and --pod %s: give one", t.pod, o.pod)
	case t.job != "" && o.job != "" && t.job != o.job:
		return verbs.WrongUsage("the Job is %s and --job %s: give one", t.job, o.job)
	case o.limit < 0:
		return verbs.WrongUsage("--limit %d is negative", o.limit)
	case o.gone && o.watch:
		return verbs.WrongUsage("--watch shows what is there and --gone what is not: give one")
	case o.gone && o.output == outputName:
		return verbs.WrongUsage("--output name is for volumes that are there: what is gone is no target of a verb")
	case o.watch && o.limit > 0:
		return verbs.WrongUsage("--watch and --limit do not go together: a volume would seem gone when a newer one takes its place")
	case o.watch && o.strict:
		return verbs.WrongUsage("--watch and --strict do not go together: a watch waits for nodes that do not answer")
	case o.watch && (o.output == outputYAML || o.output == outputName):
		return verbs.WrongUsage("--watch shows a table, or events with -o json")
	}
	switch o.output {
	case outputTable, outputWide, outputJSON, outputYAML, outputName:
		return nil
	}
	return verbs.WrongUsage("--output %s is not wide, json, yaml or name", verbs.Quoted(o.output))
}

// errIncomplete: nodes did not answer.
var errIncomplete = errors.New("the list is not complete: nodes did not answer (--strict)")

// once lists the volumes.
func (l *listing) once(ctx context.Context) error {
	out := l.writer()
	count, incomplete, err := l.each(ctx, out.write)
	if err != nil {
		return err
	}
	if err := out.end(); err != nil {
		return err
	}
	switch {
	case count == 0 && l.gone:
		fmt.Fprintf(l.s.Stderr, "no volume is gone that the nodes remember%s\n", l.asked())
	case count == 0 && l.found.volume != "" && !incomplete:
		return verbs.NoVolume("there is no retained volume %s%s: it expired, was deleted, or is in another namespace", l.found, l.where())
	case count == 0:
		fmt.Fprintf(l.s.Stderr, "no retained volumes%s%s\n", l.asked(), l.hint(ctx))
	}
	if incomplete && l.strict {
		return verbs.WithCode(verbs.CodeIncomplete, errIncomplete)
	}
	return nil
}

// where says which namespace was looked at.
func (l *listing) where() string {
	if l.s.namespace == "" {
		return ""
	}
	return " in namespace " + l.s.namespace
}

// asked says which volumes were looked for.
func (l *listing) asked() string {
	var text strings.Builder
	for _, part := range []struct{ before, value string }{
		{" of job/", cmp.Or(l.found.job, l.job)}, {" of pod/", cmp.Or(l.found.pod, l.pod)}, {" of ", l.found.owner}, {" named ", l.volume},
		{" on node ", l.node}, {" with the labels ", l.selector}, {" of the last ", l.since},
	} {
		if part.value != "" {
			text.WriteString(part.before + part.value)
		}
	}
	return text.String() + l.where()
}

// hint names the Job, if that is what the user may have meant by a pod, or says that some went early.
func (l *listing) hint(ctx context.Context) string {
	job := target{job: l.found.pod}
	switch {
	case job.job != "" && l.s.matchesAny(ctx, job.query(l.s.namespace, "")):
		return fmt.Sprintf("; there are some of the Job: give %s", job)
	case l.wentEarly(ctx):
		return verbs.HintGone
	}
	return ""
}

// wentEarly reports whether some of what the list selects went early lately. Where that cannot be told it is false.
func (l *listing) wentEarly(ctx context.Context) (early bool) {
	gone := *l
	if lately := l.s.Now().Add(-verbs.Lately); gone.after.Before(lately) {
		gone.after = lately
	}
	_ = l.s.client.Pages(ctx, ofGone(l.q), func(page cluster.Page) error {
		kept, _ := gone.keep(page.Items)
		early = slices.ContainsFunc(kept, func(v resource.RetainedVolume) bool { return v.Status.Gone != nil && v.Status.Gone.Early })
		return nil
	})
	return early
}

// ofGone returns the query for what is gone of what another one selects. That has one page.
func ofGone(q cluster.Query) cluster.Query {
	q.FieldSelector, q.Limit = and(q.FieldSelector, equals(fieldPhase, api.PhaseGone)), goneSize
	return q
}

// each calls f with each page of the list that is not empty. It returns how many volumes these had, and
// whether some may be missing.
func (l *listing) each(ctx context.Context, f func([]resource.RetainedVolume) error) (count int, incomplete bool, err error) {
	q := l.q
	q.Limit = pageSize
	if l.limit > 0 && l.volume == "" {
		q.Limit = min(l.limit, pageSize)
	}
	if l.gone {
		q.Limit = goneSize // what is gone has one page
	}
	incomplete, err = l.s.eachPage(ctx, q, func(page cluster.Page) error {
		kept, enough := l.keep(page.Items)
		if l.limit > 0 && count+len(kept) >= l.limit {
			kept, enough = kept[:l.limit-count], true
		}
		count += len(kept)
		if len(kept) > 0 {
			if err := f(kept); err != nil {
				return err
			}
		}
		if enough {
			return cluster.ErrEnough
		}
		return nil
	})
	return count, incomplete, err
}

// keep returns what the list shows of a page, and whether older volumes cannot be shown.
func (l *listing) keep(page []resource.RetainedVolume) (kept []resource.RetainedVolume, enough bool) {
	kept = page[:0]
	for _, v := range page {
		t := at(v.Status.RetainedAt)
		if g := v.Status.Gone; g != nil {
			t = g.At.Time
		}
		if !l.after.IsZero() && t.Before(l.after) {
			return kept, true
		}
		if l.volume == "" || l.volume == v.Spec.VolumeName {
			kept = append(kept, v)
		}
	}
	return kept, false
}
