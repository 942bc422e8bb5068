package verbs

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/katbox/katbox/internal/model/api"
	"github.com/katbox/katbox/internal/model/podend"
	"github.com/katbox/katbox/internal/model/terminal"
	"github.com/katbox/katbox/internal/model/volume"
)

const (
	// lastLines is how many lines of each container are shown of its end, mostShown of how many containers.
	lastLines = 10
	mostShown = 16
)

// signals are the signals that end a process mostly, as a shell counts them in an exit code.
var signals = map[int32]string{1: "SIGHUP", 2: "SIGINT", 3: "SIGQUIT", 4: "SIGILL", 6: "SIGABRT", 7: "SIGBUS", 8: "SIGFPE", 9: "SIGKILL",
	11: "SIGSEGV", 13: "SIGPIPE", 14: "SIGALRM", 15: "SIGTERM"}

// Pod is a pod that is gone, of which something is kept. Texts that are not known are empty.
type Pod struct {
	Name, Namespace, UID, Node, Owner, Outcome string
	Kept                                       []Kept
	// Incomplete: nodes did not answer.
	Incomplete bool
	// Flags come before the targets of commands that are shown, such as "-n ci ".
	Flags string
}

// Kept is a volume that is kept of a pod.
type Kept struct {
	Volume
	// Name is that of the volume in its pod.
	Name string
	// Size is nil if it is not known, and Expires zero.
	Size    *int64
	Expires time.Time
}

// Describe says how a pod ended, what is kept of it, what it printed last, and what shows more.
func (s *Session) Describe(ctx context.Context, p Pod) error {
	var logs *Kept
	for i := range p.Kept {
		if p.Kept[i].Name == volume.LogsName {
			logs = &p.Kept[i]
		}
	}
	var end podend.Pod
	known := false
	if logs != nil {
		var err error
		if end, known, err = ending(ctx, logs.Volume); err != nil {
			return err
		}
	}
	fmt.Fprintf(s.Stdout, "Pod:       %s\nNamespace: %s\nUID:       %s\nNode:      %s\n",
		Known(p.Name), Known(p.Namespace), Known(p.UID), Known(p.Node))
	if p.Owner != "" {
		fmt.Fprintf(s.Stdout, "Owner:     %s\n", p.Owner)
	}
	fmt.Fprintf(s.Stdout, "Outcome:   %s\n", Known(p.Outcome))
	if known {
		s.writeEnding(end)
	} else {
		fmt.Fprintln(s.Stdout, "Status:    not known: nothing has told the node how the containers ended, or it keeps no logs")
	}
	if err := s.listKept(p); err != nil {
		return err
	}
	if logs != nil {
		if err := s.lastLines(ctx, logs.Volume, p.Name); err != nil {
			return err
		}
	}
	fmt.Fprintln(s.Stdout, "\nMore:")
	if logs != nil {
		fmt.Fprintf(s.Stdout, "  %s logs %s%s --all-containers\n", s.Program, p.Flags, logs.Target)
	}
	for i := range p.Kept {
		if k := &p.Kept[i]; k != logs {
			fmt.Fprintf(s.Stdout, "  %s ls %s%s:\n", s.Program, p.Flags, k.Target)
		}
	}
	return nil
}

// listKept lists what is kept of a pod, and until when.
func (s *Session) listKept(p Pod) error {
	fmt.Fprintln(s.Stdout, "Kept:")
	table := terminal.NewTable(s.Stdout)
	for _, k := range p.Kept {
		size, until := terminal.Unknown, terminal.Unknown
		if k.Size != nil {
			size = terminal.Size(*k.Size)
		}
		if !k.Expires.IsZero() {
			until = "until " + Moment(k.Expires) + " (" + terminal.In(s.Now(), k.Expires) + ")"
		}
		table.Row("  "+Known(k.Name), size, until, k.Target)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	if p.Incomplete {
		fmt.Fprintln(s.Stdout, "  Some nodes did not answer: there may be more.")
	}
	return nil
}

// ending reads how a pod has ended from the volume with its logs. ok is false if that was not known.
func ending(ctx context.Context, logs Volume) (end podend.Pod, ok bool, err error) {
	list, err := logs.Reader.Files(ctx, logs.ID, api.FilesQuery{Depth: 1, Limit: namesAtOnce})
	if err != nil {
		return end, false, logs.Reader.Explain(ctx, logs.ID, err)
	}
	if !slices.ContainsFunc(list.Entries, func(e api.Entry) bool { return e.Ref == api.PodEnd && e.Type == api.File }) {
		return end, false, nil
	}
	in, err := open(ctx, logs, api.BytesQuery{Path: api.PodEnd})
	if err != nil {
		return end, false, err
	}
	defer in.Close()
	text, err := io.ReadAll(io.LimitReader(in, podend.MostBytes+1))
	if err == nil {
		end, err = podend.Decode(text)
	}
	if err != nil {
		return end, false, fmt.Errorf("read how the pod has ended, %s: %w", api.PodEnd, err)
	}
	return end, true, nil
}

// writeEnding writes how a pod has ended. What it does not know it leaves out.
func (s *Session) writeEnding(end podend.Pod) {
	fmt.Fprintf(s.Stdout, "Status:    %s\n", because(end.Phase, end.Reason, end.Message))
	if d := end.Disruption; d != nil {
		fmt.Fprintf(s.Stdout, "Disrupted: %s\n", because("", d.Reason, d.Message))
	}
	for _, t := range []struct {
		name string
		at   time.Time
	}{{"Created:", end.Created}, {"Started:", end.Started}, {"Deleted:", end.Deleted}} {
		if !t.at.IsZero() {
			fmt.Fprintf(s.Stdout, "%-10s %s\n", t.name, Moment(t.at))
		}
	}
	if end.RestartPolicy != "" {
		fmt.Fprintf(s.Stdout, "Restarts:  restartPolicy %s\n", end.RestartPolicy)
	}
	if len(end.Containers) > 0 {
		fmt.Fprintln(s.Stdout, "Containers:")
	}
	for _, c := range end.Containers {
		fmt.Fprintf(s.Stdout, "  %s%s: %s\n", c.Name, kindOf(c), stateOf(c.State))
		if c.Restarts > 0 {
			fmt.Fprintf(s.Stdout, "    restarted %d times", c.Restarts)
			if c.Last != nil {
				fmt.Fprintf(s.Stdout, ", the time before: %s", stateOf(*c.Last))
			}
			fmt.Fprintln(s.Stdout)
		}
		if c.Image != "" {
			fmt.Fprintf(s.Stdout, "    image %s\n", c.Image)
		}
		for _, r := range []struct {
			name string
			all  map[string]string
		}{{"requests", c.Requests}, {"limits", c.Limits}} {
			if len(r.all) > 0 {
				fmt.Fprintf(s.Stdout, "    %s %s\n", r.name, amounts(r.all))
			}
		}
	}
	if end.Cut {
		fmt.Fprintln(s.Stdout, "  Not all of it was kept: it was too long.")
	}
}

func kindOf(c podend.Container) string {
	if c.Kind == "" {
		return ""
	}
	return " (" + c.Kind + " container)"
}

// stateOf says in a line, or in several, how a container has ended.
func stateOf(state podend.State) string {
	text := cmp.Or(state.State, "not known")
	if state.ExitCode != nil {
		text = fmt.Sprintf("exit code %d", *state.ExitCode)
		if name := signals[*state.ExitCode-128]; name != "" {
			text += " (" + name + ")"
		}
	}
	if state.Signal != 0 {
		text += fmt.Sprintf(", signal %d", state.Signal)
	}
	if !state.Finished.IsZero() {
		text += ", " + Moment(state.Finished)
		if !state.Started.IsZero() {
			text += fmt.Sprintf(", after %s", state.Finished.Sub(state.Started))
		}
	}
	return because(text, state.Reason, state.Message)
}

// because adds a reason and a message, whose lines are indented.
func because(text, reason, message string) string {
	for _, more := range []string{reason, strings.TrimSpace(message)} {
		switch {
		case more == "":
		case strings.Contains(more, "\n"):
			text += "\n      " + strings.ReplaceAll(more, "\n", "\n      ")
		case text == "":
			text = more
		default:
			text += ", " + more
		}
	}
	return cmp.Or(text, "not known")
}

func amounts(all map[string]string) string {
	var texts []string
	for _, name := range slices.Sorted(maps.Keys(all)) {
		texts = append(texts, name+"="+all[name])
	}
	return strings.Join(texts, ", ")
}

// lastLines writes the last lines of each container, in a way that is safe for a terminal.
func (s *Session) lastLines(ctx context.Context, v Volume, pod string) error {
	containers, _, err := logFiles(ctx, v)
	if err != nil {
		return err
	}
	shown := *s
	shown.Shown = true
	for i, name := range slices.Sorted(maps.Keys(containers)) {
		if i == mostShown {
			fmt.Fprintf(s.Stdout, "\n%d containers more have logs.\n", len(containers)-mostShown)
			break
		}
		fmt.Fprintf(s.Stdout, "\nLast lines of %s:\n", Quoted(name))
		if err := shown.Logs(ctx, v, pod, &LogsOptions{container: name, tail: lastLines}); err != nil {
			return err
		}
	}
	return nil
}
