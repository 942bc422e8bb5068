package archived

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/gateway/bucket"
	"github.com/katbox/katbox/internal/model/api"
	form "github.com/katbox/katbox/internal/model/archived"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/node/beneath"
	"github.com/katbox/katbox/internal/node/files"
	"github.com/katbox/katbox/internal/node/tarball"
	"github.com/katbox/katbox/internal/testing/fakebucket"
)

const (
	cluster = "0a0a0a0a-0000-4000-8000-000000000000"
	alpha   = "aaaaaaaa-0000-4000-8000-000000000000"
	beta    = "bbbbbbbb-0000-4000-8000-000000000000"
	podUID  = "cccccccc-0000-4000-8000-000000000000"
)

// epoch is when the volumes of the tests were retained, and some time after it.
var epoch = time.Date(2026, time.November, 1, 12, 0, 0, 0, time.UTC)

// names are the namespaces of the cluster, by their names.
type names struct {
	mu   sync.Mutex
	uids map[string]string
}

func (n *names) OfUID(uid string) (string, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for name, of := range n.uids {
		if of == uid {
			return name, true
		}
	}
	return "", false
}

func (n *names) Tenancy(name string) (volume.Tenancy, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	uid, ok := n.uids[name]
	return volume.Tenancy{UID: uid}, ok
}

func (n *names) Synced() bool { return true }

// stage is an archive, and its bucket.
type stage struct {
	testing.TB
	*Archive
	store  *fakebucket.Store
	bucket *bucket.Bucket
	names  *names
}

func newStage(t testing.TB) *stage {
	t.Helper()
	store := fakebucket.New(t)
	b, err := bucket.New(bucket.Config{
		Endpoint: store.URL, Region: fakebucket.Region, Bucket: fakebucket.Name, Credentials: fakebucket.Credentials(t),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	n := &names{uids: map[string]string{clusterNamespace: cluster, "alpha": alpha, "beta": beta}}
	a, err := New(Config{Bucket: b, Namespaces: n, Log: logr.Discard()})
	if err != nil {
		t.Fatal(err)
	}
	return &stage{t, a, store, b, n}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// shown describes a volume of a namespace, retained some seconds after the epoch.
func shown(uid string, seconds int) api.Volume {
	retained, published := epoch.Add(time.Duration(seconds)*time.Second), epoch.Add(-time.Hour)
	expires := time.Now().Add(24 * time.Hour).Truncate(time.Second)
	pod := fmt.Sprintf("%08x-0000-4000-8000-000000000000", seconds)
	return api.Volume{
		ID: string(volume.KubeletID(volume.PodUID(pod), "scratch")), Volume: "scratch",
		Namespace: "alpha", Pod: fmt.Sprint("job-", seconds), PodUID: pod,
		Owner: &api.Owner{Verdict: volume.Confirmed.String(), NamespaceUID: uid, Kind: "Job", Name: "job", Job: "job"}, Node: "node-1",
		Phase: api.PhaseArchived, PublishedAt: &published, RetainedAt: &retained, ExpiresAt: &expires, Outcome: "Failed",
	}
}

// key is that of a volume's index.
func key(t testing.TB, v api.Volume) string {
	t.Helper()
	k, err := form.IndexKey(cluster, v)
	must(t, err)
	return k
}

// put puts an index that cannot be read, for lists.
func (s *stage) put(v api.Volume) api.Volume {
	s.Helper()
	v.Archived = key(s, v)
	s.store.Put(v.Archived, []byte("no index"))
	return v
}

// reading reads the volume at dir until the end of the test.
func reading(t testing.TB, dir string) *files.Reading {
	t.Helper()
	fd, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	must(t, err)
	opener, err := beneath.New(fd)
	must(t, err)
	tree := files.New(fd, opener)
	t.Cleanup(func() { tree.Close() })
	return &files.Reading{Tree: tree, Lost: context.Background(), Close: func() {}}
}

// tarOf returns the tar that a node makes.
func tarOf(t testing.TB, dir string, o tarball.Options) []byte {
	t.Helper()
	var b bytes.Buffer
	_, err := tarball.Write(t.Context(), &b, reading(t, dir), o)
	must(t, err)
	return b.Bytes()
}

// archive puts the volume at dir into the bucket, as a node does.
func (s *stage) archive(dir string, v api.Volume) api.Volume {
	s.Helper()
	var tar bytes.Buffer
	encoder, err := form.NewEncoder()
	must(s, err)
	types := map[files.Type]api.EntryType{
		files.Regular: api.File, files.Directory: api.Directory, files.Symlink: api.Symlink, files.FIFO: api.FIFO, files.Socket: api.Socket,
	}
	report, err := tarball.Write(s.Context(), &tar, reading(s, dir), tarball.Options{Each: func(p tarball.Placed) error {
		e := form.Entry{
			Name: p.Name, Type: types[p.Type], Link: p.Target, Size: p.Size, Allocated: p.Allocated, Mode: p.Mode, UID: p.UID, GID: p.GID,
			ModTime: p.ModTime, Links: p.Links, Header: p.Header, Content: p.Content, End: p.End, Sparse: p.Sparse,
		}
		if p.HardLink != "" {
			e.Link = p.HardLink
		}
		for _, x := range p.Extents {
			e.Extents = append(e.Extents, form.Extent(x))
		}
		return encoder.Entry(e)
	}})
	must(s, err)
	compressor, err := form.NewCompressor()
	must(s, err)
	place := form.Place{
		Cluster: cluster, NamespaceUID: v.Owner.NamespaceUID, Place: volume.Place{Pod: volume.PodUID(v.PodUID), ID: volume.ID(v.ID)},
	}
	var pieces []form.Piece
	for number := 0; int64(number) < form.Pieces(report.Bytes); number++ {
		from := int64(number) * form.PieceSize
		object := compressor.Compress(nil, tar.Bytes()[from:from+form.PieceLength(report.Bytes, number)])
		sum := form.SumOf(object)
		pieces = append(pieces, form.Piece{Length: int64(len(object)), Sum: sum})
		s.store.Put(place.PieceKey(number, sum), object)
	}
	root := form.Entry{Type: api.Directory, Mode: 0o755, Links: 2}
	index, err := encoder.Finish(form.Head{
		Volume: v, Root: root, Size: report.Bytes, Skipped: report.Skipped, Changed: report.Changed, ChangedNames: report.ChangedNames,
	}, pieces)
	must(s, err)
	v.Archived = key(s, v)
	s.store.Put(v.Archived, index)
	return v
}

func write(t testing.TB, dir, name, content string) {
	t.Helper()
	path := filepath.Join(dir, name)
	must(t, os.MkdirAll(filepath.Dir(path), 0o755))
	must(t, os.WriteFile(path, []byte(content), 0o640))
}
