package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/spf13/pflag"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/katbox/katbox/internal/cli/verbs"
	"github.com/katbox/katbox/internal/model/resource"
	"github.com/katbox/katbox/internal/model/terminal"
	"github.com/katbox/katbox/internal/plugin/cluster"
)

// completeVerb is what shells call with the words of a command line. It runs this program with
// candidatesVerb and the same words. The flags of both are not those of the program.
const (
	completeVerb   = "__complete"
	candidatesVerb = "__candidates"
)

// completeLimit is how long a shell waits, whatever the kubeconfig names and the cluster does; tests that want an answer
// raise it.
var completeLimit = 3 * time.Second

const (
	// writeTime is how much of completeLimit is left to write what was found.
	writeTime = 500 * time.Millisecond
	// mostCandidates is how many names are offered.
	mostCandidates = 1000
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
	// flags are those of the verb, with the values that they have so far.
	flags *pflag.FlagSet
	// before are the words so far, and word is the one at the cursor.
	before []string
	word   string

	candidates []string
	seen       map[string]bool
	directive  int
}

// complete writes what [candidates] writes. That runs in a process of its own without a terminal: the
// kubeconfig may name a program that waits for a login, which ends with all that it started once the
// limit is over, and can neither ask the user nor write into the command line.
func complete(ctx context.Context, words []string, stdout io.Writer) int {
	ctx, cancel := context.WithTimeout(ctx, completeLimit)
	defer cancel()
	found := fmt.Appendf(nil, ":%d\n", noFiles)
	if self, err := os.Executable(); err == nil {
		var out bytes.Buffer
		cmd := exec.CommandContext(ctx, self, append([]string{candidatesVerb}, words...)...)
		// Standard error is no pipe: what the login leaves running, such as an agent, may have it open for days.
		cmd.Stdout = &out
		runAlone(cmd)
		if err := cmd.Run(); err == nil {
			found = out.Bytes()
		}
	}
	_, _ = stdout.Write(found) // a shell that has gone needs nothing
	return 0
}

// candidates writes what the last of words may become, each in a line, and then the directive.
func candidates(ctx context.Context, p verbs.Program, words []string, stdout io.Writer) int {
	endTogether()
	c := completion{program: p, directive: noFiles, seen: map[string]bool{}}
	if len(words) > 0 {
		c.before, c.word = words[:len(words)-1], words[len(words)-1]
	}
	ctx, cancel := context.WithTimeout(ctx, completeLimit-writeTime)
	defer cancel()
	c.find(ctx)
	for _, candidate := range c.candidates {
		fmt.Fprintln(stdout, candidate)
	}
	fmt.Fprintf(stdout, ":%d\n", c.directive)
	return 0
}

// offer adds a candidate if it begins with the word, and reports whether more are wanted. A pod
// chooses the names of its files, and a shell puts candidates into the command line as they are; the completion of
// kubectl for bash even runs the commands in them. So offer takes only candidates that are one word in every shell.
func (c *completion) offer(text, description string) bool {
	if strings.HasPrefix(text, c.word) && isWord(text) && !c.seen[text] {
		c.seen[text] = true
		if description != "" {
			text += "\t" + terminal.Clean(description)
		}
		c.candidates = append(c.candidates, text)
	}
	return len(c.candidates) < mostCandidates
}

// isWord reports whether a text is one word in every shell, and stands for itself.
func isWord(text string) bool {
	return utf8.ValidString(text) && !strings.ContainsFunc(text, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("-_./:@%+=,", r)
	})
}

// find finds the candidates.
func (c *completion) find(ctx context.Context) {
	verb, words := c.verb()
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	flags.ParseErrorsAllowlist.UnknownFlags = true
	flags.SetOutput(io.Discard)
	if verb == nil {
		(&connection{}).define(flags)
		words = c.before
	} else {
		verb.Define(flags)
	}
	// A user sees what is wrong when the command runs. Here the value of the last flag may still be missing.
	wrong := flags.Parse(words)
	c.flags = flags
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
	if wrong == nil {
		c.argument(ctx, *verb)
	}
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
	found.define(flags)
	c.flags.Visit(func(f *pflag.Flag) {
		own := flags.Lookup(f.Name)
		if own == nil {
			return
		}
		if list, isList := f.Value.(pflag.SliceValue); isList {
			_ = own.Value.(pflag.SliceValue).Replace(list.GetSlice()) // a value that was taken once
		} else {
			_ = own.Value.Set(f.Value.String())
		}
	})
	return &found
}

// argument offers what a verb takes as its next argument.
func (c *completion) argument(ctx context.Context, v verbs.Verb) {
	place, contents := c.flags.NArg(), strings.Contains(v.Arguments, "TARGET:PATH")
	switch {
	case v.Name == completionName:
		for _, shell := range shellNames() {
			c.offer(shell, "")
		}
	case v.Name == "cp" && place > 0:
		c.directive = otherwiseFiles
	case place >= v.Most || !strings.Contains(v.Arguments, "TARGET"):
	case !strings.Contains(c.word, ":"):
		c.targets(ctx, contents)
	case strings.Contains(v.Arguments, ":PATH"):
		c.paths(ctx, contents)
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
