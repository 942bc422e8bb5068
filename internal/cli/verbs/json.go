package verbs

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/katbox/katbox/internal/model/terminal"
)

// Items writes a list in JSON, of any length.
type Items[T any] struct {
	w     io.Writer
	begin string
	close string
	count int
}

// NewItems returns a list that is written to w. begin and end are the text around its items.
func NewItems[T any](w io.Writer, begin, end string) *Items[T] {
	return &Items[T]{w: w, begin: begin, close: end}
}

// Write writes more items.
func (i *Items[T]) Write(page []T) error {
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

// End writes the end of the list.
func (i *Items[T]) End() error {
	begin := ""
	if i.count == 0 {
		begin = i.begin
	}
	_, err := fmt.Fprint(i.w, begin+i.close)
	return err
}

// Known returns text, or what stands for a name that is not known.
func Known(text string) string { return cmp.Or(text, terminal.Unknown) }

// WriteJSON writes one value, indented.
func (s *Session) WriteJSON(value any) error {
	text, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(s.Stdout, "%s\n", terminal.JSON(text))
	return err
}

// Moment returns a time as people read it in full.
func Moment(t time.Time) string {
	if t.IsZero() {
		return terminal.Unknown
	}
	return t.UTC().Format(time.RFC3339)
}
