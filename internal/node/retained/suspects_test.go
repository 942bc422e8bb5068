package retained

import (
	"strconv"
	"testing"
	"time"

	"github.com/katbox/katbox/internal/model/volume"
)

// TestNamespacesThatAreGoneAreForgotten: nothing is kept of a namespace whose last volume is gone, also where no namespace
// has a limit, so that none is ever looked for that retains too much.
func TestNamespacesThatAreGoneAreForgotten(t *testing.T) {
	x := &Index{}
	for i := range 1000 {
		r := retained("a", 0, time.Hour)
		r.Namespace = strconv.Itoa(i)
		x.Put(r)
		x.Measured(r.ID, r.Unpublished, volume.Size{Bytes: 1, Inodes: 1})
		x.Recheck()
		x.Surplus(epoch)
		x.Forget(r.ID)
	}
	if n := len(x.tenants.suspects) + len(x.tenants.all) + len(x.namespaces) + len(x.lists); n > 0 {
		t.Errorf("%d namespaces are kept that have no volumes", n)
	}
}
