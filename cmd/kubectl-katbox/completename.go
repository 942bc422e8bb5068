package main

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/katbox/katbox/internal/model/resource"
	"github.com/katbox/katbox/internal/model/terminal"
	"github.com/katbox/katbox/internal/plugin/cluster"
)

// completeFlags says how the values of the connection's flags are completed, and of those flags that select volumes.
func (c *connection) completeFlags(root *cobra.Command) {
	completeFlag(root, clientcmd.FlagContext, c.ofKubeconfig(func(config clientcmdapi.Config) []string {
		return slices.Collect(maps.Keys(config.Contexts))
	}))
	completeFlag(root, clientcmd.FlagClusterName, c.ofKubeconfig(func(config clientcmdapi.Config) []string {
		return slices.Collect(maps.Keys(config.Clusters))
	}))
	completeFlag(root, clientcmd.FlagAuthInfoName, c.ofKubeconfig(func(config clientcmdapi.Config) []string {
		return slices.Collect(maps.Keys(config.AuthInfos))
	}))
	completeFlag(root, clientcmd.FlagNamespace, c.ofKubeconfig(namespacesOf))
	for _, flag := range []string{
		clientcmd.RecommendedConfigPathFlag, clientcmd.FlagCAFile, clientcmd.FlagCertFile, clientcmd.FlagKeyFile,
	} {
		completeFlag(root, flag, ofFiles)
	}
	for flag, of := range map[string]func(*resource.RetainedVolume) string{
		"job":    func(v *resource.RetainedVolume) string { return v.Labels[resource.LabelJob] },
		"pod":    func(v *resource.RetainedVolume) string { return v.Spec.PodName },
		"node":   func(v *resource.RetainedVolume) string { return v.Spec.NodeName },
		"volume": func(v *resource.RetainedVolume) string { return v.Spec.VolumeName },
	} {
		for _, verb := range root.Commands() {
			if verb.Flags().Lookup(flag) != nil {
				completeFlag(verb, flag, c.ofVolumes(of))
			}
		}
	}
}

// ofFiles leaves the completion to the shell.
func ofFiles(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return nil, cobra.ShellCompDirectiveDefault
}

// ofKubeconfig completes to names that the kubeconfig has.
func (c *connection) ofKubeconfig(names func(clientcmdapi.Config) []string) cobra.CompletionFunc {
	return func(_ *cobra.Command, _ []string, word string) ([]cobra.Completion, cobra.ShellCompDirective) {
		o := offersFor(word)
		if config, err := c.config().RawConfig(); err == nil {
			for _, name := range slices.Sorted(slices.Values(names(config))) {
				o.add(name, "")
			}
		}
		return o.candidates, cobra.ShellCompDirectiveNoFileComp
	}
}

func namespacesOf(config clientcmdapi.Config) (names []string) {
	for _, context := range config.Contexts {
		if context.Namespace != "" {
			names = append(names, context.Namespace)
		}
	}
	return names
}

// ofVolumes completes to a name of each volume.
func (c *connection) ofVolumes(name func(*resource.RetainedVolume) string) cobra.CompletionFunc {
	return func(verb *cobra.Command, _ []string, word string) ([]cobra.Completion, cobra.ShellCompDirective) {
		o := offersFor(word)
		c.eachVolume(verb.Context(), func(v *resource.RetainedVolume) bool { return name(v) == "" || o.add(name(v), "") })
		return o.candidates, cobra.ShellCompDirectiveNoFileComp
	}
}

// eachVolume calls f with the volumes of the namespace, until it returns false or the time is over.
func (c *connection) eachVolume(ctx context.Context, f func(*resource.RetainedVolume) bool) {
	client, namespace, err := c.open()
	if err != nil {
		return
	}
	_ = client.Pages(ctx, cluster.Query{Namespace: namespace, Limit: pageSize}, func(page cluster.Page) error {
		for i := range page.Items {
			if !f(&page.Items[i]) {
				return cluster.ErrEnough
			}
		}
		return nil
	}) // what came until an error is offered
}

// takes says what a verb takes as a target.
type takes int

const (
	volumesAlone takes = iota
	pathsToo
	// filesAlone are paths, of files and of the directories on the way.
	filesAlone
)

// targets completes the first arguments of a verb, as many as it takes.
func (c *connection) targets(what takes, most int) cobra.CompletionFunc {
	return func(verb *cobra.Command, before []string, word string) ([]cobra.Completion, cobra.ShellCompDirective) {
		switch {
		case len(before) >= most:
		case !strings.Contains(word, ":"):
			return c.volumes(verb.Context(), word, what == filesAlone)
		case what != volumesAlone:
			return c.paths(verb, word, what == filesAlone)
		}
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
}

// volumes offers volumes and Jobs, and behind pod/ pods. Where a path has to follow, the colon is added.
func (c *connection) volumes(ctx context.Context, word string, path bool) ([]cobra.Completion, cobra.ShellCompDirective) {
	o, colon, directive := offersFor(word), "", cobra.ShellCompDirectiveNoFileComp
	if path {
		colon, directive = ":", directive|cobra.ShellCompDirectiveNoSpace
	}
	c.eachVolume(ctx, func(v *resource.RetainedVolume) bool {
		about := ""
		if o := v.Spec.Owner; o != nil {
			about = owner(o) + ", "
		}
		about += "retained " + terminal.Ago(time.Now(), at(v.Status.RetainedAt))
		if job := v.Labels[resource.LabelJob]; job != "" && !o.add("job/"+job+colon, "all that is left of this Job") {
			return false
		}
		if v.Spec.PodName != "" && strings.HasPrefix(word, "pod/") {
			return o.add("pod/"+v.Spec.PodName+colon, about)
		}
		return o.add(v.Name+colon, about)
	})
	return o.candidates, directive
}
