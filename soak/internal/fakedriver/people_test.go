package fakedriver

import (
	"archive/tar"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/katbox/katbox/internal/model/api"
	"github.com/katbox/katbox/soak/internal/content"
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
	var names []string // in the order of the directory
	for r := tar.NewReader(stream); err == nil; {
		var h *tar.Header
		if h, err = r.Next(); err == nil {
			names = append(names, h.Name)
		}
	}
	if slices.Sort(names); !errors.Is(err, io.EOF) || !slices.Equal(names, []string{"file", "link"}) {
		t.Errorf("the tar has %q (%v)", names, err)
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

// TestReadingBugsShow: each of these shows in a request or two, and an honest driver shows none of them.
func TestReadingBugsShow(t *testing.T) {
	type seen struct {
		*node
		*api.Client
	}
	read := func(s seen, q api.BytesQuery) (string, int64) {
		stream, err := s.Bytes(t.Context(), "a", q)
		if err != nil {
			return "", -1
		}
		defer stream.Close()
		text, err := io.ReadAll(stream)
		s.try(err)
		return string(text), stream.Size
	}
	list := func(s seen, q api.Query) (ids []string, next string) {
		page, err := s.List(t.Context(), q)
		s.try(err)
		for _, v := range page.Items {
			ids = append(ids, v.ID)
		}
		return ids, page.Continue
	}
	mount := func(s seen) {
		s.try(os.WriteFile(filepath.Join(s.cfg.Outside, "secret"), []byte("s"), 0o644))
		s.try(os.Mkdir(filepath.Join(s.data("a"), "dir"), 0o755))
		s.try(bind(s.cfg.Outside, filepath.Join(s.data("a"), "dir"), false))
	}
	for name, test := range map[string]struct {
		bug  Bug
		show func(seen) bool
	}{
		"links": {ReadsLinks, func(s seen) bool {
			s.try(os.WriteFile(filepath.Join(s.cfg.Outside, "secret"), []byte("s"), 0o644))
			s.try(os.Symlink(s.cfg.Outside, filepath.Join(s.data("a"), "link")))
			text, _ := read(s, api.BytesQuery{Path: "link/secret"})
			return text == "s"
		}},
		"mounts": {ReadsMounts, func(s seen) bool {
			mount(s)
			text, _ := read(s, api.BytesQuery{Path: "dir/secret"})
			return text == "s"
		}},
		"mounts in lists": {ReadsMounts, func(s seen) bool {
			mount(s)
			files, err := s.Files(t.Context(), "a", api.FilesQuery{Depth: 2})
			s.try(err)
			return slices.ContainsFunc(files.Entries, func(e api.Entry) bool { return e.Ref == "dir/secret" })
		}},
		"another": {ReadsAnother, func(s seen) bool {
			s.retain("b")
			s.try(os.WriteFile(filepath.Join(s.data("b"), "file"), []byte("of b"), 0o644))
			text, _ := read(s, api.BytesQuery{Path: "file"})
			return text == "of b"
		}},
		"beside": {ReadsBeside, func(s seen) bool {
			text, _ := read(s, api.BytesQuery{Path: "file", Offset: 2, Limit: 3})
			return text == "345"
		}},
		"half": {ReadsHalf, func(s seen) bool {
			text, size := read(s, api.BytesQuery{Path: "file"})
			return text == "01234" && size == 5
		}},
		"trace": {ReadsWithTrace, func(s seen) bool {
			s.try(os.Chtimes(filepath.Join(s.data("a"), "file"), time.Unix(1, 0), time.Unix(1, 0)))
			_, _ = read(s, api.BytesQuery{Path: "file"})
			at, err := content.Accessed(s.data("a"), "file")
			s.try(err)
			return !at.Equal(time.Unix(1, 0))
		}},
		"less": {TarsLess, func(s seen) bool {
			text, _ := read(s, api.BytesQuery{Archive: true})
			_, err := tar.NewReader(strings.NewReader(text)).Next()
			return errors.Is(err, io.EOF)
		}},
		"twice": {ListsTwice, func(s seen) bool {
			s.retain("b")
			first, next := list(s, api.Query{Limit: 1})
			again, _ := list(s, api.Query{Limit: 1, Continue: next})
			return slices.Equal(first, again)
		}},
		"forgotten": {ListsForgets, func(s seen) bool {
			s.retain("b")
			_, next := list(s, api.Query{Limit: 1})
			rest, _ := list(s, api.Query{Continue: next})
			return len(rest) == 0
		}},
		"others": {ListsOthers, func(s seen) bool {
			others, _ := list(s, api.Query{Namespace: "another"})
			return len(others) > 0
		}},
		"stale": {ListsStale, func(s seen) bool {
			s.try(s.Purge(t.Context(), "a", ""))
			stale, _ := list(s, api.Query{})
			return len(stale) > 0
		}},
		"nothing removed": {RemovesNothing, func(s seen) bool {
			s.try(s.Purge(t.Context(), "a", ""))
			return exists(s.data("a"))
		}},
		"another removed": {RemovesAnother, func(s seen) bool {
			s.retain("b")
			s.try(s.Purge(t.Context(), "a", ""))
			return !exists(s.data("b"))
		}},
		"no tombstone": {BuriesNothing, func(s seen) bool {
			s.try(s.Purge(t.Context(), "a", ""))
			gone, err := s.Gone(t.Context(), api.GoneQuery{})
			s.try(err)
			return len(gone.Items) == 0
		}},
	} {
		for _, bug := range []Bug{test.bug, ""} {
			t.Run(name+", bug: "+string(bug), func(t *testing.T) {
				n, client := reading(t, bug)
				n.try(os.WriteFile(filepath.Join(n.data("a"), "file"), []byte("0123456789"), 0o644))
				if shows := test.show(seen{n, client}); shows != (bug != "") {
					t.Errorf("it shows: %t", shows)
				}
			})
		}
	}
}
