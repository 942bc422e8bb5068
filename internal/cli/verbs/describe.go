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
)

const (
	// lastLines is how many lines of each container are shown of its end, mostShown of how many containers.
	lastLines = 10
	mostShown = 16
)

// signals are the signals that end a process mostly, as a shell counts them in an exit code.
var signals = map[int32]string{1: "SIGHUP", 2: "SIGINT", 3: "SIGQUIT", 4: "SIGILL", 6: "SIGABRT", 7: "SIGBUS", 8: "SIGFPE", 9: "SIGKILL",
	11: "SIGSEGV", 13: "SIGPIPE", 14: "SIGALRM", 15: "SIGTERM"}

// Ending reads how a pod has ended from the volume with its logs. ok is false if that was not known.
func Ending(ctx context.Context, logs Volume) (end podend.Pod, ok bool, err error) {
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

// WriteEnding writes how a pod has ended. What it does not know it leaves out.
func (s *Session) WriteEnding(end podend.Pod) {
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

// LastLines writes the last lines of each container, in a way that is safe for a terminal.
func (s *Session) LastLines(ctx context.Context, v Volume, pod string) error {
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
