package verbs

import (
	"cmp"
	"context"

	"github.com/spf13/cobra"

	"github.com/katbox/katbox/internal/cli/verbs"
	"github.com/katbox/katbox/internal/model/api"
)

func describeVerb() *cobra.Command {
	return &cobra.Command{
		Use:   "describe TARGET",
		Short: "says how a pod ended that is gone, and what it printed last",
		Args:  verbs.Arguments(1, 1),
		RunE: onNode(func(ctx context.Context, s *session, args []string) error {
			t, err := parsePod(args[0])
			if err != nil {
				return err
			}
			kept, err := s.ofLastPod(ctx, t, func(v *api.Volume) bool { return v.PodUID != "" })
			switch {
			case err != nil:
				return err
			case len(kept) == 0:
				return s.nothing(ctx, target{id: t.id, namespace: t.namespace, pod: t.pod})
			}
			return s.Describe(ctx, s.pod(kept))
		}),
	}
}

// pod returns the pod whose volumes these are, for a description.
func (s *session) pod(kept []api.Volume) verbs.Pod {
	first := kept[0]
	p := verbs.Pod{Name: first.Pod, Namespace: first.Namespace, UID: first.PodUID, Node: first.Node}
	for _, v := range kept {
		p.Outcome = cmp.Or(p.Outcome, v.Outcome)
		p.Kept = append(p.Kept, verbs.Kept{Volume: s.files(v, v.ID), Name: v.Volume, Size: v.Bytes, Expires: at(v.ExpiresAt)})
	}
	return p
}
