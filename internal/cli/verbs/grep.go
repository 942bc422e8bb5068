package verbs

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/katbox/katbox/internal/lib/paths"
	"github.com/katbox/katbox/internal/model/api"
	"github.com/katbox/katbox/internal/model/duration"
	"github.com/katbox/katbox/internal/model/terminal"
)

// The exit codes of grep are those of grep(1).
const (
	codeNothingFound = 1
	codeGrepFailed   = 2
)

// GrepFailed returns an error with the exit code that grep(1) has for all of them.
func GrepFailed(err error) error { return WithCode(codeGrepFailed, err) }

// GrepOptions are the flags of grep.
type GrepOptions struct {
	since, files, output, maxBytes  string
	ignoreCase, count, names, group bool
	context                         int
}

// Define adds the flags.
func (o *GrepOptions) Define(flags *pflag.FlagSet) {
	flags.BoolVarP(&o.ignoreCase, "ignore-case", "i", false, "letters match in either case")
	flags.StringVar(&o.files, "files", "", "only files with such a path: *.log in any directory, out/*.log, out/**")
	flags.StringVar(&o.since, "since", "", "only volumes that were retained since then: 90m, 6h, 2d")
	flags.BoolVarP(&o.count, "count", "c", false, "how many lines of each file match, and not the lines")
	flags.BoolVarP(&o.names, "files-with-matches", "l", false, "the files in which a line matches, and not the lines")
	flags.BoolVarP(&o.group, "group", "g", false, "each different line once, with how many volumes have it, the most frequent first")
	flags.IntVarP(&o.context, "around", "C", 0, fmt.Sprintf("how many lines before and behind each match, at most %d", api.MostGrepContext))
	flags.StringVar(&o.maxBytes, "max-bytes", "", "each node reads at most this much: 500Mi, 10Gi")
	flags.StringVarP(&o.output, "output", "o", OutputTable, "json: each match in a line, and what was searched in the last one")
}

// Query returns what is asked, and the time before which volumes are left out; zero for none.
func (o *GrepOptions) Query(pattern string, now time.Time) (g api.Grep, since time.Time, err error) {
	g = api.Grep{Pattern: pattern, IgnoreCase: o.ignoreCase, Files: o.files, Tell: api.TellLines, Context: o.context}
	switch {
	case o.count && o.names, o.group && (o.count || o.names || o.context > 0), o.context > 0 && (o.count || o.names):
		return g, since, WrongUsage("of --count, --files-with-matches, --group and --around only one is possible")
	case o.output != OutputTable && o.output != OutputJSON:
		return g, since, WrongUsage("--output %s is not json", Quoted(o.output))
	case o.context < 0 || o.context > api.MostGrepContext:
		return g, since, WrongUsage("--around %d is not between 0 and %d", o.context, api.MostGrepContext)
	case o.count:
		g.Tell = api.TellCount
	case o.names:
		g.Tell = api.TellFiles
	}
	if o.maxBytes != "" {
		if g.MaxBytes, err = terminal.ParseSize(o.maxBytes); err != nil || g.MaxBytes == 0 {
			return g, since, WrongUsage("--max-bytes %s is not a number of bytes: write it as 500Mi or 10Gi", Quoted(o.maxBytes))
		}
	}
	if o.since != "" {
		d, err := duration.Parse(o.since)
		if err != nil || d < 0 {
			return g, since, WrongUsage("--since %s is not a duration; write it as 90m, 6h or 2d", Quoted(o.since))
		}
		since = now.Add(-d)
	}
	if _, bad := g.Compile(); bad != nil {
		return g, since, WrongUsage("%s", bad.Message)
	}
	if _, bad := api.ParseGlob(g.Files); bad != nil {
		return g, since, WrongUsage("%s", bad.Message)
	}
	return g, since, nil
}

// GrepVolume is a volume in which something was found.
type GrepVolume struct {
	// Name is the target that other verbs take.
	Name      string `json:"name"`
	Namespace string `json:"namespace,omitempty"`
	Pod       string `json:"pod,omitempty"`
	Volume    string `json:"volume,omitempty"`
	Node      string `json:"node,omitempty"`
	// Retained is when its pod had ended.
	Retained time.Time `json:"retainedAt,omitzero"`
}

// GrepScope is what a search is of, for people.
type GrepScope struct {
	// Of is the target, with a space before it: " of job/nightly"; empty if there is none.
	Of string
	// Nothing says why there was no volume to search.
	Nothing func() string
}

// Grep writes what a search has found. describe describes a volume of its answer. The error has the exit code of grep(1).
func Grep[V any](ctx context.Context, s *Session, o *GrepOptions, scope GrepScope, in *api.GrepStream[V],
	describe func(*V) GrepVolume,
) error {
	defer in.Close()
	out := bufio.NewWriter(s.Stdout)
	var show found = &foundLines{out: out, shown: s.Shown, context: o.context > 0}
	switch {
	case o.group:
		show = newFoundGroups(out, s.Shown, o.output == OutputJSON)
	case o.output == OutputJSON:
		show = &foundJSON{out: out}
	}
	var at GrepVolume
	for any := false; ; {
		r, err := in.Next()
		switch {
		case err != nil:
			return GrepFailed(errors.Join(out.Flush(), ctx.Err(), err))
		case r.Volume != nil:
			at = describe(r.Volume)
		case r.Found != nil:
			any = true
			err = show.add(at, r.Found)
		case r.End != nil:
			if err := errors.Join(show.end(r.End), out.Flush()); err != nil {
				return GrepFailed(err)
			}
			return s.endGrep(any, scope, r.End)
		}
		if err == nil && !in.Buffered() {
			err = out.Flush()
		}
		if err != nil {
			return GrepFailed(err)
		}
	}
}

// endGrep says what was not searched, and returns the error of the verb.
func (s *Session) endGrep(any bool, scope GrepScope, end *api.GrepEnd) error {
	missing, incomplete := notSearched(end)
	archived := inArchive(end, scope.Of)
	if any && archived != "" {
		missing = slices.Insert(missing, 0, archived+" (see --archived)")
	}
	if len(missing) > 0 {
		fmt.Fprintf(s.Stderr, "Not searched: %s\n", strings.Join(missing, "; "))
	}
	searched := fmt.Sprintf("%d files of %d volumes, %s", end.Files, end.Volumes, terminal.Size(end.Bytes))
	if archived != "" {
		searched += "; not searched: " + archived + ": see --archived"
	}
	switch {
	case any:
		return nil
	case incomplete:
		return GrepFailed(fmt.Errorf("nothing was found in what was searched, %s", searched))
	}
	if end.Volumes == 0 && archived == "" {
		return WithCode(codeNothingFound, fmt.Errorf("nothing was found: %s", scope.Nothing()))
	}
	return WithCode(codeNothingFound, fmt.Errorf("nothing was found in %s", searched))
}

// inArchive says how many volumes were not searched because they are in the archive alone; empty if that is none.
func inArchive(end *api.GrepEnd, of string) string {
	switch {
	case end.ArchivedMore && end.Archived == 0:
		return "archived volumes" + of + ", it is not known how many"
	case end.ArchivedMore:
		return fmt.Sprintf("more than %d archived volumes%s", end.Archived, of)
	case end.Archived > 0:
		return counted(int(end.Archived), "archived volume", "archived volumes") + of
	}
	return ""
}

// notSearched says what was not searched of what was asked for. incomplete: something may have been found there.
func notSearched(end *api.GrepEnd) (parts []string, incomplete bool) {
	count := func(n int64, one, many string) {
		switch {
		case n == 1:
			parts = append(parts, "1 "+one)
		case n > 1:
			parts = append(parts, fmt.Sprintf("%d %s", n, many))
		}
	}
	count(end.Binary, "file that is no text", "files that are no text")
	certain := len(parts)
	count(end.Unreadable-end.Broken, "file that could not be read", "files that could not be read")
	count(end.Broken, "volume that could not be read", "volumes that could not be read")
	count(end.Deep, "file whose path is too long", "files whose paths are too long")
	count(end.Lost, "volume that went or is used again", "volumes that went or are used again")
	for _, budget := range []struct{ name, what string }{
		{api.StopBytes, "bytes"}, {api.StopFiles, "files"}, {api.StopTime, "time"}, {api.StopLines, "matches"},
	} {
		where, nodes := "where the most of "+budget.what+" was reached", end.Stopped[budget.name]
		if end.ArchiveStopped == budget.name {
			nodes--
			parts = append(parts, "the archive, "+where+", and the volumes of each namespace that were retained first are left")
		}
		count(nodes, "node "+where+", where the volumes that were retained first are left",
			"nodes "+where+", where the volumes that were retained first are left")
	}
	var names []string
	for _, m := range end.Missing {
		if !api.IsNode(m.Node) {
			parts = append(parts, fmt.Sprintf("%s (%s)", m.Node, terminal.Clean(m.Reason)))
			continue
		}
		names = append(names, terminal.Clean(m.Node)+": "+terminal.Clean(m.Reason))
	}
	if n := len(names) + end.MissingMore; n > 0 {
		if end.MissingMore > 0 {
			names = append(names, fmt.Sprintf("and %d more", end.MissingMore))
		}
		parts = append(parts, fmt.Sprintf("%d of %d nodes (%s)", n, max(n, end.Nodes), strings.Join(names, ", ")))
	}
	incomplete = len(parts) > certain
	if end.LongLines > 0 {
		parts = append(parts, fmt.Sprintf("what crosses a multiple of 64 KiB in %d long lines", end.LongLines))
	}
	return parts, incomplete
}

// found shows what is found.
type found interface {
	add(in GrepVolume, f *api.GrepFound) error
	end(*api.GrepEnd) error
}

// foundLines writes lines as grep(1) does.
type foundLines struct {
	out io.Writer
	// shown: it is for a terminal. context: lines beside matches come, too.
	shown, context bool
	// name, file and line are those of the last one.
	name, file string
	line       int64
}

func (l *foundLines) add(in GrepVolume, f *api.GrepFound) error {
	if apart := l.name != in.Name || l.file != f.File || f.Line > l.line+1; l.context && l.line > 0 && apart {
		if _, err := fmt.Fprintln(l.out, "--"); err != nil {
			return err
		}
	}
	l.name, l.file, l.line = in.Name, f.File, f.Line
	text := place(in, f)
	switch {
	case f.Count > 0:
		text = fmt.Sprintf("%s:%d", text, f.Count)
	case f.Line > 0 && f.Context:
		text = fmt.Sprintf("%s-%d-%s", text, f.Line, shownText(f, l.shown))
	case f.Line > 0:
		text = fmt.Sprintf("%s:%d:%s", text, f.Line, shownText(f, l.shown))
	}
	_, err := fmt.Fprintln(l.out, text)
	return err
}

func (l *foundLines) end(*api.GrepEnd) error { return nil }

// shownText is the text of a line, harmless if it is shown on a terminal.
func shownText(f *api.GrepFound, shown bool) string {
	text := f.Text
	if shown {
		parts := strings.Split(text, "\t")
		for i := range parts {
			parts[i] = terminal.Clean(parts[i])
		}
		text = strings.Join(parts, "\t")
	}
	if f.Cut {
		text += "..."
	}
	return text
}

// place is where something was found, as other verbs take it.
func place(in GrepVolume, f *api.GrepFound) string {
	path := ":" + f.File
	if p, err := paths.ParseRef(f.File); err == nil {
		path = FormatPath(p.String(), f.File)
	}
	return terminal.Clean(in.Name) + ":" + path
}

// foundJSON writes each match as a line of JSON.
type foundJSON struct{ out io.Writer }

// grepMatch is a match in JSON.
type grepMatch struct {
	GrepVolume
	*api.GrepFound
}

func (j *foundJSON) add(in GrepVolume, f *api.GrepFound) error {
	return writeLine(j.out, grepMatch{in, f})
}

func (j *foundJSON) end(end *api.GrepEnd) error {
	return writeLine(j.out, map[string]*api.GrepEnd{"end": end})
}

// writeLine writes a value as a line of JSON, harmless on a terminal.
func writeLine(out io.Writer, value any) error {
	text, err := api.Encode(value)
	if err != nil {
		return err
	}
	_, err = out.Write(terminal.JSON(text))
	return err
}

// at is when a line was printed, or else when the pod had ended.
func at(in GrepVolume, f *api.GrepFound) time.Time {
	if f.Time.IsZero() {
		return in.Retained
	}
	return f.Time
}

// before compares times of which the zero one is not known.
func before(a, b time.Time) bool { return !a.IsZero() && (b.IsZero() || a.Before(b)) }

// counted is how many there are, with the word for one or for many.
func counted(n int, one, many string) string {
	return fmt.Sprintf("%d %s", n, cmp.Or(map[int]string{1: one}[n], many))
}
