package main

import (
	"context"
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"github.com/katbox/katbox/internal/cli/verbs"
	"github.com/katbox/katbox/internal/model/resource"
)

func cpVerb(conn *connection) *cobra.Command {
	var c choice
	var o verbs.CopyOptions
	verb := &cobra.Command{
		Use:   "cp TARGET[:PATH] DEST",
		Short: "copies a file, a directory, a volume, or all volumes of a Job",
		Args:  verbs.Arguments(2, 2),
		ValidArgsFunction: func(verb *cobra.Command, before []string, word string) ([]cobra.Completion, cobra.ShellCompDirective) {
			if len(before) > 0 {
				return nil, cobra.ShellCompDirectiveDefault
			}
			return conn.targets(pathsToo, 1)(verb, before, word)
		},
		Long: `The contents of a directory go into the directory DEST, which is made if it does not exist; those of a
Job's volumes into DEST/POD/VOLUME. DEST - is standard output, for the bytes of a file or a tar of a directory.
If the connection is cut, the copy goes on by itself. If it is cut for long, what has come of a file or of a new
directory stays as DEST.partial, and the same command goes on from there.`,
		Example: `  kubectl katbox cp nightly-29000000-x7k2p:out/log.txt .           a file
  kubectl katbox cp nightly-29000000-x7k2p ./files                 all files of a pod's volume
  kubectl katbox cp job/nightly-29000000 ./nightly                 those of all pods of a Job
  kubectl katbox cp job/nightly-29000000:out ./nightly --last      a directory of the pod that ended last
  kubectl katbox cp nightly-29000000-x7k2p files.tar --tar         a tar archive; with - it goes to standard output
  kubectl katbox cp nightly-29000000-x7k2p ./files --exclude '*.tmp' --symlinks=keep`,
		RunE: inCluster(conn, func(ctx context.Context, s *session, args []string) error {
			t, err := parseTarget(args[0])
			if err != nil {
				return err
			}
			if err := o.Check(args[1]); err != nil {
				return err
			}
			if (t.job != "" || t.owner != "") && !c.last && args[1] != verbs.ToStdout {
				return s.copyAll(ctx, &c, t, args[1], &o)
			}
			v, err := c.one(ctx, s, t)
			if err != nil {
				return err
			}
			return s.Copy(ctx, s.files(v), t.path, args[1], &o)
		}),
	}
	o.Define(verb.Flags())
	c.define(verb.Flags())
	return verb
}

// copyAll copies all volumes of the pods of a Job, or of another owner.
func (s *session) copyAll(ctx context.Context, c *choice, t target, dest string, o *verbs.CopyOptions) error {
	var parts []verbs.Part
	incomplete, err := c.each(ctx, s, t, func(v resource.RetainedVolume) error {
		part := verbs.Part{Volume: s.files(v), Pod: v.Spec.PodName, Name: v.Spec.VolumeName}
		if part.Name == "" {
			part.Name = v.Name
		}
		parts = append(parts, part)
		return nil
	})
	switch {
	case err != nil:
		return err
	case len(parts) == 0:
		return c.nothing(ctx, s, t, incomplete)
	}
	distinguish(parts)
	err = s.CopyAll(ctx, parts, t.path, dest, o)
	if err == nil && incomplete {
		err = errors.New("nodes did not answer, so that volumes may be missing in the copy: run the same command again later")
	}
	return err
}

// distinguish gives volumes different directories. In one pod each has a name of its own, but two pods
// may have the same name.
func distinguish(parts []verbs.Part) {
	type place struct{ pod, name string }
	times := map[place]int{}
	for _, p := range parts {
		times[place{p.Pod, p.Name}]++
	}
	for i := range parts {
		p := &parts[i]
		if times[place{p.Pod, p.Name}] > 1 {
			// The names of retained volumes end with what tells them apart.
			p.Name += "." + p.Volume.Target[strings.LastIndexByte(p.Volume.Target, '.')+1:]
		}
	}
}
