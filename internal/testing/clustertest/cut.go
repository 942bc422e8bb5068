package clustertest

import (
	"net/http"
	"strings"

	"github.com/katbox/katbox/internal/model/resource"
	"github.com/katbox/katbox/internal/testing/verbstest"
)

// Cut breaks the connections of the next streams of bytes, as an update of the gateway does. Each number
// is how many bytes of the body one of them sends before.
func (c *Cluster) Cut(after ...int) { c.mu.Lock(); defer c.mu.Unlock(); c.cuts = after }

// cutting returns the writer of an answer whose connection may break.
func (c *Cluster) cutting(w http.ResponseWriter, r *http.Request) http.ResponseWriter {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.cuts) == 0 || !strings.HasSuffix(r.URL.Path, "/"+resource.Log) {
		return w
	}
	left := c.cuts[0]
	c.cuts = c.cuts[1:]
	return verbstest.Cut(w, left)
}
