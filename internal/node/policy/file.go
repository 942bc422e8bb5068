package policy

import (
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"regexp"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/yaml"

	"github.com/katbox/katbox/internal/model/api"
	"github.com/katbox/katbox/internal/model/duration"
	"github.com/katbox/katbox/internal/model/volume"
)

// MaxFile is how large a policy file may be, in bytes: as large as a ConfigMap.
const MaxFile = 1 << 20

// file is the policy file. All that is not set is as the flags have it.
type file struct {
	Namespaces *[]fileEntry `json:"namespaces"`
}

type fileEntry struct {
	Match             []string  `json:"match"`
	Lifespan          *text     `json:"lifespan"`
	LifespanSucceeded *text     `json:"lifespanSucceeded"`
	MaxLifespan       *text     `json:"maxLifespan"`
	SizeLimit         *text     `json:"sizeLimit"`
	MaxSizeLimit      *text     `json:"maxSizeLimit"`
	InodeLimit        *text     `json:"inodeLimit"`
	MaxInodeLimit     *text     `json:"maxInodeLimit"`
	Retain            []string  `json:"retain"`
	MaxRetained       *fileSize `json:"maxRetained"`
	MaxPerOwner       *filePods `json:"maxPerOwner"`
	Attach            *bool     `json:"attach"`
	Logs              *bool     `json:"logs"`
	Archive           *string   `json:"archive"`
	MaxArchive        *string   `json:"maxArchive"`
}

type fileSize struct {
	Bytes  *text `json:"bytes"`
	Inodes *text `json:"inodes"`
}

type filePods struct {
	First int `json:"first"`
	Last  int `json:"last"`
}

// text is a string, or a number as it is written.
type text string

// UnmarshalJSON takes a string or a number.
func (t *text) UnmarshalJSON(b []byte) error {
	switch b[0] {
	case '"':
		return json.Unmarshal(b, (*string)(t))
	case '{', '[', 'n', 't', 'f':
		return errors.New("a value is neither a string nor a number")
	}
	*t = text(b)
	return nil
}

// anotherDocument finds what the decoder would leave out.
var anotherDocument = regexp.MustCompile(`(?m)^(---|\.\.\.)([ \t\r]|$)`)

// Parse returns the policy of a file: bounds by namespace, and those of the flags for all else. The
// error says in one line which entry is wrong.
func Parse(flags Bounds, content []byte) (*Policy, error) {
	p, err := New(flags)
	if err != nil {
		return nil, err
	}
	if len(content) > MaxFile {
		return nil, fmt.Errorf("is larger than %d bytes", MaxFile)
	}
	if marks := anotherDocument.FindAllIndex(content, 2); len(marks) > 1 ||
		len(marks) == 1 && strings.TrimSpace(string(content[:marks[0][0]])) != "" {
		return nil, errors.New("has more than one document")
	}
	var f file
	if err := yaml.UnmarshalStrict(content, &f); err != nil {
		return nil, errors.New(shortened(err))
	}
	if f.Namespaces == nil {
		return nil, errors.New("has no list with the name namespaces; for the same bounds everywhere write namespaces: []")
	}
	for i, e := range *f.Namespaces {
		read, err := e.entry(flags)
		if err != nil {
			return nil, fmt.Errorf("namespaces[%d] %.200q: %w", i, e.Match, err)
		}
		p.entries = append(p.entries, read)
	}
	return p, nil
}

// shortened is an error of the decoder in one line: it repeats what it does not understand.
func shortened(err error) string {
	line := strings.ToValidUTF8(volume.OneLine(err), "?")
	for _, of := range []string{"error unmarshaling JSON: while decoding JSON: ", "error converting YAML to JSON: "} {
		line = strings.TrimPrefix(line, of)
	}
	if runes := []rune(line); len(runes) > 300 {
		line = string(runes[:300]) + "..."
	}
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return '?'
		}
		return r
	}, line)
}

// glob is what a pattern of namespaces may consist of.
var glob = regexp.MustCompile(`^[-a-z0-9*?]{1,63}$`)

func (f fileEntry) entry(flags Bounds) (entry, error) {
	if len(f.Match) == 0 {
		return entry{}, errors.New("match is missing: give names of namespaces, such as [ci, team-*]")
	}
	for _, pattern := range f.Match {
		if _, err := path.Match(pattern, ""); err != nil || !glob.MatchString(pattern) {
			return entry{}, fmt.Errorf("match: %.100q is not the name of a namespace, with * for any characters and ? for one", pattern)
		}
	}
	b := flags
	var r reader
	f.lifespans(&b, &r)
	r.quantity("sizeLimit", f.SizeLimit, &b.Limit.Bytes)
	r.quantity("maxSizeLimit", f.MaxSizeLimit, &b.MaxLimit.Bytes)
	r.quantity("inodeLimit", f.InodeLimit, &b.Limit.Inodes)
	r.quantity("maxInodeLimit", f.MaxInodeLimit, &b.MaxLimit.Inodes)
	meet(f.SizeLimit, f.MaxSizeLimit, &b.Limit.Bytes, &b.MaxLimit.Bytes)
	meet(f.InodeLimit, f.MaxInodeLimit, &b.Limit.Inodes, &b.MaxLimit.Inodes)
	if f.MaxRetained != nil {
		r.quantity("maxRetained.bytes", f.MaxRetained.Bytes, &b.MaxRetained.Bytes)
		r.quantity("maxRetained.inodes", f.MaxRetained.Inodes, &b.MaxRetained.Inodes)
	}
	if f.MaxPerOwner != nil {
		b.PerOwner = volume.PerOwner(*f.MaxPerOwner)
	}
	if f.Attach != nil {
		b.NoAttach = !*f.Attach
	}
	if f.Logs != nil {
		b.NoLogs = !*f.Logs
	}
	f.archive(flags, &b, &r)
	if f.Retain != nil {
		b.Retain = nil
		r.retain(f.Retain, &b.Retain)
	}
	if r.err == nil {
		r.err = b.Check()
	}
	match := make([]pattern, len(f.Match))
	for i := range match {
		match[i] = newPattern(f.Match[i])
	}
	return entry{match: match, bounds: b}, r.err
}

// lifespans reads the three lifespans. An entry that sets one of lifespan and maxLifespan moves the
// other one of the flags as far as needed.
func (f fileEntry) lifespans(b *Bounds, r *reader) {
	r.duration("lifespan", f.Lifespan, &b.Lifespan)
	r.duration("maxLifespan", f.MaxLifespan, &b.MaxLifespan)
	switch {
	case f.MaxLifespan == nil && f.Lifespan != nil:
		b.MaxLifespan = b.Lifespan
	case f.Lifespan == nil:
		b.Lifespan = min(b.Lifespan, b.MaxLifespan)
	}
	b.LifespanSucceeded = min(b.LifespanSucceeded, b.Lifespan)
	r.duration("lifespanSucceeded", f.LifespanSucceeded, &b.LifespanSucceeded)
}

// archive reads what is archived. An entry that sets one of archive and maxArchive moves the other one of the flags as far as
// needed. With a flag that archives nothing, nothing is.
func (f fileEntry) archive(flags Bounds, b *Bounds, r *reader) {
	r.archive("archive", f.Archive, &b.Archive)
	r.archive("maxArchive", f.MaxArchive, &b.MaxArchive)
	switch {
	case flags.MaxArchive == volume.ArchiveNever:
		b.Archive, b.MaxArchive = volume.ArchiveNever, volume.ArchiveNever
	case f.MaxArchive == nil:
		b.MaxArchive = max(b.Archive, b.MaxArchive)
	case f.Archive == nil:
		b.Archive = min(b.Archive, b.MaxArchive)
	}
}

// meet moves the one of the flags' default and most that an entry does not set.
func meet(limitSet, mostSet *text, limit, most *int64) {
	switch {
	case *most == 0 || *limit <= *most:
	case mostSet == nil:
		*most = *limit
	case limitSet == nil:
		*limit = *most
	}
}

// reader reads values until one is wrong.
type reader struct{ err error }

func (r *reader) duration(key string, from *text, to *time.Duration) {
	if from == nil || r.err != nil {
		return
	}
	d, err := duration.Parse(string(*from))
	switch {
	case err != nil:
		r.err = fmt.Errorf("%s %.100q is %w", key, string(*from), err)
	case d <= 0:
		r.err = fmt.Errorf("%s %.100q is not longer than 0", key, string(*from))
	}
	*to = d
}

func (r *reader) quantity(key string, from *text, to *int64) {
	if from == nil || r.err != nil {
		return
	}
	n, err := ParseQuantity(string(*from))
	if err != nil {
		r.err = fmt.Errorf("%s %w", key, err)
	}
	*to = n
}

func (r *reader) retain(from []string, to *[]volume.Retain) {
	if r.err == nil && len(from) == 0 {
		r.err = errors.New("retain is empty: list what pods may choose from")
	}
	for _, word := range from {
		retain, ok := parseRetain(word)
		if !ok && r.err == nil {
			r.err = fmt.Errorf("retain: %.100q is not Always, OnFailure or Never", word)
		}
		*to = append(*to, retain)
	}
}

func (r *reader) archive(key string, from *string, to *volume.Archive) {
	if from == nil || r.err != nil {
		return
	}
	archive, ok := volume.ParseArchive(*from)
	if !ok {
		r.err = fmt.Errorf("%s %.100q is not Always, OnFailure or Never", key, *from)
	}
	*to = archive
}

// ParseQuantity reads what an administrator sets as a limit of bytes or inodes, rounded up; 0 is none.
// Its error quotes the text.
func ParseQuantity(text string) (int64, error) {
	q, err := resource.ParseQuantity(text)
	if err != nil || q.Sign() < 0 || q.Cmp(resource.MustParse(api.MostBytes)) > 0 {
		return 0, fmt.Errorf("%.100q is not a quantity from 0 to %s, such as 10Gi", text, api.MostBytes)
	}
	return q.Value(), nil
}
