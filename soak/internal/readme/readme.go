// Package readme replaces one part of a page: what is between the lines
// <!-- name --> and <!-- /name -->.
package readme

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/katbox/katbox/soak/internal/launch"
)

// ErrNoPlace says that a page has no part of that name.
var ErrNoPlace = errors.New("the page has no place for it")

// Part is what is between the two lines. Its lines end with a line end. The error
// wraps [ErrNoPlace] unless both lines are there once, in their order.
func Part(page, name string) (string, error) {
	_, part, _, err := cut(page, name)
	return part, err
}

// Replace puts another part between the two lines. The errors are those of
// [Part].
func Replace(page, name, part string) (string, error) {
	before, _, after, err := cut(page, name)
	return before + part + after, err
}

// cut keeps the two lines with what is around them.
func cut(page, name string) (before, part, after string, err error) {
	line, end := "<!-- "+name+" -->\n", "<!-- /"+name+" -->\n"
	begin := "\n" + line
	before, rest, found := strings.Cut(page, begin)
	part, after, closed := strings.Cut(rest, end)
	if !found || !closed || strings.Contains(after, line) {
		return "", "", "", fmt.Errorf("%w: it has to have the lines <!-- %s --> and <!-- /%s -->, once each and in this order",
			ErrNoPlace, name, name)
	}
	return before + begin, part, end + after, nil
}

// Check makes sure that the file that --readme names has a place for the part: later is too late to find that out. The
// error wraps [launch.ErrUsage], and what kept the file from being read or [ErrNoPlace].
func Check(path, name string) error {
	page, err := os.ReadFile(path)
	if err == nil {
		_, err = Part(string(page), name)
	}
	if err != nil {
		return fmt.Errorf("%w: --readme: %w", launch.ErrUsage, err)
	}
	return nil
}

// Write replaces the part of a file.
func Write(path, name, part string) error {
	page, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	changed, err := Replace(string(page), name, part)
	if err != nil {
		return err
	}
	return os.WriteFile(path, []byte(changed), 0o644)
}
