package api

import (
	"cmp"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"time"
)

const (
	// GrepPath is where retained volumes are searched.
	GrepPath = "/v1/grep"
	// LevelGrep is the HeaderLevel of a daemon that knows it.
	LevelGrep = "3"
	// MostGrepContext is how many lines beside a match can be asked for.
	MostGrepContext = 20
	// MostGrepLines is how many matches one node tells.
	MostGrepLines = 100_000
	// MostGrepText is how much of a line is told, in bytes.
	MostGrepText = 2 << 10
)

// What a search tells of the files in which something matches.
const (
	TellLines = "lines"
	TellCount = "count"
	TellFiles = "files"
)

// Grep is what is looked for, and what is told of it.
type Grep struct {
	// Pattern is a regular expression of RE2; IgnoreCase lets it match letters of either case.
	Pattern    string
	IgnoreCase bool
	// Files is a pattern of the paths of files; see [ParseGlob]. Empty is all files.
	Files string
	// Tell is one of TellLines, TellCount and TellFiles. Empty is TellLines.
	Tell string
	// Context is how many lines before and behind each match are told, too.
	Context int
	// MaxBytes bounds how much each node reads; 0 is the bound of the node.
	MaxBytes int64
}

// GrepParameters are the names of the parameters that [ParseGrep] reads.
var GrepParameters = []string{"grep", "ignoreCase", "files", "tell", "context", "maxBytes"}

// Values returns the parameters of a request.
func (g Grep) Values() url.Values {
	v := url.Values{"grep": {g.Pattern}}
	if g.IgnoreCase {
		v.Set("ignoreCase", "true")
	}
	set(v, "files", g.Files)
	set(v, "tell", g.Tell)
	setNumber(v, "context", int64(g.Context))
	setNumber(v, "maxBytes", g.MaxBytes)
	return v
}

// ParseGrep reads the parameters of a request. Others are the caller's.
func ParseGrep(v url.Values) (g Grep, err *Error) {
	for _, name := range GrepParameters {
		if len(v[name]) > 1 {
			return g, badGrep(name, "the parameter %s is given %d times; give it once", name, len(v[name]))
		}
	}
	g = Grep{Pattern: v.Get("grep"), Files: v.Get("files"), Tell: cmp.Or(v.Get("tell"), TellLines)}
	switch text := v.Get("ignoreCase"); text {
	case "", "false":
	case "true":
		g.IgnoreCase = true
	default:
		return g, badGrep("ignoreCase", "ignoreCase=%q is neither true nor false", text)
	}
	if !slices.Contains([]string{TellLines, TellCount, TellFiles}, g.Tell) {
		return g, badGrep("tell", "tell=%q is none of %s, %s and %s", g.Tell, TellLines, TellCount, TellFiles)
	}
	if text := v.Get("context"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 0 || n > MostGrepContext {
			return g, badGrep("context", "context=%q is not a number between 0 and %d", text, MostGrepContext)
		}
		g.Context = n
	}
	if text := v.Get("maxBytes"); text != "" {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || n < 1 {
			return g, badGrep("maxBytes", "maxBytes=%q is not a number of bytes", text)
		}
		g.MaxBytes = n
	}
	return g, nil
}

// badGrep says which parameter is wrong.
func badGrep(field, format string, values ...any) *Error {
	e := NewError(BadRequest, format, values...)
	e.Details = &Details{Causes: []Cause{{Reason: BadParameter, Message: e.Message, Field: field}}}
	return e
}

// GrepQuery asks a node which lines of its retained volumes match.
type GrepQuery struct {
	Grep
	// Query selects the volumes as a list does; its Continue and Limit are not used.
	Query
	// ID selects one volume.
	ID string
}

func (q GrepQuery) values() url.Values {
	q.Continue, q.Limit = "", 0
	v := q.Query.values()
	maps.Copy(v, q.Values())
	set(v, "id", q.ID)
	return v
}

// GrepRecord is a line of the answer to a search. One of its fields is set. V describes a volume.
type GrepRecord[V any] struct {
	// Volume is where all is that was found until the next one. The same one may come again.
	Volume *V         `json:"volume,omitempty"`
	Found  *GrepFound `json:"found,omitempty"`
	// Progress comes every few seconds.
	Progress *GrepSums `json:"progress,omitempty"`
	// End is the last record. An answer without it was cut.
	End *GrepEnd `json:"end,omitempty"`
}

// GrepFound is what was found in a file: a line, or what else was to be told.
type GrepFound struct {
	// File is the ref of the file.
	File string `json:"file"`
	// Line counts from 1. Text is the line without its end; bytes that are not UTF-8 are replaced. Cut: it is longer.
	Line int64  `json:"line,omitempty"`
	Text string `json:"text,omitempty"`
	Cut  bool   `json:"cut,omitempty"`
	// Context: the line does not match, and is near one that does.
	Context bool `json:"context,omitempty"`
	// Time is when the line was printed, if it is one of a container's log.
	Time time.Time `json:"time,omitzero"`
	// Count is how many lines of the file match, with [TellCount].
	Count int64 `json:"count,omitempty"`
}

// GrepSums say how much was searched, and what was not.
type GrepSums struct {
	// Volumes, Files and Bytes were searched, and Lines match.
	Volumes int64 `json:"volumes"`
	Files   int64 `json:"files"`
	Bytes   int64 `json:"bytes"`
	Lines   int64 `json:"lines"`
	// Binary are files that are no text. What they have behind their first NUL was not searched.
	Binary int64 `json:"binary,omitempty"`
	// Unreadable are files and volumes that could not be read, Broken those of them that are volumes, and Deep files whose path is too
	// long.
	Unreadable int64 `json:"unreadable,omitempty"`
	Broken     int64 `json:"broken,omitempty"`
	Deep       int64 `json:"deep,omitempty"`
	// LongLines were searched in pieces of 64 KiB.
	LongLines int64 `json:"longLines,omitempty"`
	// Lost are volumes that a pod used again, or that went, before their end.
	Lost int64 `json:"lost,omitempty"`
	// Stopped says how many nodes have used up a budget: StopBytes, StopFiles, StopTime or StopLines. They have not
	// searched the volumes that were retained first.
	Stopped map[string]int64 `json:"stopped,omitempty"`
}

// The budgets of a search on a node.
const (
	StopBytes = "bytes"
	StopFiles = "files"
	StopTime  = "time"
	StopLines = "lines"
)

// Break notes that a volume could not be read.
func (s *GrepSums) Break() {
	s.Unreadable++
	s.Broken++
}

// Stop notes that a budget is used up.
func (s *GrepSums) Stop(budget string) {
	if s.Stopped == nil {
		s.Stopped = map[string]int64{}
	}
	s.Stopped[budget]++
}

// mostSum is more than is searched of anything.
const mostSum = 1 << 50

// Add adds what a node says, which may be made up.
func (s *GrepSums) Add(more GrepSums) {
	for _, sum := range []struct {
		to   *int64
		more int64
	}{
		{&s.Volumes, more.Volumes}, {&s.Files, more.Files}, {&s.Bytes, more.Bytes}, {&s.Lines, more.Lines}, {&s.Binary, more.Binary},
		{&s.Unreadable, more.Unreadable}, {&s.Broken, more.Broken}, {&s.Deep, more.Deep}, {&s.LongLines, more.LongLines}, {&s.Lost, more.Lost},
	} {
		*sum.to = min(*sum.to+min(max(sum.more, 0), mostSum), mostSum)
	}
	for _, budget := range []string{StopBytes, StopFiles, StopTime, StopLines} {
		if more.Stopped[budget] > 0 {
			s.Stop(budget)
		}
	}
}

// GrepEnd ends an answer.
type GrepEnd struct {
	GrepSums
	// Nodes are those of the cluster. Missing are nodes whose volumes were not searched, or not all: at most 20; MissingMore
	// is how many more there are. A node says nothing about others.
	Nodes       int           `json:"nodes,omitempty"`
	Missing     []GrepMissing `json:"missing,omitempty"`
	MissingMore int           `json:"missingMore,omitempty"`
	// Archived are volumes that are in the archive alone and were not searched, since that was not asked for. ArchivedMore: there
	// are or may be more. A node says nothing about them.
	Archived     int64 `json:"archived,omitempty"`
	ArchivedMore bool  `json:"archivedMore,omitempty"`
	// ArchiveStopped is the budget that was used up in the archive, where Stopped counts it as on a node: of each namespace the
	// volumes that were retained first were not searched.
	ArchiveStopped string `json:"archiveStopped,omitempty"`
}

// GrepMissing is a node whose volumes were not searched.
type GrepMissing struct {
	Node   string `json:"node"`
	Reason string `json:"reason"`
}
