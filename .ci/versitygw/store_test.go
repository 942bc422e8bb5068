package versitygw

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/katbox/katbox/internal/gateway/bucket"
	"github.com/katbox/katbox/internal/lib/retry"
	"github.com/katbox/katbox/internal/model/api"
	"github.com/katbox/katbox/internal/model/archived"
	"github.com/katbox/katbox/internal/model/volume"
)

const (
	name   = "evidence"
	region = "eu-test-1"
	id     = "katbox"
	secret = "not-a-secret/of+anyone"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// serve starts the server, and returns its bucket.
func serve(t *testing.T) *bucket.Bucket {
	t.Helper()
	dir := t.TempDir()
	binary := filepath.Join(dir, "versitygw")
	build := exec.Command("go", "build", "-o", binary, "github.com/versity/versitygw/cmd/versitygw")
	if text, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	for _, sub := range []string{"objects/" + name, "meta", "keys"} {
		must(t, os.MkdirAll(filepath.Join(dir, sub), 0o700))
	}
	must(t, os.WriteFile(filepath.Join(dir, "keys/access-key-id"), []byte(id), 0o600))
	must(t, os.WriteFile(filepath.Join(dir, "keys/secret-access-key"), []byte(secret+"\n"), 0o600))
	free, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	address := free.Addr().String()
	must(t, free.Close())
	ctx, cancel := context.WithCancel(context.Background())
	server := exec.CommandContext(ctx, binary, "--port", address, "--region", region, "--access", id, "--secret", secret, "--quiet", "posix",
		"--sidecar", filepath.Join(dir, "meta"), filepath.Join(dir, "objects"))
	var said bytes.Buffer
	server.Stdout, server.Stderr = &said, &said
	must(t, server.Start())
	t.Cleanup(func() {
		cancel()
		_ = server.Wait() // it was killed
		if t.Failed() {
			t.Logf("the server said:\n%s", said.String())
		}
	})
	b, err := bucket.New(bucket.Config{
		Endpoint: "http://" + address, Region: region, Bucket: name, Credentials: filepath.Join(dir, "keys"),
	})
	must(t, err)
	t.Cleanup(b.Close)
	for deadline := time.Now().Add(time.Minute); ; {
		_, err := b.List(t.Context(), bucket.Query{})
		if err == nil {
			return b
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
		must(t, retry.Pause(t.Context(), 50*time.Millisecond))
	}
}

// TestRealStore: a server that is not of ours takes what is signed, refuses what is not, and lists as the archive needs it.
func TestRealStore(t *testing.T) {
	b, ctx := serve(t), t.Context()
	heeds, err := b.Probe(ctx, "c/trial")
	if err != nil || !heeds.Checksum || !heeds.Length {
		t.Errorf("%+v, %v", heeds, err)
	}
	place := archived.Place{
		Cluster: "0a0a0a0a-0000-4000-8000-000000000000", NamespaceUID: "aaaaaaaa-0000-4000-8000-000000000000",
		Place: volume.Place{Pod: "cccccccc-0000-4000-8000-000000000000", ID: volume.KubeletID("cccccccc-0000-4000-8000-000000000000", "scratch")},
	}
	var keys []string
	for number := range 5 {
		content := []byte(fmt.Sprint("piece ", number))
		keys = append(keys, place.PieceKey(number, archived.SumOf(content)))
		must(t, b.Put(ctx, keys[number], content))
	}
	var indexes []string
	for i := range 3 {
		retained, until := time.Unix(2_000_000_000+int64(i), 0), time.Unix(3_000_000_000, 0)
		key, err := archived.IndexKey(place.Cluster, api.Volume{
			ID: string(place.ID), PodUID: string(place.Pod), Pod: strings.Repeat("a-long-name-", 20), Namespace: "batch", Node: "node-1",
			RetainedAt: &retained, ExpiresAt: &until,
			Owner: &api.Owner{Verdict: "Confirmed", NamespaceUID: place.NamespaceUID, Kind: "Job", Name: "job"},
		})
		must(t, err)
		must(t, b.Put(ctx, key, []byte("index")))
		indexes = append([]string{key}, indexes...) // the newest first
	}
	list := func(q bucket.Query) (got []string) {
		t.Helper()
		for {
			page, err := b.List(ctx, q)
			must(t, err)
			for _, o := range page.Objects {
				if o.Size == 0 || time.Since(o.Modified).Abs() > time.Hour {
					t.Errorf("%+v", o)
				}
				got = append(got, o.Key)
			}
			if got = append(got, page.Prefixes...); !page.More || len(got) > 100 {
				return got
			}
			q.After = page.Last()
		}
	}
	for _, most := range []int{0, 1, 2} {
		for _, tt := range []struct {
			q    bucket.Query
			want []string
		}{
			{bucket.Query{Prefix: place.Prefix()}, keys},
			{bucket.Query{Prefix: place.Prefix(), After: keys[1]}, keys[2:]},
			{bucket.Query{Prefix: archived.IndexPrefix(place.Cluster, place.NamespaceUID)}, indexes},
			{bucket.Query{
				Prefix: archived.IndexPrefix(place.Cluster, place.NamespaceUID),
				After:  archived.IndexStart(place.Cluster, place.NamespaceUID, time.Unix(2_000_000_001, 0)),
			}, indexes[1:]},
			{bucket.Query{Prefix: archived.ClusterPrefix(place.Cluster), Delimiter: "/"}, []string{place.Cluster + "/" + place.NamespaceUID + "/"}},
			{bucket.Query{Prefix: "nothing/"}, nil},
		} {
			tt.q.Most = most
			if got := list(tt.q); strings.Join(got, "\n") != strings.Join(tt.want, "\n") {
				t.Errorf("%+v:\n%s\nwant\n%s", tt.q, strings.Join(got, "\n"), strings.Join(tt.want, "\n"))
			}
		}
	}
	o, err := b.Head(ctx, keys[0])
	if err != nil || o.Size != int64(len("piece 0")) || time.Since(o.Modified).Abs() > time.Hour {
		t.Errorf("%+v, %v", o, err)
	}
	body, err := b.Get(ctx, keys[0], 5)
	must(t, err)
	text, err := io.ReadAll(body)
	if body.Close(); err != nil || string(text) != "piece" {
		t.Errorf("%q, %v", text, err)
	}
	for range 2 {
		must(t, b.Delete(ctx, keys[0]))
	}
	if _, err := b.Head(ctx, keys[0]); !errors.Is(err, bucket.ErrNotFound) {
		t.Errorf("deleted: %v", err)
	}
	if _, err := b.Get(ctx, keys[0], 5); !errors.Is(err, bucket.ErrNotFound) {
		t.Errorf("deleted: %v", err)
	}
}
