package asked

import (
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/katbox/katbox/internal/model/api"
	"github.com/katbox/katbox/internal/model/sealed"
)

// Tar is how the answer to a request for a tar begins.
type Tar struct {
	// Word seals the tar; empty if the request has none.
	Word string
	// From is the first byte that is sent, Code the HTTP code.
	From int64
	Code int
}

// BeginTar reads the header of a request for a tar with that tag, called name, and sets that of the answer.
func BeginTar(request, answer http.Header, tag, name string) (Tar, error) {
	answer.Set("Content-Type", TypeTar)
	answer.Set("Content-Disposition", Disposition(name+".tar"))
	answer.Set("ETag", tag)
	answer.Set("Accept-Ranges", "bytes")
	t := Tar{Word: request.Get(sealed.Header)}
	if t.Word != "" {
		if !sealed.ValidWord(t.Word) {
			return t, Bad(api.BadParameter, "", "the header %s has to be 16 to 64 letters and digits", sealed.Header)
		}
		answer.Set(sealed.Header, t.Word)
	}
	var err error
	if t.From, t.Code, err = tarStart(request, tag); err != nil {
		return t, err
	}
	answer.Set(api.HeaderOffset, strconv.FormatInt(t.From, 10))
	if t.Code == http.StatusPartialContent {
		// How long the archive becomes is not known, and no reader of archives needs it.
		answer.Set("Content-Range", fmt.Sprintf("bytes %d-/*", t.From))
	}
	return t, nil
}

// tarStart returns the byte of the archive that a request begins with, and the HTTP code.
func tarStart(header http.Header, tag string) (from int64, code int, err error) {
	if !RangeApplies(header, tag) {
		return 0, http.StatusOK, nil
	}
	text := header.Get("Range")
	start, last, ok := strings.Cut(strings.TrimPrefix(text, "bytes="), "-")
	from, parseErr := strconv.ParseInt(start, 10, 64)
	if !ok || last != "" || parseErr != nil || from < 0 {
		return 0, 0, Outside("the range %q is not possible for an archive, only one such as \"bytes=1000-\"", text)
	}
	return from, http.StatusPartialContent, nil
}

// Refs encodes names, in ASCII.
func Refs(names []string) (encoded []string) {
	for _, name := range names {
		encoded = append(encoded, strings.ReplaceAll(url.PathEscape(name), "%2F", "/"))
	}
	return encoded
}
