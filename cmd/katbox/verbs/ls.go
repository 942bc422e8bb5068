package verbs

import (
	"cmp"
	"context"
	"fmt"
	"hash/maphash"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/katbox/katbox/internal/cli/verbs"
	"github.com/katbox/katbox/internal/model/api"
	"github.com/katbox/katbox/internal/model/duration"
	"github.com/katbox/katbox/internal/model/terminal"
)

func lsVerb() *cobra.Command {
	o := &lsOptions{}
	verb := &cobra.Command{
		Use:   "ls [NAMESPACE | TARGET[:PATH]]",
		Short: "lists retained volumes, the newest first; with a colon, files",
		Args:  verbs.Arguments(0, 1),
		Example: `  katbox ls                      all retained volumes of this node
  katbox ls --gone etl           what is gone of a namespace: when and why
  katbox ls -n etl --since 6h    those of a namespace
  katbox ls etl/nightly-x7k2q:   the files at the top of a volume`,
		RunE: onNode(o.run),
	}
	o.defineFlags(verb.Flags())
	return verb
}

// lsOptions are the flags of ls.
type lsOptions struct {
	choice
	verbs.ListOptions
	namespace, pod, since string
	gone                  bool
	flags                 *pflag.FlagSet
}

func (o *lsOptions) defineFlags(flags *pflag.FlagSet) {
	o.flags = flags
	o.Hidden = true
	flags.StringVarP(&o.namespace, "namespace", "n", "", "volumes of this namespace only")
	flags.StringVar(&o.pod, "pod", "", "volumes of pods with this name only")
	flags.StringVar(&o.since, "since", "", "only volumes that were retained, or are gone, since then: 6h, 2d")
	flags.BoolVar(&o.gone, "gone", false, "volumes that are gone, the last one first: when, why, and how long they were kept")
	flags.IntVar(&o.Limit, "limit", 0, "list at most this many; 0 for all")
	flags.StringVarP(&o.Output, "output", "o", verbs.OutputTable, "wide (with IDs), json, or name (targets for other verbs)")
	flags.BoolVarP(&o.Long, "long", "l", false, "files: with mode, owner, size and time")
	flags.BoolVarP(&o.Recursive, "recursive", "R", false, "files: with all that is below")
	o.define(flags)
}

func (o *lsOptions) run(ctx context.Context, s *session, args []string) error {
	var t target
	if len(args) > 0 {
		var err error
		if t, err = parseSelector(args[0]); err != nil {
			return err
		}
	}
	if err := o.check(t); err != nil {
		return err
	}
	switch {
	case t.hasPath:
		return o.listFiles(ctx, s, t)
	case o.gone:
		return o.listGone(ctx, s, t)
	}
	return o.listVolumes(ctx, s, t)
}

// check refuses flags that do not go together.
func (o *lsOptions) check(t target) error {
	forVolumes, forFiles := []string{"namespace", "pod", "since", "gone"}, []string{"long", "recursive", "last"}
	wrong, where := forFiles, "files: add a colon to the target"
	if t.hasPath {
		wrong, where = forVolumes, "volumes, and the target is a path"
	}
	for _, name := range wrong {
		if o.flags.Changed(name) {
			return verbs.WrongUsage("--%s is for lists of %s", name, where)
		}
	}
	if err := o.Check(); err != nil {
		return err
	}
	switch {
	case o.gone && o.Output == verbs.OutputName:
		return verbs.WrongUsage("--output name is for volumes that are there: what is gone is no target of a verb")
	case t.namespace != "" && o.namespace != "" && t.namespace != o.namespace:
		return verbs.WrongUsage("the namespace is %s and --namespace %s: give one", t.namespace, verbs.Quoted(o.namespace))
	case t.pod != "" && o.pod != "" && t.pod != o.pod:
		return verbs.WrongUsage("the pod is %s and --pod %s: give one", t.pod, verbs.Quoted(o.pod))
	case t.id != "" && (o.namespace != "" || o.pod != "" || o.since != ""):
		return verbs.WrongUsage("an ID names one volume: give no --namespace, --pod or --since")
	}
	return nil
}

// listFiles lists the directory, or the one file, that a target names.
func (o *lsOptions) listFiles(ctx context.Context, s *session, t target) error {
	v, err := o.choose(ctx, s, t)
	if err != nil {
		return err
	}
	name := v.ID
	if t.id == "" && !o.last {
		name = nameOf(v)
	}
	return s.ListFiles(ctx, s.files(v, name), t.path, o.ListOptions)
}

// listVolumes lists the retained volumes that the target and the flags select.
func (o *lsOptions) listVolumes(ctx context.Context, s *session, t target) error {
	q, err := o.query(s, t)
	if err != nil {
		return err
	}
	list := volumeList{o: o, s: s, t: t, q: q}
	return list.write(ctx)
}

// query returns what the target and the flags select.
func (o *lsOptions) query(s *session, t target) (api.Query, error) {
	q := api.Query{Namespace: cmp.Or(t.namespace, o.namespace), Pod: cmp.Or(t.pod, o.pod)}
	if o.since != "" {
		d, err := duration.Parse(o.since)
		if err != nil || d < 0 {
			return q, verbs.WrongUsage("--since %s is not a duration; write it as 90m, 6h or 2d", verbs.Quoted(o.since))
		}
		q.Since = s.Now().Add(-d)
	}
	return q, nil
}

// volumeList writes a list of volumes page by page.
type volumeList struct {
	o *lsOptions
	s *session
	t target
	q api.Query
}

func (l volumeList) write(ctx context.Context) error {
	switch l.o.Output {
	case verbs.OutputJSON:
		items := verbs.NewItems[api.Volume](l.s.Stdout, `{"items":[`, "]}\n")
		if _, err := l.each(ctx, items.Write); err != nil {
			return err
		}
		return items.End()
	case verbs.OutputName:
		return l.writeNames(ctx)
	}
	var table volumeTable
	count, err := l.each(ctx, func(page []api.Volume) error {
		if table.Table == nil {
			table = newVolumeTable(l.s, l.s.Stdout, l.o.Output == verbs.OutputWide)
		}
		for _, v := range page {
			table.row(v)
		}
		return table.Flush()
	})
	if err == nil && count == 0 {
		fmt.Fprintf(l.s.Stderr, "no retained volumes%s\n", l.o.hintGone(ctx, l.s, l.t, l.q))
	}
	return err
}

// each calls f with each page of the list that is not empty. It returns how many volumes that were.
func (l volumeList) each(ctx context.Context, f func([]api.Volume) error) (count int, err error) {
	if l.t.id != "" {
		v, err := l.s.byID(ctx, l.t.id)
		if err != nil {
			return 0, err
		}
		return 1, f([]api.Volume{v})
	}
	err = l.s.eachPage(ctx, l.q, func(page []api.Volume) error {
		kept := page[:0]
		for _, v := range page {
			if l.t.volume == "" || l.t.volume == v.Volume {
				kept = append(kept, v)
			}
		}
		enough := l.o.Limit > 0 && count+len(kept) >= l.o.Limit
		if enough {
			kept = kept[:l.o.Limit-count]
		}
		count += len(kept)
		if len(kept) > 0 {
			if err := f(kept); err != nil {
				return err
			}
		}
		if enough {
			return verbs.ErrEnough
		}
		return nil
	})
	return count, err
}

// writeNames writes for each volume what other verbs take: its names, or its ID if the names fit
// more than one volume. Which do is known after the list was read once.
func (l volumeList) writeNames(ctx context.Context) error {
	seed := maphash.MakeSeed()
	times := map[uint64]int8{}
	if l.q.Since.IsZero() && l.o.Limit == 0 {
		if _, err := l.each(ctx, func(page []api.Volume) error {
			for _, v := range page {
				name := maphash.String(seed, nameOf(v))
				times[name] = min(times[name]+1, 2)
			}
			return nil
		}); err != nil {
			return err
		}
	}
	_, err := l.each(ctx, func(page []api.Volume) error {
		for _, v := range page {
			name := nameOf(v)
			// Volumes that the list leaves out may have the same names.
			if times[maphash.String(seed, name)] != 1 {
				name = v.ID
			}
			if _, err := fmt.Fprintln(l.s.Stdout, terminal.Clean(name)); err != nil {
				return err
			}
		}
		return nil
	})
	return err
}
