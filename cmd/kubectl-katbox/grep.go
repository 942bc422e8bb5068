package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/katbox/katbox/internal/cli/verbs"
	"github.com/katbox/katbox/internal/model/duration"
	"github.com/katbox/katbox/internal/model/resource"
	"github.com/katbox/katbox/internal/plugin/cluster"
)

// grepNotes say what the help of grep has to say beside its flags.
const grepNotes = `PATTERN is a regular expression of RE2 (github.com/google/re2/wiki/Syntax). Without a TARGET all volumes of the namespace
are searched, with -A those of all, and what containers printed. Files that are no text are not searched.
The exit code is that of grep: 0 if a line was found, 1 if none was, 2 if something went wrong, or if none was found and
not all could be searched.`

func grepVerb(conn *connection) *cobra.Command {
	var o verbs.GrepOptions
	selector, archived := "", false
	verb := &cobra.Command{
		Use:   "grep PATTERN [TARGET]",
		Short: "finds the lines that match a pattern, in files and logs",
		Long:  grepNotes,
		Args:  verbs.Arguments(1, 2),
		ValidArgsFunction: func(verb *cobra.Command, before []string, word string) ([]cobra.Completion, cobra.ShellCompDirective) {
			if len(before) == 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return conn.targets(volumesAlone, 2)(verb, before, word)
		},
		Example: `  kubectl katbox grep 'CUDA error' --since 12h           in all that the namespace's pods left in the last twelve hours
  kubectl katbox grep -g 'CUDA error' job/nightly        each different line once, and how many volumes have it
  kubectl katbox grep -il oom --files '*.log' -A         the files of all namespaces in which oom is found, in any case
  kubectl katbox grep --archived OOM --since 2d          also in what the archive has of nodes that are gone
  kubectl katbox grep -C 3 Traceback nightly-x7k2p       of one pod, with three lines before and behind`,
		RunE: inCluster(conn, func(ctx context.Context, s *session, args []string) error {
			t := target{}
			if len(args) > 1 {
				var err error
				if t, err = wholeTarget(args[1], "searched: see --files"); err != nil {
					return err
				}
			}
			if _, err := labels.Parse(selector); err != nil {
				return verbs.WrongUsage("--selector %s cannot be read: %s", verbs.Quoted(selector), err)
			}
			what, since, err := o.Query(args[0], s.Now())
			if err != nil {
				return err
			}
			q, name := t.query(s.namespace, selector), ""
			if t.volume != "" && s.namespace != "" && selector == "" {
				// Who may read a volume need not be one who may read them all.
				q, name = cluster.Query{Namespace: s.namespace}, t.volume
			}
			found, err := s.client.Grep(ctx, q, name, cluster.GrepOptions{Since: since, Archived: archived}, what)
			if err != nil {
				return verbs.GrepFailed(s.client.Explain(ctx, cluster.ID(s.namespace, name), err))
			}
			scope := verbs.GrepScope{Nothing: func() string { return s.noneToSearch(ctx, t, selector, since) }}
			if t != (target{}) {
				scope.Of = " of " + t.String()
			}
			return verbs.Grep(ctx, s.Session, &o, scope, found, s.grepVolume)
		}),
	}
	o.Define(verb.Flags())
	verb.Flags().StringVar(&selector, "selector", "", "only volumes with these labels")
	verb.Flags().BoolVar(&archived, "archived", false, "also volumes that are in the archive alone, since no node has them any more")
	completeFlag(verb, "output", oneOf(verbs.OutputJSON))
	return verb
}

// noneToSearch says, as list does, that there is nothing to search, and when and why the last one went that would have been.
func (s *session) noneToSearch(ctx context.Context, t target, selector string, after time.Time) string {
	l := &listing{listOptions: &listOptions{selector: selector}, s: s, q: t.query(s.namespace, selector), after: after, found: t}
	if !after.IsZero() {
		l.since = duration.Format(s.Now().Sub(after).Round(time.Second))
	}
	text := "no retained volumes" + l.asked()
	if t.job == "" && t.pod != "" && s.matchesAny(ctx, target{job: t.pod}.query(s.namespace, "")) {
		return text + fmt.Sprintf("; there are some of the Job: give %s", target{job: t.pod})
	}
	if gone := s.gone(ctx, t, selector, ""); gone != "" {
		return text + "; " + strings.TrimSpace(gone)
	}
	return text
}

// grepVolume describes a volume in which something was found. Its name is a target, in its namespace.
func (s *session) grepVolume(v *resource.RetainedVolume) verbs.GrepVolume {
	name := v.Name
	if s.namespace == "" {
		name = v.Namespace + "/" + name
	}
	return verbs.GrepVolume{
		Name: name, Namespace: v.Namespace, Pod: v.Spec.PodName, Volume: v.Spec.VolumeName, Node: v.Spec.NodeName,
		Retained: at(v.Status.RetainedAt),
	}
}
