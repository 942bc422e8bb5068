package handlers

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"

	"github.com/katbox/katbox/internal/model/api"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/node/metrics"
	"github.com/katbox/katbox/internal/node/scratch"
)

// of makes a retained volume of a namespace, with a large file and a small one.
func (n *node) of(number int, namespace string) (id string) {
	n.t.Helper()
	id, dir := n.add(number)
	n.volumes.mu.Lock()
	n.volumes.all[volume.ID(id)].Record.Namespace = namespace
	n.volumes.mu.Unlock()
	large(n.t, filepath.Join(dir, "large"))
	write(n.t, filepath.Join(dir, "small"), "text")
	return id
}

// wantAnswered asks for all that one may ask for of a volume.
func (n *node) wantAnswered(what, id string) {
	n.t.Helper()
	if text, err := n.read(id, api.BytesQuery{Path: "small"}); err != nil || text != "text" {
		n.t.Errorf("%s: a file: %q, %v", what, text, err)
	}
	if list, err := n.client.Files(n.t.Context(), id, api.FilesQuery{}); err != nil || len(list.Entries) != 2 {
		n.t.Errorf("%s: a directory: %d entries, %v", what, len(list.Entries), err)
	}
	n.wantListed(what, id)
}

// wantListed asks for what reads neither a file nor a directory.
func (n *node) wantListed(what, id string) {
	n.t.Helper()
	if list, err := n.client.Files(n.t.Context(), id, api.FilesQuery{Path: "small", Stat: true}); err != nil || len(list.Entries) != 1 {
		n.t.Errorf("%s: one entry: %+v, %v", what, list, err)
	}
	if _, err := n.client.List(n.t.Context(), api.Query{}); err != nil {
		n.t.Errorf("%s: volumes: %v", what, err)
	}
	if _, err := n.client.Gone(n.t.Context(), api.GoneQuery{}); err != nil {
		n.t.Errorf("%s: tombstones: %v", what, err)
	}
}

// TestStreamsOfOneNamespace: a tenant whose readers do not read what they asked for gets no more than its share.
// Another one reads, and the node stays in all lists. So it is for several such tenants.
func TestStreamsOfOneNamespace(t *testing.T) {
	n := newNode(t, streamsThatMayStandStill)
	other := n.of(100, "other")
	for i, namespace := range []string{"etl", "more", "most", ""} {
		id := n.of(i+1, namespace)
		began := 0
		for refused := false; !refused; {
			s, err := n.client.Bytes(t.Context(), id, api.BytesQuery{Path: "large"})
			if err != nil {
				wantCode(t, namespace, err, 429)
				if whose := fmt.Sprintf("%d of them from volumes", began); !strings.Contains(err.Error(), whose) {
					t.Errorf("%v does not say %q", err, whose)
				}
				refused = true
				continue
			}
			began++
			t.Cleanup(func() { s.Close() })
		}
		if want := mostStreams >> (i + 1); began != want {
			t.Errorf("%q has %d streams, want %d", namespace, began, want)
		}
		n.wantAnswered("beside "+namespace, other)
	}
}

// idle is a client that reads nothing, until its connection ends at the deadline.
type idle struct {
	http.ResponseWriter
	deadline time.Time
}

func (i *idle) SetWriteDeadline(t time.Time) error {
	i.deadline = t
	return nil
}

func (i *idle) Write([]byte) (int, error) {
	time.Sleep(time.Until(i.deadline))
	return 0, os.ErrDeadlineExceeded
}

// TestIdleStreamsMakeRoom: a tenant with so many namespaces that they take all streams of a node keeps others from
// reading for half a minute at most. One stream alone may stand still for five.
func TestIdleStreamsMakeRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir, err := scratch.Open(filepath.Join(t.TempDir(), "work"))
		must(t, err)
		defer dir.Close()
		n := &node{t: t, volumes: &fakeVolumes{dir: dir, all: map[volume.ID]*fakeVolume{}}}
		n.h = newHandler(Config{
			Volumes: n.volumes, LowPriority: func() func() { return func() {} }, Log: logr.Discard(), Metrics: metrics.New("v1", ""),
		})
		var streams sync.WaitGroup
		take := func(namespace, id string) {
			for all, _ := n.h.streams.Taken(namespace); ; {
				streams.Go(func() {
					defer func() { _ = recover() }() // that is how a stream is cut
					n.h.ServeHTTP(&idle{ResponseWriter: httptest.NewRecorder()},
						httptest.NewRequest(http.MethodGet, "/v1/volumes/"+id+"/bytes?path=large", nil))
				})
				synctest.Wait()
				now, _ := n.h.streams.Taken(namespace)
				if now == all {
					return
				}
				all = now
			}
		}
		ids := map[string]string{}
		for i := range 6 {
			namespace := fmt.Sprint("mine-", i)
			ids[namespace] = n.of(i+1, namespace)
			take(namespace, ids[namespace])
		}
		id := n.of(100, "other")
		code := func() int {
			r := httptest.NewRecorder()
			n.h.ServeHTTP(r, httptest.NewRequest(http.MethodGet, "/v1/volumes/"+id+"/bytes?path=small", nil))
			return r.Code
		}
		if all, _ := n.h.streams.Taken(""); all != mostStreams || code() != http.StatusTooManyRequests {
			t.Fatalf("%d streams are taken", all)
		}
		time.Sleep(30 * time.Second)
		for namespace, id := range ids {
			take(namespace, id) // they ask again at once
		}
		if got := code(); got != http.StatusOK {
			t.Errorf("after half a minute: %d", got)
		}
		time.Sleep(4 * time.Minute)
		if _, own := n.h.streams.Taken("mine-5"); own != 1 {
			t.Errorf("the only stream of a namespace was cut after four and a half minutes")
		}
		streams.Wait()
		if all, _ := n.h.streams.Taken(""); all != 0 {
			t.Errorf("%d streams are taken at the end", all)
		}
	})
}

// stuck is a client that begins to read when it is let go.
type stuck struct {
	http.ResponseWriter
	once   sync.Once
	writes chan<- struct{}
	letGo  <-chan struct{}
}

func (s *stuck) Write(p []byte) (int, error) {
	s.once.Do(func() { s.writes <- struct{}{} })
	<-s.letGo
	return s.ResponseWriter.Write(p)
}

// TestDirectoriesOfOneNamespace: so it is for readers of directories. What is more of one tenant waits, and too many
// do not; others are answered at once.
func TestDirectoriesOfOneNamespace(t *testing.T) {
	n := newNode(t)
	id, other := n.of(1, "etl"), n.of(2, "other")
	writes, letGo := make(chan struct{}, 100), make(chan struct{})
	var asking sync.WaitGroup
	codes := make(chan int, 100)
	ask := func(reads bool) {
		asking.Go(func() {
			r := httptest.NewRecorder()
			w := http.ResponseWriter(r)
			if !reads {
				w = &stuck{ResponseWriter: r, writes: writes, letGo: letGo}
			}
			n.h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/v1/volumes/"+id+"/files", nil))
			codes <- r.Code
		})
	}
	for range mostDirectories / 2 {
		ask(false)
		<-writes
	}
	for range mostWaiting + 1 {
		ask(true)
	}
	if code := <-codes; code != http.StatusTooManyRequests {
		t.Errorf("one that may not wait got %d", code)
	}
	n.wantAnswered("beside it", other)
	if all, own := n.h.directories.Taken("etl"); all != mostDirectories/2 || own != all {
		t.Errorf("%d directories are read, %d of them its own", all, own)
	}
	close(letGo)
	asking.Wait()
	for range mostDirectories/2 + mostWaiting {
		if code := <-codes; code != http.StatusOK {
			t.Errorf("one that waited got %d", code)
		}
	}
}

// TestListsHaveSlotsOfTheirOwn: while as many lists are made as may, files and directories are read.
func TestListsHaveSlotsOfTheirOwn(t *testing.T) {
	n := newNode(t)
	id := n.of(1, "etl")
	for range mostLists {
		release, ok := n.h.lists.take()
		if !ok {
			t.Fatal("a slot is taken")
		}
		t.Cleanup(release)
	}
	_, err := n.client.List(t.Context(), api.Query{})
	wantCode(t, "one list more", err, 429)
	if text, err := n.read(id, api.BytesQuery{Path: "small"}); err != nil || text != "text" {
		t.Errorf("a file: %q, %v", text, err)
	}
	if list, err := n.client.Files(t.Context(), id, api.FilesQuery{}); err != nil || len(list.Entries) != 2 {
		t.Errorf("a directory: %d entries, %v", len(list.Entries), err)
	}
}
