package main

import (
	"fmt"
	"io"
	"regexp"
	"strings"

	"github.com/katbox/katbox/soak/internal/readme"
)

// readmePart is the name of the part of a page where the transcript is.
const readmePart = "demo"

// transcript is what the reader sees, and all of it so far.
type transcript struct {
	out  io.Writer
	text strings.Builder
}

// say prints a sentence or two on a line of their own, after an empty line.
func (t *transcript) say(format string, args ...any) {
	if t.text.Len() > 0 {
		t.print("\n")
	}
	t.print(fmt.Sprintf(format, args...) + "\n")
}

// command prints a command as it is typed.
func (t *transcript) command(words ...string) { t.print("$ " + strings.Join(words, " ") + "\n") }

// print prints a text as it is.
func (t *transcript) print(text string) {
	t.text.WriteString(text)
	fmt.Fprint(t.out, text)
}

// writeReadme puts the transcript into a page.
func (t *transcript) writeReadme(path string) error {
	if err := readme.Write(path, readmePart, block(t.text.String())); err != nil {
		return fmt.Errorf("write the transcript: %w", err)
	}
	return nil
}

// block is the transcript as a page shows it. The first line is what the reader
// types.
func block(text string) string { return "```\n$ make demo\n" + text + "```\n" }

// varying is what differs from run to run, and what stands for it.
var varying = []struct {
	pattern *regexp.Regexp
	instead string
}{
	// An age, a lifespan or what is left of it: 9s, 1m30s.
	{regexp.MustCompile(`\b(\d+[hms])+\b`), "<time>"},
	// When a file was written: 2026-11-22 03:04, 2026-11-22T03:04:05Z.
	{regexp.MustCompile(`\b\d{4}-\d\d-\d\d[ T]\d\d:\d\d(:\d\d)?Z?\b`), "<date>"},
	// What files take on the disk depends on the size of a page of memory.
	{regexp.MustCompile(`\b\d+(\.\d+)? (B|KiB|MiB)(\b|$)`), "<size>"},
	// The columns of a table are as wide as the widest value.
	{regexp.MustCompile(` {2,}`), "  "},
	{regexp.MustCompile(`(?m) +$`), ""},
}

// normal is a transcript without what differs from run to run: times, dates,
// sizes, and the width of columns. Names, commands, counts and the order of lines
// stay.
func normal(text string) string {
	for _, v := range varying {
		text = v.pattern.ReplaceAllString(text, v.instead)
	}
	return text
}
