package verbs

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/katbox/katbox/internal/lib/crilog"
	"github.com/katbox/katbox/internal/lib/paths"
	"github.com/katbox/katbox/internal/model/api"
	"github.com/katbox/katbox/internal/model/podend"
	"github.com/katbox/katbox/internal/model/terminal"
)

// mostMissing bounds what is read of the file that says what is missing.
const mostMissing = 1 << 20

// LogsOptions are the flags of logs. They mean what those of kubectl logs mean.
type LogsOptions struct {
	ShowOptions
	container                         string
	all, previous, timestamps, prefix bool
	tail                              int
	since                             time.Duration
}

// Define adds the flags.
func (o *LogsOptions) Define(flags *pflag.FlagSet) {
	flags.StringVarP(&o.container, "container", "c", "", "of this container; not needed if there is only one, or the pod names its default")
	flags.BoolVar(&o.all, "all-containers", false, "of all containers, in the order in which they printed")
	flags.BoolVarP(&o.previous, "previous", "p", false, "of the container before its last restart")
	flags.IntVar(&o.tail, "tail", -1, "how many lines from the end, of each container; -1 is all")
	flags.DurationVar(&o.since, "since", 0, "only what was printed in this time until now, such as 10m or 2h")
	flags.BoolVar(&o.timestamps, "timestamps", false, "with the time in front of each line")
	flags.BoolVar(&o.prefix, "prefix", false, "with the names of pod and container in front of each line")
	o.ShowOptions.Define(flags)
}

// Check refuses flags that are wrong, before anything is asked.
func (o *LogsOptions) Check() error {
	switch {
	case o.all && o.container != "":
		return WrongUsage("--container and --all-containers do not go together: give one")
	case o.tail < -1:
		return WrongUsage("--tail %d is less than -1, which is all", o.tail)
	case o.since < 0:
		return WrongUsage("--since %s is negative", o.since)
	}
	return nil
}

// logFile is a file of a container.
type logFile struct {
	crilog.Name
	ref string
}

// Logs writes what the containers of a pod have printed. v is the volume that has it.
func (s *Session) Logs(ctx context.Context, v Volume, pod string, o *LogsOptions) error {
	containers, lacking, err := logFiles(ctx, v)
	if err != nil {
		return err
	}
	var end podend.Pod
	if o.container == "" && !o.all && len(containers) > 1 {
		if end, _, err = ending(ctx, v); err != nil {
			return err
		}
	}
	chosen, err := o.choose(containers, end.Default, pod)
	if err != nil {
		return err
	}
	var missing api.LogsMissing
	if lacking {
		if missing, err = missingLogs(ctx, v); err != nil {
			return err
		}
	}
	l := &logs{o: o, pod: pod}
	if o.since > 0 {
		l.since = s.Now().Add(-o.since)
	}
	defer l.close()
	for _, name := range chosen {
		files, err := o.restart(containers[name], name)
		if err != nil {
			return err
		}
		s.noteMissing(missing, name, files)
		in := &logInput{ctx: ctx, volume: v, files: files}
		l.from = append(l.from, &containerLog{name: name, input: in, begins: true})
		if err := in.tail(o.tail); err != nil {
			return err
		}
	}
	if missing.Interrupted {
		fmt.Fprintln(s.Stderr, "the daemon ended while it kept these logs, and then they were gone: there may have been more")
	}
	if !s.Shown || o.Raw {
		err := l.write(s.Stdout)
		l.note(s.Stderr)
		return err
	}
	escaper := terminal.NewEscaper(s.Stdout, s.Colors)
	err = errors.Join(l.write(escaper), escaper.Close())
	l.note(s.Stderr)
	return err
}

// logFiles returns the files of each container, the oldest first, and whether there is one that says what is missing.
func logFiles(ctx context.Context, v Volume) (containers map[string][]logFile, lacking bool, err error) {
	containers = map[string][]logFile{}
	for q := (api.FilesQuery{Depth: 2, Limit: namesAtOnce}); ; {
		list, err := v.Reader.Files(ctx, v.ID, q)
		if err != nil {
			return nil, false, v.Reader.Explain(ctx, v.ID, err)
		}
		for _, e := range list.Entries {
			container, file, inside := strings.Cut(e.Ref, "/")
			name, ok := crilog.ParseName(file)
			if inside && ok && e.Type == api.File {
				containers[container] = append(containers[container], logFile{name, e.Ref})
			}
			lacking = lacking || e.Ref == api.MissingLogs && e.Type == api.File
		}
		if list.Continue == "" || list.Continue == q.Continue {
			break
		}
		q.Continue = list.Continue
	}
	for _, files := range containers {
		slices.SortFunc(files, func(a, b logFile) int { return a.Compare(b.Name) })
	}
	return containers, lacking, nil
}

// choose returns the containers that are meant. Where none is given it is usual, that which the pod names.
func (o *LogsOptions) choose(containers map[string][]logFile, usual, pod string) ([]string, error) {
	names := slices.Sorted(maps.Keys(containers))
	switch {
	case len(names) == 0:
		return nil, fmt.Errorf("no log of a container of pod %s is kept", Quoted(pod))
	case o.all:
		return names, nil
	case o.container != "" && containers[o.container] == nil:
		return nil, fmt.Errorf("no log of a container %s of pod %s is kept, but of %s",
			Quoted(o.container), Quoted(pod), strings.Join(names, ", "))
	case o.container != "":
		return []string{o.container}, nil
	case containers[usual] != nil:
		return []string{usual}, nil
	case len(names) > 1:
		return nil, WrongUsage("pod %s has several containers: give -c with one of %s, or --all-containers",
			Quoted(pod), strings.Join(names, ", "))
	}
	return names, nil
}

// restart returns the files of the last run of a container, or the one before.
func (o *LogsOptions) restart(files []logFile, container string) ([]logFile, error) {
	last := files[len(files)-1].Restart
	wanted := last
	if o.previous {
		wanted = -1
		for _, f := range files {
			if f.Restart < last {
				wanted = f.Restart
			}
		}
		if wanted < 0 {
			return nil, fmt.Errorf("no log of container %s before its last restart is kept", Quoted(container))
		}
	}
	var of []logFile
	for _, f := range files {
		if f.Restart == wanted {
			of = append(of, f)
		}
	}
	return of, nil
}

// missingLogs reads what the volume says of what is missing.
func missingLogs(ctx context.Context, v Volume) (missing api.LogsMissing, err error) {
	in, err := open(ctx, v, api.BytesQuery{Path: api.MissingLogs})
	if err != nil {
		return missing, err
	}
	defer in.Close()
	if err := json.NewDecoder(io.LimitReader(in, mostMissing)).Decode(&missing); err != nil {
		return missing, fmt.Errorf("read what is missing of the logs, %s: %w", api.MissingLogs, err)
	}
	return missing, nil
}

// noteMissing says what is missing of the files that are shown.
func (s *Session) noteMissing(missing api.LogsMissing, container string, files []logFile) {
	for _, m := range missing.Files {
		n, ok := crilog.ParseName(m.File)
		if !ok || m.Container != container || n.Restart != files[0].Restart {
			continue
		}
		what := "the beginning"
		if m.Why != api.LogsLimit {
			what = "a part that could not be read"
		}
		fmt.Fprintf(s.Stderr, "of container %s %s is missing, %s\n", Quoted(container), what, terminal.Size(m.Bytes))
	}
}

// logs writes the logs of containers.
type logs struct {
	o     *LogsOptions
	pod   string
	since time.Time
	from  []*containerLog
}

// containerLog is the log of one container, with its next piece.
type containerLog struct {
	name  string
	input *logInput
	next  crilog.Piece
	// begins: the next piece begins a line.
	begins bool
}

func (l *logs) close() {
	for _, from := range l.from {
		from.input.close()
	}
}

// write writes all lines, that which was printed first first.
func (l *logs) write(to io.Writer) error {
	out := bufio.NewWriter(to)
	var left []*containerLog
	for _, from := range l.from {
		more, err := from.read()
		if err != nil {
			return err
		}
		if more {
			left = append(left, from)
		}
	}
	for len(left) > 0 {
		first := slices.MinFunc(left, func(a, b *containerLog) int { return a.next.Time.Compare(b.next.Time) })
		more, err := l.line(out, first, len(l.from) > 1)
		if err != nil {
			return errors.Join(out.Flush(), err)
		}
		if !more {
			left = slices.DeleteFunc(left, func(c *containerLog) bool { return c == first })
		}
	}
	return out.Flush()
}

// line writes the next line of a container, and reports whether there is more.
func (l *logs) line(out *bufio.Writer, from *containerLog, beside bool) (more bool, err error) {
	for {
		piece, begins := from.next, from.begins
		from.begins = piece.Ends()
		if !piece.Time.Before(l.since) {
			if begins && l.o.prefix {
				fmt.Fprintf(out, "[pod/%s/%s] ", l.pod, from.name)
			}
			if begins && l.o.timestamps {
				fmt.Fprint(out, piece.Time.Format("2006-01-02T15:04:05.000000000Z07:00"), " ")
			}
			if _, err := out.Write(piece.Text); err != nil {
				return false, err
			}
		}
		ends := from.begins
		if more, err = from.read(); err != nil || ends {
			return more, err
		}
		if !more {
			if beside { // the next line is another container's
				return false, out.WriteByte('\n')
			}
			return false, nil
		}
	}
}

// read reads the next piece, and reports whether there is one.
func (c *containerLog) read() (bool, error) {
	next, err := c.input.next()
	if errors.Is(err, io.EOF) {
		return false, nil
	}
	c.next = next
	return err == nil, err
}

// note says what was left out.
func (l *logs) note(to io.Writer) {
	strange := 0
	for _, from := range l.from {
		strange += from.input.strange
	}
	if strange > 0 {
		fmt.Fprintf(to, "%d lines that a container runtime does not write are left out; cat shows them\n", strange)
	}
}

// refOf is the path of a file for messages.
func refOf(f logFile) string {
	p, err := paths.ParseRef(f.ref)
	if err != nil {
		return Quoted(f.ref)
	}
	return Quoted(p.String())
}
