package server

import (
	"context"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/katbox/katbox/internal/model/api"
	"github.com/katbox/katbox/internal/model/resource"
	"github.com/katbox/katbox/internal/model/sealed"
)

const (
	// maxRange bounds the headers Range and If-Range, in bytes.
	maxRange = 256
)

// reading is what a request for bytes asks for.
type reading struct {
	// values are the parameters for the node, header the headers.
	values url.Values
	header http.Header
	// archive says that it is a tar, and gzip that it is compressed here.
	archive, gzip bool
	// word is what the node seals an archive with, and seal that the client gets it sealed, too.
	word string
	seal bool
}

// readingOf reads the parameters of a request for bytes. The node checks the values of those that it
// gets.
func readingOf(r *http.Request, values url.Values) (reading, *apierrors.StatusError) {
	var q reading
	values, wrong := only(values, "path", "offset", "limit", "tailLines", "tailBytes", "archive", "compress", "exclude", "maxBytes")
	if wrong != nil {
		return q, wrong
	}
	if !values.Has("path") {
		return q, resource.BadRequest(api.BadPath, "path", "the parameter path is missing; it is the ref of an entry in the list of files")
	}
	compress, wrong := once(values, "compress")
	if wrong != nil {
		return q, wrong
	}
	q.values, q.header, q.archive = values, http.Header{}, values.Get("archive") != ""
	values.Del("compress")
	if q.archive {
		if q.word, q.seal = r.Header.Get(sealed.Header), true; q.word == "" {
			q.word, q.seal = sealed.NewWord(), false
		}
		if !sealed.ValidWord(q.word) {
			return q, badParameter("", "the header %s has to be 16 to 64 letters and digits", sealed.Header)
		}
		q.header.Set(sealed.Header, q.word)
	}
	switch {
	case compress == "" || compress == "none":
	case compress != "gzip":
		return q, badParameter("compress", "compress=%q is not possible; there are gzip and none", compress)
	case !q.archive:
		return q, badParameter("compress", "compress is for archives; add archive=tar")
	default:
		// A range of what is compressed cannot be sent, so the whole is.
		q.gzip = true
		return q, nil
	}
	for _, name := range []string{"Range", "If-Range"} {
		if text := r.Header.Get(name); len(text) > maxRange {
			return q, badParameter("", "the header %s has more than %d bytes", name, maxRange)
		} else if text != "" {
			q.header.Set(name, text)
		}
	}
	return q, nil
}

// log streams a file, a part of it, or an archive.
func (c *call) log(values url.Values) error {
	q, wrong := readingOf(c.r, values)
	if wrong != nil {
		return wrong
	}
	if err := context.Cause(c.s.stopping); err != nil {
		return err
	}
	release, refused := c.s.streams.take(c.who.GetName())
	if refused != nil {
		return refused
	}
	defer release()
	out := newOutput(c)
	defer out.end()
	found, node, err := c.reach(out.during)
	if err != nil {
		return out.cause(err)
	}
	waiting := time.AfterFunc(c.s.begin, func() { out.cut(context.DeadlineExceeded) })
	defer waiting.Stop()
	answer, err := node.Send(out.during, c.r.Method, api.BytesPath(found.Volume.ID), q.values, q.header)
	if err != nil {
		return &nodeError{out.cause(err)}
	}
	defer answer.Body.Close()
	if answer.StatusCode >= http.StatusBadRequest {
		// A node that does not come to the end of an error delays no other request.
		return &nodeError{out.cause(c.refusal(node, answer))}
	}
	if !waiting.Stop() {
		return &nodeError{out.cause(context.DeadlineExceeded)}
	}
	return c.pass(answer, q, out)
}

// refusal returns the error that a node has answered with.
func (c *call) refusal(node *api.Client, answer *http.Response) error {
	text := answer.Header.Get("Content-Range")
	if answer.StatusCode == http.StatusRequestedRangeNotSatisfiable && validUnsatisfied.MatchString(text) {
		c.Header().Set("Content-Range", text)
	}
	return node.ReadError(answer)
}

// pass sends what a node has answered.
func (c *call) pass(answer *http.Response, q reading, out *output) error {
	switch code := answer.StatusCode; {
	case code != http.StatusOK && code != http.StatusPartialContent:
		return resource.Internal(c.what.Name, "node %q answered with the HTTP status %d, which was not expected", c.node, code)
	case !q.archive && answer.ContentLength < 0:
		return resource.Internal(c.what.Name, "the answer of node %q does not say how long the file is", c.node)
	case q.archive && answer.Header.Get(sealed.Header) != q.word:
		return resource.Unavailable(c.what.Name,
			"the daemon of node %q is of an older version, whose archives do not prove that they are complete; try again when it is updated",
			c.node)
	}
	c.bytesHeader(answer, q)
	if err := out.begin(); err != nil {
		return err
	}
	c.s.Metrics.StreamBegan()
	defer c.s.Metrics.StreamEnded()
	c.stream = !q.gzip
	c.WriteHeader(answer.StatusCode)
	if c.r.Method == http.MethodHead {
		return nil
	}
	if q.archive {
		return out.cause(out.archive(answer, q))
	}
	return out.cause(out.copy(answer.Body, out, func() error { return c.Control.Flush() }))
}

// The forms of a node's headers that are passed on.
var (
	validDisposition = regexp.MustCompile(`^attachment; filename="[A-Za-z0-9._~ -]+"; filename\*=UTF-8''[A-Za-z0-9._~%-]+$`)
	validTag         = regexp.MustCompile(`^"[!#-~]{1,128}"$`)
	validNumber      = regexp.MustCompile(`^[0-9]{1,19}$`)
	validRange       = regexp.MustCompile(`^bytes [0-9]{1,19}-[0-9]{0,19}/([0-9]{1,19}|\*)$`)
	validUnsatisfied = regexp.MustCompile(`^bytes \*/[0-9]{1,19}$`)
)

// noName is the Content-Disposition if the node's cannot be passed on.
const noName = `attachment; filename="volume"; filename*=UTF-8''volume`

// contentTypes are those that bytes may have. A browser shows none of them as a document.
var contentTypes = map[string]bool{"text/plain; charset=utf-8": true, "application/x-tar": true}

// bytesHeader sets the header of a stream from that of the node's answer.
func (c *call) bytesHeader(answer *http.Response, q reading) {
	header, from := c.Header(), answer.Header
	pass := func(name string, valid *regexp.Regexp, instead string) {
		if text := from.Get(name); valid.MatchString(text) {
			header.Set(name, text)
		} else if instead != "" {
			header.Set(name, instead)
		}
	}
	header.Set(api.HeaderNode, headerText(c.node))
	header.Set("Content-Type", "application/octet-stream")
	if text := from.Get("Content-Type"); contentTypes[text] {
		header.Set("Content-Type", text)
	}
	pass("Content-Disposition", validDisposition, noName)
	if q.seal {
		header.Set(sealed.Header, q.word)
	}
	if q.gzip {
		header.Set("Content-Type", "application/gzip")
		header.Set("Content-Disposition", strings.NewReplacer(`"; `, `.gz"; `).Replace(header.Get("Content-Disposition"))+".gz")
		header.Set("Accept-Ranges", "none")
		return
	}
	header.Set("Accept-Ranges", "bytes")
	pass("ETag", validTag, "")
	pass(api.HeaderSize, validNumber, "")
	pass(api.HeaderOffset, validNumber, "")
	c.from, _ = strconv.ParseInt(header.Get(api.HeaderOffset), 10, 64)
	if answer.StatusCode == http.StatusPartialContent {
		pass("Content-Range", validRange, "")
	}
	if !q.archive {
		header.Set("Content-Length", strconv.FormatInt(answer.ContentLength, 10))
	}
}

// headerText returns a text as it can stand in a header.
func headerText(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return '?'
		}
		return r
	}, text)
}
