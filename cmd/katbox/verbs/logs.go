package verbs

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/katbox/katbox/internal/cli/verbs"
	"github.com/katbox/katbox/internal/model/api"
	"github.com/katbox/katbox/internal/model/volume"
)

func logsVerb() *cobra.Command {
	var o verbs.LogsOptions
	verb := &cobra.Command{
		Use:   "logs TARGET",
		Short: "writes what the containers of a pod printed that is gone",
		Args:  verbs.Arguments(1, 1),
		RunE: onNode(func(ctx context.Context, s *session, args []string) error {
			if err := o.Check(); err != nil {
				return err
			}
			t, err := parseTarget(args[0])
			if err != nil {
				return err
			}
			if t.hasPath {
				return verbs.WrongUsage("%s is a path: the logs of a pod are meant", verbs.Quoted(args[0]))
			}
			v, err := s.logsOf(ctx, t)
			if err != nil {
				return err
			}
			return s.Logs(ctx, s.files(v, v.ID), v.Pod, &o)
		}),
	}
	o.Define(verb.Flags())
	return verb
}

// logsOf returns the volume with the logs of the pod that a target means, or of the one of its name that ended last.
func (s *session) logsOf(ctx context.Context, t target) (last api.Volume, err error) {
	q, uid := api.Query{Namespace: t.namespace, Pod: t.pod}, ""
	if t.id != "" {
		v, err := s.byID(ctx, t.id)
		if err != nil || v.Volume == volume.LogsName {
			return v, err
		}
		q, uid = api.Query{Namespace: v.Namespace, Pod: v.Pod}, v.PodUID
	}
	pods := map[string]bool{}
	err = s.eachVolume(ctx, q, func(v api.Volume) error {
		if v.Volume != volume.LogsName || uid != "" && v.PodUID != uid {
			return nil
		}
		if len(pods) == 0 {
			last = v
		}
		if pods[v.PodUID] = true; len(pods) > mostMatches {
			return verbs.ErrEnough
		}
		return nil
	})
	switch {
	case err != nil:
		return last, err
	case len(pods) == 0:
		return last, verbs.NoVolume("no logs of %s are kept on this node: it keeps none (--logs=off) or had no room, the pod printed nothing, "+
			"or they have expired", t)
	case len(pods) > 1:
		fmt.Fprintf(s.Stderr, "Found several pods of this name, using %s, which ended last\n", last.PodUID)
	}
	return last, nil
}
