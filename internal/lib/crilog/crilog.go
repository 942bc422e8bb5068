// Package crilog reads what a container runtime writes of a container's output, in the format of the kubelet's logs of
// containers: in each line a time, stdout or stderr, P for a part of a line or F for a whole one or its end, and the text.
//
// A container chooses what it prints, so a line may have any length and any bytes. [Reader] holds no more than 64 KiB of
// one. What has not the format is left out, as the kubelet does.
package crilog

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"time"
)

const (
	// piece is how many bytes of a line are held at most.
	piece = 64 << 10
	// longestHead is how long what comes before the text of a line may be.
	longestHead = 128
)

// Piece is a line of a log, or a part of one.
type Piece struct {
	// Time is when the runtime read it.
	Time time.Time
	// Text is what the container printed, with the newline at the end of its line. It is valid until the next call.
	Text []byte
}

// Ends reports whether the line that the container printed ends with the piece.
func (p Piece) Ends() bool { return len(p.Text) == 0 || p.Text[len(p.Text)-1] == '\n' }

// Reader reads a log piece by piece.
type Reader struct {
	in *bufio.Reader
	// within: the last piece was not the end of a line of the log. It has that line's time, and whether its newline is none
	// of the container's.
	within  bool
	time    time.Time
	partial bool
	// leftOut: the line has not the format.
	leftOut bool
	// strange counts the lines without the format.
	strange int
}

// NewReader returns a reader of a log.
func NewReader(in io.Reader) *Reader { return &Reader{in: bufio.NewReaderSize(in, piece)} }

// Strange counts the lines that were left out so far.
func (r *Reader) Strange() int { return r.strange }

// Next returns the next piece. The error is io.EOF at the end.
func (r *Reader) Next() (Piece, error) {
	for {
		read, err := r.in.ReadSlice('\n')
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) && (len(read) == 0 || !errors.Is(err, io.EOF)) {
			return Piece{}, err
		}
		begins := !r.within
		r.within = err != nil && !errors.Is(err, io.EOF)
		if begins {
			var ok bool
			if r.time, r.partial, read, ok = head(read); !ok {
				r.strange++
			}
			r.leftOut = !ok
		}
		if r.leftOut {
			continue
		}
		if r.partial {
			read = bytes.TrimSuffix(read, []byte("\n"))
		}
		if len(read) == 0 && !begins {
			continue // the newline alone, which is the runtime's
		}
		return Piece{Time: r.time, Text: read}, nil
	}
}

// head reads what comes before the text.
func head(line []byte) (at time.Time, partial bool, text []byte, ok bool) {
	first := line[:min(len(line), longestHead)]
	stamp, rest, found := bytes.Cut(first, []byte(" "))
	if !found {
		return at, false, nil, false
	}
	at, err := time.Parse(time.RFC3339Nano, string(stamp))
	// JSON and RFC 3339 have no other years, and no runtime prints them.
	if err != nil || at.UTC().Year() < 1 || at.UTC().Year() > 9999 {
		return at, false, nil, false
	}
	stream, rest, found := bytes.Cut(rest, []byte(" "))
	if !found || string(stream) != "stdout" && string(stream) != "stderr" {
		return at, false, nil, false
	}
	tags, _, found := bytes.Cut(rest, []byte(" "))
	if !found {
		return at, false, nil, false
	}
	tag, _, _ := bytes.Cut(tags, []byte(":"))
	return at, string(tag) == "P", line[len(stamp)+1+len(stream)+1+len(tags)+1:], true
}
