package files

import (
	"strconv"
	"strings"

	"github.com/katbox/katbox/internal/lib/paths"
)

// step is a name on the way from the directory of a list to an entry.
type step struct {
	name string
	// position is the one behind the name in a directory that comes in its own order, and sorted in any other.
	position int64
}

// sorted is the position of names in directories that are sorted.
const sorted = -1

// ref returns a way as a text that continues a list behind its end: the refs of the names, and behind those of a
// directory in its own order a semicolon, which no ref has, and the position.
func ref(way []step) string {
	var text strings.Builder
	for i, s := range way {
		if i > 0 {
			text.WriteByte('/')
		}
		text.WriteString(paths.Path{}.Join(s.name).Ref())
		if s.position != sorted {
			text.WriteString(";" + strconv.FormatInt(s.position, 36))
		}
	}
	return text.String()
}

// parseWay is the reverse of ref; an empty text is no way at all.
func parseWay(text string) (way []step, ok bool) {
	if text == "" {
		return nil, true
	}
	if len(text) > 4*paths.Max {
		return nil, false
	}
	for element := range strings.SplitSeq(text, "/") {
		name, position, own := strings.Cut(element, ";")
		p, err := paths.ParseRef(name)
		s := step{p.String(), sorted}
		if own && err == nil {
			s.position, err = strconv.ParseInt(position, 36, 64)
		}
		if err != nil || p.IsTop() || own && s.position < 0 {
			return nil, false
		}
		way = append(way, s)
	}
	return way, true
}
