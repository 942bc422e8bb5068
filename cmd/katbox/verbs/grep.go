package verbs

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/katbox/katbox/internal/cli/verbs"
	"github.com/katbox/katbox/internal/model/api"
)

func grepVerb() *cobra.Command {
	var o verbs.GrepOptions
	verb := &cobra.Command{
		Use:   "grep PATTERN [NAMESPACE | TARGET]",
		Short: "finds the lines that match a pattern, in files and logs",
		Args:  verbs.Arguments(1, 2),
		Example: `  katbox grep 'CUDA error' --since 12h     in all that this node keeps of the last twelve hours
  katbox grep -g 'CUDA error' etl          each different line of a namespace once, and how many volumes have it
  katbox grep -C 3 Traceback etl/nightly-x7k2q`,
		RunE: onNode(func(ctx context.Context, s *session, args []string) error {
			q := api.GrepQuery{}
			what, since, err := o.Query(args[0], s.Now())
			if err != nil {
				return err
			}
			q.Grep, q.Since = what, since
			if len(args) > 1 {
				if err := s.selectFor(ctx, args[1], &q); err != nil {
					return verbs.GrepFailed(err)
				}
			}
			found, err := s.client.Grep(ctx, q)
			if err != nil {
				return verbs.GrepFailed(s.explain(err))
			}
			scope := verbs.GrepScope{Nothing: func() string {
				return "no retained volumes on this node match; " + s.Program + " ls --gone lists those that are gone"
			}}
			return verbs.Grep(ctx, s.Session, &o, scope, found, func(v *api.Volume) verbs.GrepVolume {
				return verbs.GrepVolume{
					Name: nameOf(*v), Namespace: v.Namespace, Pod: v.Pod, Volume: v.Volume, Node: v.Node, Retained: at(v.RetainedAt),
				}
			})
		}),
	}
	o.Define(verb.Flags())
	return verb
}

// selectFor selects the volumes that a target of grep means.
func (s *session) selectFor(ctx context.Context, text string, q *api.GrepQuery) error {
	t, err := parseSelector(text)
	switch {
	case err != nil:
		return err
	case t.hasPath:
		return verbs.WrongUsage("%s is a path: whole volumes are searched; see --files", verbs.Quoted(text))
	case t.id == "" && t.volume == "":
		q.Namespace, q.Pod = t.namespace, t.pod
		return nil
	}
	v, err := choice{}.choose(ctx, s, t)
	q.ID = v.ID
	return err
}
