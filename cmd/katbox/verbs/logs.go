package verbs

import (
	"cmp"
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
			t, err := parsePod(args[0])
			if err != nil {
				return err
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

// parsePod reads the target of a verb that is about a pod, and not about its files.
func parsePod(text string) (target, error) {
	t, err := parseTarget(text)
	if err == nil && t.hasPath {
		err = verbs.WrongUsage("%s is a path: a pod is meant", verbs.Quoted(text))
	}
	return t, err
}

// logsOf returns the volume with the logs of the pod that a target means, or of the one of its name that ended last.
func (s *session) logsOf(ctx context.Context, t target) (api.Volume, error) {
	kept, err := s.ofLastPod(ctx, t, func(v *api.Volume) bool { return v.Volume == volume.LogsName })
	switch {
	case err != nil:
		return api.Volume{}, err
	case len(kept) == 0:
		return api.Volume{}, verbs.NoVolume("no logs of %s are kept on this node: it keeps none (--logs=off) or had no room, "+
			"the pod printed nothing, or they have expired", t)
	}
	return kept[0], nil
}

// ofLastPod returns the volumes that are meant of the pod that a target means, or of the one of its name that ended last.
// It says if there are others.
func (s *session) ofLastPod(ctx context.Context, t target, isMeant func(*api.Volume) bool) (kept []api.Volume, err error) {
	q := api.Query{Namespace: t.namespace, Pod: t.pod}
	if t.id != "" {
		v, err := s.byID(ctx, t.id)
		if err != nil {
			return nil, err
		}
		q = api.Query{Namespace: v.Namespace, Pod: v.Pod, PodUID: v.PodUID}
	}
	several := false
	err = s.eachVolume(ctx, q, func(v api.Volume) error {
		if !isMeant(&v) {
			return nil
		}
		q.PodUID = cmp.Or(q.PodUID, v.PodUID)
		if several = v.PodUID != q.PodUID; several {
			return verbs.ErrEnough
		}
		return nil
	})
	if err != nil || q.PodUID == "" {
		return nil, err
	}
	if several {
		fmt.Fprintf(s.Stderr, "Found several pods of this name, using %s, which ended last\n", q.PodUID)
	}
	err = s.eachVolume(ctx, q, func(v api.Volume) error {
		if isMeant(&v) {
			kept = append(kept, v)
		}
		return nil
	})
	return kept, err
}
