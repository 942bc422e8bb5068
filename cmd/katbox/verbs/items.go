package verbs

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/katbox/katbox/internal/terminal"
)

// items writes a list in JSON, of any length.
type items[T any] struct {
	w     io.Writer
	begin string
	close string
	count int
}

func newItems[T any](w io.Writer, begin, end string) *items[T] {
	return &items[T]{w: w, begin: begin, close: end}
}

func (i *items[T]) write(page []T) error {
	for _, item := range page {
		text, err := json.Marshal(item)
		if err != nil {
			return err
		}
		separator := ",\n"
		if i.count == 0 {
			separator = i.begin + "\n"
		}
		i.count++
		if _, err := fmt.Fprintf(i.w, "%s%s", separator, terminal.JSON(text)); err != nil {
			return err
		}
	}
	return nil
}

func (i *items[T]) end() error {
	begin := ""
	if i.count == 0 {
		begin = i.begin
	}
	_, err := fmt.Fprint(i.w, begin+i.close)
	return err
}

// known returns text, or what stands for a name that is not known.
func known(text string) string { return cmp.Or(text, terminal.Unknown) }

// at returns the time that t points to, or the zero time.
func at(t *time.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return *t
}

// writeJSON writes one value, indented.
func (s *session) writeJSON(value any) error {
	text, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(s.stdout, "%s\n", terminal.JSON(text))
	return err
}

// moment returns a time as people read it in full.
func moment(t time.Time) string {
	if t.IsZero() {
		return terminal.Unknown
	}
	return t.UTC().Format(time.RFC3339)
}
