package asked

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

// TarStart returns the byte of the archive that a request begins with, and the HTTP code.
func TarStart(header http.Header, tag string) (from int64, code int, err error) {
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
