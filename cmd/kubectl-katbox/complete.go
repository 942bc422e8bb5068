package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/katbox/katbox/internal/cluster"
	"github.com/katbox/katbox/internal/gateway/resource"
	"github.com/katbox/katbox/internal/terminal"
	"github.com/katbox/katbox/internal/verbs"
)

// completeVerb is what shells call with the words of a command line. Its flags are not those of the
// program.
const completeVerb = "__complete"

const (
	// completeLimit is how long a shell waits for names of the cluster.
	completeLimit = 3 * time.Second
	// mostCandidates is how many names are offered.
	mostCandidates = 200
)

// How a shell goes on behind the candidates, as cobra writes it.
const (
	otherwiseFiles = 0
	noSpace        = 2
	noFiles        = 4
)

// completion is a command line that is being typed.
type completion struct {
	program verbs.Program
	// before are the words so far, and word is the one at the cursor.
	before []string
	word   string

	candidates []string
	seen       map[string]bool
	directive  int
}

// complete writes what the last of words may become, each in a line, and then the directive.
func complete(ctx context.Context, p verbs.Program, words []string, stdout io.Writer) int {
	c := completion{program: p, directive: noFiles, seen: map[string]bool{}}
	if len(words) > 0 {
		c.before, c.word = words[:len(words)-1], words[len(words)-1]
	}
	ctx, cancel := context.WithTimeout(ctx, completeLimit)
	defer cancel()
	c.find(ctx)
	for _, candidate := range c.candidates {
		fmt.Fprintln(stdout, candidate)
	}
	fmt.Fprintf(stdout, ":%d\n", c.directive)
	return 0
}

// offer adds a candidate if it begins with the word, and reports whether more are wanted.
func (c *completion) offer(text, description string) bool {
	if strings.HasPrefix(text, c.word) && terminal.IsPlain(text) && !c.seen[text] {
		c.seen[text] = true
		if description != "" {
			text += "\t" + terminal.Clean(description)
		}
		c.candidates = append(c.candidates, text)
	}
	return len(c.candidates) < mostCandidates
}

// find finds the candidates.
func (c *completion) find(ctx context.Context) {
	verb, words := c.verb()
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	if verb == nil {
		(&connection{}).define(flags)
	} else {
		verb.Define(flags)
	}
	if flag := c.awaited(flags); flag != nil {
		c.value(ctx, flag.Name)
		return
	}
	if strings.HasPrefix(c.word, "-") {
		flags.VisitAll(func(f *pflag.Flag) { c.offer("--"+f.Name, f.Usage) })
		return
	}
	if verb == nil {
		c.verbs()
		return
	}
	flags.ParseErrorsAllowlist.UnknownFlags = true
	flags.SetOutput(io.Discard)
	if flags.Parse(words) != nil {
		return // a user sees what is wrong when the command runs
	}
	c.argument(ctx, *verb, flags.NArg())
}

// verb returns the verb of the command line, and the words behind it; nil if there is none yet.
func (c *completion) verb() (*verbs.Verb, []string) {
	words := verbFirst(c.before)
	if len(words) == 0 {
		return nil, nil
	}
	for i := range c.program.Verbs {
		if c.program.Verbs[i].Name == words[0] {
			return &c.program.Verbs[i], words[1:]
		}
	}
	return nil, nil
}

// awaited returns the flag whose value is at the cursor; nil if it is none's.
func (c *completion) awaited(flags *pflag.FlagSet) *pflag.Flag {
	if name, value, ok := strings.Cut(c.word, "="); ok && strings.HasPrefix(name, "--") {
		// The shell replaces the whole word.
		if f := flags.Lookup(name[2:]); f != nil {
			c.word = value
			return f
		}
	}
	if len(c.before) == 0 {
		return nil
	}
	var f *pflag.Flag
	last := c.before[len(c.before)-1]
	switch {
	case strings.HasPrefix(last, "--") && len(last) > 2:
		f = flags.Lookup(last[2:])
	case strings.HasPrefix(last, "-") && len(last) == 2 && last != "--":
		f = flags.ShorthandLookup(last[1:])
	}
	if f == nil || f.NoOptDefVal != "" {
		return nil
	}
	return f
}

// verbs offers the verbs.
func (c *completion) verbs() {
	for _, v := range c.program.Verbs {
		if !v.Hidden {
			c.offer(v.Name, v.Summary)
		}
	}
}

// value offers values of a flag.
func (c *completion) value(ctx context.Context, flag string) {
	switch flag {
	case "output":
		for _, form := range []string{outputWide, outputJSON, outputYAML, outputName} {
			c.offer(form, "")
		}
	case "context", "cluster", "user", "namespace":
		c.ofKubeconfig(flag)
	case "job":
		c.names(ctx, func(v *resource.RetainedVolume) string { return v.Labels[resource.LabelJob] })
	case "pod":
		c.names(ctx, func(v *resource.RetainedVolume) string { return v.Spec.PodName })
	case "node":
		c.names(ctx, func(v *resource.RetainedVolume) string { return v.Spec.NodeName })
	case "volume":
		c.names(ctx, func(v *resource.RetainedVolume) string { return v.Spec.VolumeName })
	case "kubeconfig", "certificate-authority", "client-certificate", "client-key":
		c.directive = otherwiseFiles
	}
}

// ofKubeconfig offers names that the kubeconfig has.
func (c *completion) ofKubeconfig(flag string) {
	config, err := c.connection().config().RawConfig()
	if err != nil {
		return
	}
	var names []string
	switch flag {
	case "context":
		names = slices.Collect(maps.Keys(config.Contexts))
	case "cluster":
		names = slices.Collect(maps.Keys(config.Clusters))
	case "user":
		names = slices.Collect(maps.Keys(config.AuthInfos))
	case "namespace":
		names = namespacesOf(config)
	}
	slices.Sort(names)
	for _, name := range names {
		c.offer(name, "")
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

// connection returns what the words so far say of the connection.
func (c *completion) connection() *connection {
	var found connection
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	flags.ParseErrorsAllowlist.UnknownFlags = true
	flags.SetOutput(io.Discard)
	found.define(flags)
	_ = flags.Parse(c.before) // what was understood so far is enough for names
	return &found
}

// argument offers what a verb takes as its argument at a place.
func (c *completion) argument(ctx context.Context, v verbs.Verb, place int) {
	switch {
	case v.Name == completionName:
		for _, shell := range shellNames() {
			c.offer(shell, "")
		}
	case v.Name == "cp" && place > 0:
		c.directive = otherwiseFiles
	case place >= v.Most || !strings.Contains(v.Arguments, "TARGET") || strings.Contains(c.word, ":"):
	default:
		c.targets(ctx, strings.Contains(v.Arguments, "TARGET:PATH"))
	}
}

// targets offers volumes and Jobs, and behind pod/ pods. Where a path has to follow, the colon is added.
func (c *completion) targets(ctx context.Context, path bool) {
	colon := ""
	if path {
		colon, c.directive = ":", noFiles|noSpace
	}
	c.volumes(ctx, func(v *resource.RetainedVolume) bool {
		about := ""
		if o := v.Spec.Owner; o != nil {
			about = owner(o) + ", "
		}
		if job := v.Labels[resource.LabelJob]; job != "" && !c.offer("job/"+job+colon, "all that is left of this Job") {
			return false
		}
		if v.Spec.PodName != "" && strings.HasPrefix(c.word, "pod/") {
			return c.offer("pod/"+v.Spec.PodName+colon, about+"retained "+terminal.Ago(time.Now(), at(v.Status.RetainedAt)))
		}
		return c.offer(v.Name+colon, about+"retained "+terminal.Ago(time.Now(), at(v.Status.RetainedAt)))
	})
}

// names offers one name of each volume.
func (c *completion) names(ctx context.Context, of func(*resource.RetainedVolume) string) {
	c.volumes(ctx, func(v *resource.RetainedVolume) bool {
		name := of(v)
		return name == "" || c.offer(name, "")
	})
}

// volumes calls f with the volumes of the namespace, until it returns false or the time is over.
func (c *completion) volumes(ctx context.Context, f func(*resource.RetainedVolume) bool) {
	client, namespace, err := c.connection().open()
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
