package archiver

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/model/api"
	"github.com/katbox/katbox/internal/model/archived"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/node/files"
	"github.com/katbox/katbox/internal/node/tarball"
	"github.com/katbox/katbox/internal/testing/metricstest"
)

// noise is content that does not compress.
func noise(n int, seed byte) []byte {
	b := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{seed}).Read(b)
	return b
}

// someFiles take two pieces.
func someFiles(seed byte) map[string][]byte {
	return map[string][]byte{
		"large": noise(9<<20, seed), "dir/text": bytes.Repeat([]byte("hello\n"), 1000), "dir/not\xffutf8": []byte("x"), "empty": {},
	}
}

// readBack returns the index and the tar of a volume that was archived.
func (n *node) readBack(v *fakeVolume) (archived.Head, []archived.Entry, []byte) {
	n.t.Helper()
	n.mu.Lock()
	defer n.mu.Unlock()
	at := place(string(v.description.Record.ID), string(v.description.Record.Pod))
	d, err := archived.NewDecoder(bytes.NewReader(n.objects[at.Prefix()+"index"]))
	must(n.t, err)
	defer d.Close()
	var entries []archived.Entry
	for {
		e, err := d.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		must(n.t, err)
		entries = append(entries, e)
	}
	x, err := archived.NewExpander(1)
	must(n.t, err)
	defer x.Close()
	var tar []byte
	for i, p := range d.Pieces() {
		object := n.objects[at.PieceKey(i, p.Sum)]
		if int64(len(object)) != p.Length || archived.SumOf(object) != p.Sum {
			n.t.Fatalf("piece %d has %d bytes, and the index says %d", i, len(object), p.Length)
		}
		piece, err := x.Expand(nil, object, archived.PieceLength(d.Head().Size, i))
		must(n.t, err)
		tar = append(tar, piece...)
	}
	return d.Head(), entries, tar
}

// wantArchived: what is in the bucket is what the volume has.
func (n *node) wantArchived(v *fakeVolume, content map[string][]byte) {
	n.t.Helper()
	head, entries, tar := n.readBack(v)
	tree, err := open(v.dir)
	must(n.t, err)
	defer tree.Close()
	var want bytes.Buffer
	_, err = tarball.Write(n.t.Context(), &want, &files.Reading{Tree: tree, Lost: context.Background()}, tarball.Options{})
	must(n.t, err)
	if !bytes.Equal(tar, want.Bytes()) || head.Size != int64(len(tar)) {
		n.t.Errorf("a tar of %d bytes, and the volume makes one of %d", len(tar), want.Len())
	}
	if head.Volume.ID != string(v.description.Record.ID) || head.Root.Type != api.Directory {
		n.t.Errorf("%+v", head)
	}
	seen := 0
	for _, e := range entries {
		b, ok := content[e.Name]
		if !ok {
			continue
		}
		if seen++; !bytes.Equal(tar[e.Content:e.Content+e.Size], b) {
			n.t.Errorf("%q is not where the index says", e.Name)
		}
	}
	if seen != len(content) {
		n.t.Errorf("the index has %d of %d files", seen, len(content))
	}
}

// TestArchives: what is in the bucket afterwards is the volume, and it is noted until when.
func TestArchives(t *testing.T) {
	n := newNode(t)
	content := someFiles(1)
	v := n.add(1, volume.Failed, content)
	must(t, unix.Mkfifo(filepath.Join(v.dir, "fifo"), 0o600))
	none := n.add(2, volume.Succeeded, nil)
	a := n.start()
	n.until("both are archived", func() bool { return n.isNoted(v)() && n.isNoted(none)() })
	n.wantArchived(v, content)
	n.wantArchived(none, nil)
	if head, _, _ := n.readBack(v); head.Skipped != 1 {
		t.Errorf("%+v, and a FIFO is skipped", head)
	}
	n.mu.Lock()
	if got := n.noted[v.description.Record.ID]; !got.Equal(until) {
		t.Errorf("archived until %v, want %v", got, until)
	}
	if n.puts != 2+1+1+1 {
		t.Errorf("%d uploads", n.puts)
	}
	n.mu.Unlock()
	n.until("nothing waits", func() bool { return a.Waiting().Volumes == 0 })
	metricstest.Of(t, n.metrics).Want(t, "both are archived", metricstest.Values{
		"katbox_archive_volumes_total": 2, "katbox_archive_volumes_waiting": 0, "katbox_archive_oldest_wait_seconds": 0,
		`katbox_archive_volumes_unconfirmed{reason="unanswered"}`: 3, `katbox_archive_volumes_unconfirmed{reason="denied"}`: 4,
	})
	if unanswered, denied := a.Unconfirmed(); unanswered != 3 || denied != 4 {
		t.Errorf("%d and %d are not confirmed", unanswered, denied)
	}
}

// TestWakes: a volume that is retained later is archived at once, without a look now and then.
func TestWakes(t *testing.T) {
	n := newNode(t)
	n.pace.look = time.Hour
	a := n.start()
	v := n.add(1, volume.Failed, map[string][]byte{"a": []byte("x")})
	a.Wake()
	n.until("it is archived", n.isNoted(v))
}

// TestFaults: whatever the bucket does, the volume is archived in the end, whole; a failure is counted, and logged once.
func TestFaults(t *testing.T) {
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("a redirect is followed") }))
	defer elsewhere.Close()
	answer := func(code int, body string) func(http.ResponseWriter, *http.Request) {
		return func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			w.WriteHeader(code)
			_, _ = io.WriteString(w, body)
		}
	}
	for name, tt := range map[string]struct {
		fault  func(w http.ResponseWriter, r *http.Request)
		reason string
	}{
		"500": {answer(http.StatusInternalServerError, ""), bucket},
		"503": {answer(http.StatusServiceUnavailable, "<Error><Code>SlowDown</Code><Message>less\nplease</Message></Error>"), bucket},
		"403": {answer(http.StatusForbidden, "<Error><Code>RequestTimeTooSkewed</Code></Error>"), forbidden},
		"a long answer": {func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusBadGateway)
			_, _ = w.Write(make([]byte, 1<<20))
		}, bucket},
		"redirect": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, elsewhere.URL, http.StatusTemporaryRedirect)
		}, bucket},
		"cut midway": {func(_ http.ResponseWriter, r *http.Request) {
			_, _ = io.CopyN(io.Discard, r.Body, 1<<20)
			panic(http.ErrAbortHandler)
		}, bucket},
		"silent": {func(_ http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			<-r.Context().Done()
		}, slow},
	} {
		t.Run(name, func(t *testing.T) {
			n := newNode(t)
			if tt.reason == slow {
				n.pace.upload = 500 * time.Millisecond
			}
			var count atomic.Int64
			n.fault = func(w http.ResponseWriter, r *http.Request) bool {
				// The first two, which ends the first copy, and the sixth, after which it is tried again.
				if c := count.Add(1); c <= 4 || c == 6 {
					tt.fault(w, r)
					return true
				}
				return false
			}
			content := someFiles(2)
			v := n.add(1, volume.Failed, content)
			n.start()
			n.until("it is archived", n.isNoted(v))
			n.wantArchived(v, content)
			if got := n.failures(tt.reason); got < 1 {
				t.Errorf("%v failures for %q: %v", got, tt.reason, metricstest.Of(t, n.metrics))
			}
			n.mu.Lock()
			defer n.mu.Unlock()
			failed := 0
			for _, line := range n.lines {
				if strings.Contains(line, "not archived yet") {
					failed++
				}
				if strings.Contains(line, n.server.URL) {
					t.Errorf("a line has the URL, which is signed: %s", line)
				}
			}
			if failed != 1 {
				t.Errorf("%d lines say that it failed: %q", failed, n.lines)
			}
		})
	}
}

// TestGatewayRefuses: for good, for a while, and not at all.
func TestGatewayRefuses(t *testing.T) {
	t.Run("for good", func(t *testing.T) {
		n := newNode(t)
		v := n.add(1, volume.Failed, someFiles(3))
		n.answer = func(word api.UploadAsk, a *api.UploadAnswer) bool {
			if word.ID == string(v.description.Record.ID) {
				a.Refused = "the pod was never here"
			}
			return true
		}
		other := n.add(2, volume.Succeeded, map[string][]byte{"a": []byte("x")})
		a := n.start()
		n.until("the other one is archived", n.isNoted(other))
		n.wantNotArchived(v)
		n.until("nothing waits", func() bool { return a.Waiting().Volumes == 0 })
		if got := n.failures(refused); got != 1 {
			t.Errorf("%v failures", got)
		}
	})
	t.Run("for a while", func(t *testing.T) {
		n := newNode(t)
		v := n.add(1, volume.Failed, map[string][]byte{"a": []byte("x")})
		var count atomic.Int64
		n.answer = func(_ api.UploadAsk, a *api.UploadAnswer) bool {
			if count.Add(1) <= 3 {
				a.Refused, a.Retry = "the API server does not answer", true
			}
			return true
		}
		n.start()
		n.until("it is archived", n.isNoted(v))
		if got := n.failures(refused); got != 1 {
			t.Errorf("%v failures", got)
		}
	})
	t.Run("without an answer", func(t *testing.T) {
		n := newNode(t)
		n.pace.ask = 10 * time.Millisecond
		v := n.add(1, volume.Failed, map[string][]byte{"a": []byte("x")})
		var count atomic.Int64
		n.answer = func(api.UploadAsk, *api.UploadAnswer) bool { return count.Add(1) > 4 }
		n.start()
		n.until("it is archived", n.isNoted(v))
		if got := n.failures(noGateway); got != 2 {
			t.Errorf("%v failures", got)
		}
	})
	for name, url := range map[string]string{
		"http": "http://127.0.0.1:1/x", "a user": "https://user@127.0.0.1/x", "no host": "https:///x", "a file": "file:///etc/shadow", "none": "",
	} {
		t.Run("with the URL of "+name, func(t *testing.T) {
			n := newNode(t)
			v := n.add(1, volume.Failed, map[string][]byte{"a": []byte("x")})
			n.answer = func(_ api.UploadAsk, a *api.UploadAnswer) bool {
				a.URL = url
				return true
			}
			a := n.start()
			n.until("it is given up", func() bool { return a.Waiting().Volumes == 0 })
			n.wantNotArchived(v)
		})
	}
}
