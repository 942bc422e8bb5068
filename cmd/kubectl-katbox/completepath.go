package main

import (
	"context"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/katbox/katbox/internal/cli/verbs"
	"github.com/katbox/katbox/internal/lib/paths"
	"github.com/katbox/katbox/internal/model/api"
	"github.com/katbox/katbox/internal/model/resource"
	"github.com/katbox/katbox/internal/plugin/cluster"
)

// entriesAtOnce is how many entries of a directory one request of a completion lists.
const entriesAtOnce = 10_000

// paths offers what is in the directory that the word names so far, of the newest volume that the target
// matches: which one is meant, the command itself asks. contents says that the verb reads what it is given.
func (c *connection) paths(verb *cobra.Command, word string, contents bool) ([]cobra.Completion, cobra.ShellCompDirective) {
	const nothing = cobra.ShellCompDirectiveNoFileComp
	head, path, _ := strings.Cut(word, ":")
	t, err := parseTarget(head)
	if err != nil {
		return nil, nothing
	}
	// Behind one more colon a path is percent-encoded. So are offered there the names that add refuses.
	encoded := strings.HasPrefix(path, ":")
	above := path[:max(strings.LastIndexByte(path, '/')+1, len(path)-len(strings.TrimPrefix(path, ":")))]
	ref, err := verbs.ParsePath(above)
	if err != nil {
		return nil, nothing
	}
	client, namespace, err := c.open()
	if err != nil {
		return nil, nothing
	}
	s := &session{Session: &verbs.Session{Stderr: io.Discard}, client: client, namespace: namespace, warned: map[string]bool{}}
	v, found := newest(verb, s, t)
	if !found {
		return nil, nothing
	}
	o := offersFor(word)
	_ = eachEntry(verb.Context(), client, v, ref, func(entry api.Entry) bool {
		path, err := paths.ParseRef(entry.Ref)
		name, part := path.Base(), path.Base()
		if encoded {
			part = entry.Ref[strings.LastIndexByte(entry.Ref, '/')+1:]
		}
		typed := word[len(head)+1+len(above):]
		switch {
		case err != nil || contents && entry.Type != api.Directory && entry.Type != api.File:
			return true
		case strings.HasPrefix(name, ".") && !strings.HasPrefix(typed, "."):
			return true // as ls
		case above == "" && strings.HasPrefix(part, ":"):
			return true // only an encoded path can begin so
		case entry.Type == api.Directory:
			part += "/"
		}
		return o.add(head+":"+above+part, "")
	}) // what came until an error is offered
	if len(o.candidates) == 1 && !strings.HasSuffix(o.candidates[0], "/") {
		return o.candidates, cobra.ShellCompDirectiveNoFileComp
	}
	return o.candidates, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
}

// newest returns the volume that a target matches, or the newest of them.
func newest(verb *cobra.Command, s *session, t target) (v resource.RetainedVolume, found bool) {
	var chosen choice
	chosen.volume, _ = verb.Flags().GetString("volume") // a verb that has no such flag has all volumes
	chosen.selector, _ = verb.Flags().GetString("selector")
	_, err := chosen.each(verb.Context(), s, t, func(item resource.RetainedVolume) error {
		v, found = item, true
		return cluster.ErrEnough
	})
	return v, found && err == nil
}

// eachEntry calls f with each entry of a directory, until it returns false.
func eachEntry(ctx context.Context, client *cluster.Client, v resource.RetainedVolume, ref string, f func(api.Entry) bool) error {
	for q := (api.FilesQuery{Path: ref, Limit: entriesAtOnce}); ; {
		page, err := client.Files(ctx, cluster.ID(v.Namespace, v.Name), q)
		if err != nil {
			return err
		}
		for _, entry := range page.Entries {
			if !f(entry) {
				return nil
			}
		}
		if page.Continue == "" {
			return nil
		}
		q.Continue = page.Continue
	}
}
