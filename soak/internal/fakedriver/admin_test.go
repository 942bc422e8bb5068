package fakedriver

import (
	"archive/tar"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"google.golang.org/grpc/codes"

	"github.com/katbox/katbox/internal/model/api"
)

// reading is a driver with a retained volume "a", and a client of its admin socket.
func reading(t *testing.T, bug Bug) (*node, *api.Client) {
	t.Helper()
	n := newNode(t, false, func(c *Config) { c.AdminSocket, c.Bug = c.Socket+"a", bug })
	n.retain("a")
	client := api.Dial(n.cfg.AdminSocket)
	t.Cleanup(client.Close)
	return n, client
}

// code is the HTTP code of a request that failed; 0 of one that did not.
func code(err error) int {
	if failed, ok := errors.AsType[*api.Error](err); ok {
		return failed.Code
	}
	return 0
}

func TestAdminSocket(t *testing.T) {
	n, client := reading(t, "")
	ctx := t.Context()
	n.try(os.Symlink(n.cfg.Outside, filepath.Join(n.data("a"), "link")))
	n.retain("b")
	n.is(n.publish("c", false), codes.OK)

	page, err := client.List(ctx, api.Query{Limit: 1})
	if err != nil || len(page.Items) != 1 || page.Items[0].ID != "b" || page.Continue == "" {
		t.Errorf("the first page is %+v (%v), want b", page, err)
	}
	page, err = client.List(ctx, api.Query{Limit: 1, Continue: page.Continue})
	if err != nil || len(page.Items) != 1 || page.Items[0].ID != "a" || page.Continue != "" {
		t.Errorf("the second page is %+v (%v), want a and no more", page, err)
	}
	list, err := client.Files(ctx, "a", api.FilesQuery{})
	if err != nil || len(list.Entries) != 2 || list.Entries[0].Ref != "file" || list.Entries[1].Type != api.Symlink {
		t.Errorf("the files are %+v (%v)", list, err)
	}
	stream, err := client.Bytes(ctx, "a", api.BytesQuery{Path: "file"})
	n.try(err)
	if got, err := io.ReadAll(stream); err != nil || string(got) != "x" {
		t.Errorf("the file is %q (%v)", got, err)
	}
	stream, err = client.Bytes(ctx, "a", api.BytesQuery{Archive: true})
	n.try(err)
	if h, err := tar.NewReader(stream).Next(); err != nil || h.Name != "file" {
		t.Errorf("the tar begins with %+v (%v)", h, err)
	}
	stream.Close()
	for path, want := range map[string]int{"link": http.StatusBadRequest, "link/x": http.StatusBadRequest, "none": http.StatusNotFound} {
		if _, err := client.Bytes(ctx, "a", api.BytesQuery{Path: path}); code(err) != want {
			t.Errorf("%s is answered %v, want %d", path, err, want)
		}
	}
	if _, err := client.Bytes(ctx, "c", api.BytesQuery{Path: "file"}); code(err) != http.StatusConflict {
		t.Errorf("a published volume is answered %v", err)
	}
	n.try(client.Purge(ctx, "a", ""))
	if _, err := client.Volume(ctx, "a"); code(err) != http.StatusNotFound || exists(n.data("a")) {
		t.Errorf("a removed volume is answered %v", err)
	}
	n.try(n.driver.Stop())
}

// TestStreamEndsWithItsVolume: what is read when a volume goes is cut, unless that
// is the bug.
func TestStreamEndsWithItsVolume(t *testing.T) {
	for bug, cut := range map[Bug]bool{"": true, ReadsOn: false} {
		t.Run("bug: "+string(bug), func(t *testing.T) {
			n, client := reading(t, bug)
			n.try(os.Truncate(filepath.Join(n.data("a"), "file"), 64<<20))
			stream, err := client.Bytes(t.Context(), "a", api.BytesQuery{Path: "file"})
			n.try(err)
			defer stream.Close()
			_, err = io.CopyN(io.Discard, stream, 1)
			n.try(err)
			n.try(client.Purge(t.Context(), "a", ""))
			rest, err := io.Copy(io.Discard, stream)
			if (err != nil) != cut || (rest == 64<<20-1) != (bug == ReadsOn) {
				t.Errorf("%d bytes came after that (%v)", rest, err)
			}
		})
	}
}
