package mount

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/moby/sys/mountinfo"
)

// parseTable parses a mount table, see proc_pid_mountinfo(5).
//
// The parser is neither that of mount-utils nor moby's, for pods choose names
// that get into the table: a subPath mount shows its directory. The first splits
// lines at every Unicode space, of which the kernel escapes only blanks, tabs and
// newlines, so a carriage return in a name could shift the fields and forge a
// line. The second refuses the whole table when one line of it has 64 KiB, which a
// deep directory reaches.
func parseTable(content string) ([]*mountinfo.Info, error) {
	var table []*mountinfo.Info
	for line := range strings.Lines(content) {
		info, err := parseLine(strings.TrimSuffix(line, "\n"))
		if err != nil {
			return nil, fmt.Errorf("line %.200q: %w", line, err)
		}
		table = append(table, info)
	}
	return table, nil
}

// parseLine parses a line such as
//
//	36 35 98:0 /root /mount/point rw,noatime shared:1 - ext4 /dev/sda1 rw
//
// where any number of optional fields comes before the dash.
func parseLine(line string) (*mountinfo.Info, error) {
	const optional = 6
	fields := strings.Split(line, " ")
	if len(fields) <= optional {
		return nil, errors.New("has too few fields")
	}
	dash := slices.Index(fields[optional:], "-") + optional
	if dash < optional || len(fields) < dash+4 {
		return nil, errors.New("has no file system")
	}
	major, minor, _ := strings.Cut(fields[2], ":")
	var p lineParser
	info := &mountinfo.Info{
		ID:         p.number(fields[0]),
		Parent:     p.number(fields[1]),
		Major:      p.number(major),
		Minor:      p.number(minor),
		Root:       p.unescape(fields[3]),
		Mountpoint: p.unescape(fields[4]),
		Options:    fields[5],
		Optional:   strings.Join(fields[optional:dash], " "),
		// What file systems write here is theirs, and nothing hangs on it.
		FSType:     unescapeLoosely(fields[dash+1]),
		Source:     unescapeLoosely(fields[dash+2]),
		VFSOptions: fields[dash+3],
	}
	return info, p.err
}

// lineParser keeps the last error.
type lineParser struct{ err error }

func (p *lineParser) number(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		p.err = err
	}
	return n
}

// unescape undoes what the kernel does to some characters: a backslash and
// three octal digits stand for one byte.
func (p *lineParser) unescape(s string) string {
	var name strings.Builder
	for {
		before, escaped, found := strings.Cut(s, `\`)
		if !found && name.Len() == 0 {
			return s
		}
		name.WriteString(before)
		if !found {
			return name.String()
		}
		digits := escaped[:min(3, len(escaped))]
		b, err := strconv.ParseUint(digits, 8, 8)
		if err != nil || len(digits) < 3 {
			p.err = fmt.Errorf("\\%s is no byte", digits)
			return ""
		}
		name.WriteByte(byte(b))
		s = escaped[3:]
	}
}

// unescapeLoosely keeps what does not follow the kernel's own rule as it is.
func unescapeLoosely(s string) string {
	var p lineParser
	if unescaped := p.unescape(s); p.err == nil {
		return unescaped
	}
	return s
}
