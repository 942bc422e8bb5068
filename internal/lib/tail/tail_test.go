package tail

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
)

func TestTail(t *testing.T) {
	long := strings.Repeat("x", 3*most)
	tests := []struct {
		name, text string
		lines      int
		atMost     int64
		want       string
	}{
		{"empty", "", 3, 100, ""},
		{"no line", "a\nb\n", 0, 100, ""},
		{"one of two", "a\nb\n", 1, 100, "b\n"},
		{"two of two", "a\nb\n", 2, 100, "a\nb\n"},
		{"three of two", "a\nb\n", 3, 100, "a\nb\n"},
		{"no newline at the end", "a\nb", 1, 100, "b"},
		{"no newline at all", "ab", 1, 100, "ab"},
		{"newlines alone", "\n\n\n", 2, 100, "\n\n"},
		{"one newline", "\n", 1, 100, "\n"},
		{"begins with a newline", "\na", 1, 100, "a"},
		{"a line that is too long", "a\n" + long, 1, 1000, long[:1000]},
		{"nothing allowed", "a\nb\n", 1, 0, ""},
		{"a line over several batches", "a\n" + long + "\n", 1, 1 << 20, long + "\n"},
		{"two of them", "a\n" + long + "\n" + long, 2, 4 << 20, long + "\n" + long},
		{"a newline at the edge of a batch", "a\n" + long[:most], 1, 4 << 20, long[:most]},
		{"a newline behind the edge", "a\n" + long[:most-1] + "\n", 1, 4 << 20, long[:most-1] + "\n"},
		{"holes", "a\n" + strings.Repeat("\x00", 1000), 1, 4 << 20, strings.Repeat("\x00", 1000)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := &counting{Reader: strings.NewReader(tt.text)}
			offset, err := Offset(t.Context(), r, int64(len(tt.text)), tt.lines, tt.atMost)
			if err != nil || tt.text[offset:] != tt.want {
				t.Errorf("from %d: %d bytes, %v; want %d", offset, len(tt.text)-int(offset), err, len(tt.want))
			}
			if r.read > tt.atMost || r.largest > most {
				t.Errorf("%d bytes were read, %d at once", r.read, r.largest)
			}
		})
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Offset(ctx, strings.NewReader("a\n"), 2, 1, 100); !errors.Is(err, context.Canceled) {
		t.Errorf("after cancel: %v", err)
	}
}

// TestTailAsLines compares with a plain search through many texts.
func TestTailAsLines(t *testing.T) {
	for number := range 1 << 12 {
		text := strings.NewReplacer("0", "x", "1", "\n").Replace(fmt.Sprintf("%b", number))
		all := strings.SplitAfter(text, "\n")
		if all[len(all)-1] == "" {
			all = all[:len(all)-1]
		}
		for lines := range 5 {
			want := strings.Join(all[max(0, len(all)-lines):], "")
			offset, err := Offset(t.Context(), strings.NewReader(text), int64(len(text)), lines, 100)
			if err != nil || text[offset:] != want {
				t.Fatalf("the last %d lines of %q: %q, %v; want %q", lines, text, text[offset:], err, want)
			}
		}
	}
}

// counting counts the bytes that are read.
type counting struct {
	*strings.Reader
	read, largest int64
}

func (c *counting) ReadAt(b []byte, offset int64) (int, error) {
	c.read += int64(len(b))
	c.largest = max(c.largest, int64(len(b)))
	return c.Reader.ReadAt(b, offset)
}

var _ io.ReaderAt = (*counting)(nil)
