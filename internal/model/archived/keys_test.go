package archived

import (
	"bytes"
	"compress/flate"
	"encoding/base64"
	"errors"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/katbox/katbox/internal/model/api"
	"github.com/katbox/katbox/internal/model/volume"
)

const (
	cluster      = "6d1f7f5e-0f6e-4f6e-9b0a-2f1c3d4e5f60"
	namespaceUID = "0f6e4f6e-9b0a-4d1f-8f5e-3d4e5f602f1c"
	podUID       = "01234567-89ab-cdef-0123-456789abcdef"
)

var (
	retained = time.Date(2026, 11, 30, 16, 2, 3, 456_789_012, time.UTC)
	id       = volume.KubeletID(podUID, "scratch")
)

// shownVolume is a volume as a list shows it.
func shownVolume() api.Volume {
	published, expires := retained.Add(-time.Hour).Truncate(time.Second), retained.Add(720*time.Hour).Truncate(time.Second)
	bytes, inodes, at := int64(123_456_789), int64(4321), retained
	return api.Volume{
		ID: string(id), Namespace: "ci", Pod: "build-1234-x7k2p", PodUID: podUID, Volume: "scratch", ServiceAccount: "robot",
		Owner: &api.Owner{Verdict: "Confirmed", NamespaceUID: namespaceUID, Kind: "Job", Name: "build-1234", UID: namespaceUID,
			Job: "build-1234", JobIndex: "17"},
		Node: "node-1.example", Phase: api.PhaseArchived, PublishedAt: &published, RetainedAt: &at, ExpiresAt: &expires,
		Bytes: &bytes, Inodes: &inodes, Outcome: "Failed",
	}
}

// sameShown compares volumes, whose times may be in different zones.
func sameShown(a, b api.Volume) bool {
	for _, v := range []*api.Volume{&a, &b} {
		for _, at := range []**time.Time{&v.PublishedAt, &v.RetainedAt, &v.ExpiresAt} {
			if *at != nil {
				utc := (*at).UTC()
				*at = &utc
			}
		}
	}
	return reflect.DeepEqual(a, b)
}

// TestIndexKeys: a key says what a list shows.
func TestIndexKeys(t *testing.T) {
	bare := shownVolume()
	bare.PublishedAt, bare.Bytes, bare.Inodes, bare.Outcome, bare.Volume, bare.ServiceAccount = nil, nil, nil, "", "", ""
	bare.Owner = &api.Owner{Verdict: "Confirmed", NamespaceUID: namespaceUID}
	for _, v := range []api.Volume{shownVolume(), bare} {
		key, err := IndexKey(cluster, v)
		must(t, err)
		of, got, err := ParseIndexKey(key)
		if err != nil || of != cluster || !sameShown(got, v) {
			t.Errorf("%s: %v, %s, %+v, want %+v", key, err, of, got, v)
		}
		if is, at, ok := IndexID(key); !ok || is != id || !at.Equal(retained) {
			t.Errorf("%s: %s, %v, %t", key, is, at, ok)
		}
		if !strings.HasPrefix(key, IndexPrefix(cluster, namespaceUID)) || !strings.HasPrefix(key, IndexStart(cluster, namespaceUID, retained)) ||
			!strings.HasPrefix(key, ClusterPrefix(cluster)) {
			t.Errorf("%s is not where a list looks", key)
		}
		for part := range strings.SplitSeq(key, "/") {
			if len(part) > 255 {
				t.Errorf("%s has a part that no file system takes for a name", key)
			}
		}
		t.Logf("%d bytes", len(key))
	}
}

// TestLongNamesFit: what a list needs least is left out first, and what it needs to find the volume never is.
func TestLongNamesFit(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	name := func(n int) string {
		b := make([]byte, n)
		for i := range b {
			b[i] = "abcdefghijklmnopqrstuvwxyz0123456789-."[rng.IntN(38)]
		}
		return string(b)
	}
	for n := range 254 {
		v := shownVolume()
		v.Namespace, v.Pod, v.Volume, v.ServiceAccount, v.Node = name(min(n, 63)), name(n), name(min(n, 63)), name(n), name(n)
		v.Owner.Name, v.Owner.Job, v.Owner.UID = name(n), name(min(n, 63)), name(n)
		key, err := IndexKey(cluster, v)
		if err != nil {
			t.Errorf("names of %d bytes: %v", n, err)
			continue
		}
		_, got, err := ParseIndexKey(key)
		if err != nil || len(key) > MaxKey {
			t.Fatalf("%d bytes: %v", len(key), err)
		}
		if got.ID != v.ID || got.Pod != v.Pod || got.PodUID != v.PodUID || got.Node != v.Node || got.Namespace != v.Namespace ||
			!got.RetainedAt.Equal(*v.RetainedAt) || !got.ExpiresAt.Equal(*v.ExpiresAt) {
			t.Errorf("names of %d bytes: %+v, want %+v", n, got, v)
		}
		if got.Owner.Name == "" && got.ServiceAccount != "" {
			t.Errorf("names of %d bytes: the name of the owner is left out before the ServiceAccount", n)
		}
	}
}

// TestNewestIsFirst: a list of keys is in the order of time, the newest first.
func TestNewestIsFirst(t *testing.T) {
	var keys []string
	for i := range 100 {
		v := shownVolume()
		at := retained.Add(time.Duration(i*i) * time.Millisecond)
		v.RetainedAt = &at
		key, err := IndexKey(cluster, v)
		must(t, err)
		keys = append(keys, key)
	}
	slices.Reverse(keys)
	if !slices.IsSorted(keys) {
		t.Error("a list of keys has not the newest first")
	}
}

// shownText is the end of a key.
func shownText(json string) string {
	var b bytes.Buffer
	w, _ := flate.NewWriter(&b, flate.BestCompression)
	_, _ = w.Write([]byte(json))
	_ = w.Close()
	return segments(base64.RawURLEncoding.EncodeToString(b.Bytes()))
}

// TestHostileKeys: no key of anyone who can write to the bucket does harm.
func TestHostileKeys(t *testing.T) {
	good, err := IndexKey(cluster, shownVolume())
	must(t, err)
	begin := strings.Join(strings.Split(good, "/")[:4], "/") + "/"
	const rest = `"n":"ci","o":"p","w":"n","x":1`
	if _, _, err := ParseIndexKey(begin + shownText(`{"p":"`+podUID+`",`+rest+`}`)); err != nil {
		t.Fatal(err)
	}
	for name, key := range map[string]string{
		"empty":              "",
		"cut":                good[:len(good)-3],
		"no text":            begin,
		"no base64":          begin + "!!!",
		"no deflate":         begin + "AAAA",
		"no JSON":            begin + shownText("x"),
		"another JSON":       begin + shownText("[]"),
		"no pod":             begin + shownText("{"+rest+"}"),
		"another pod":        begin + shownText(`{"p":"../../x",`+rest+`}`),
		"a bomb":             begin + shownText(`{"p":"`+podUID+`","n":"`+strings.Repeat("a", 100_000)+`"}`),
		"a long name":        begin + shownText(`{"p":"`+podUID+`","o":"`+strings.Repeat("a", 254)+`"}`),
		"drives a terminal":  begin + shownText(`{"p":"`+podUID+`","o":"`+`\u001b[31m"}`),
		"another outcome":    begin + shownText(`{"p":"`+podUID+`","c":"Good"}`),
		"a negative size":    begin + shownText(`{"p":"`+podUID+`","b":-1}`),
		"a strange time":     begin + shownText(`{"p":"`+podUID+`","x":9223372036854775807}`),
		"another volume":     strings.Replace(good, string(id), "csi-x", 1),
		"no age":             strings.Replace(good, "-csi", "x-csi", 1),
		"an age before 1970": IndexPrefix(cluster, namespaceUID) + "0000000000000000-" + string(id) + good[len(begin)-1:],
		"more parts":         good + "/x",
		"an empty part":      good + "/",
		"other parts":        begin + good[len(begin):len(begin)+10] + "/" + good[len(begin)+10:],
		"a piece":            strings.Replace(good, "/i/", "/p/", 1),
		"another namespace":  strings.Replace(good, namespaceUID, "..", 1),
		"no cluster":         strings.Replace(good, cluster, "", 1),
	} {
		if _, v, err := ParseIndexKey(key); !errors.Is(err, ErrForm) {
			t.Errorf("%s: %v, %+v", name, err, v)
		}
	}
}

// TestPieceKeys: they come back, and only they do.
func TestPieceKeys(t *testing.T) {
	want, sum := Place{cluster, namespaceUID, volume.Place{Pod: podUID, ID: id}}, SumOf([]byte("object"))
	must(t, want.Check())
	key := want.PieceKey(42, sum)
	got, number, is, err := ParsePieceKey(key)
	if err != nil || got != want || number != 42 || is != sum {
		t.Errorf("%s: %+v, %d, %s, %v", key, got, number, is, err)
	}
	if !strings.HasPrefix(key, want.Prefix()) || !strings.HasPrefix(key, PiecesPrefix(cluster, namespaceUID)) || len(key) > MaxKey {
		t.Errorf("%s is not where the pieces of the volume are", key)
	}
	for _, bad := range []string{
		"", key + "/x", key + "0", key[:len(key)-1], strings.Replace(key, "000042", "42", 1), strings.Replace(key, "000042", "999999", 1),
		strings.Replace(key, "/p/", "/i/", 1), strings.Replace(key, podUID, "pod", 1), strings.ToUpper(key),
	} {
		if _, _, _, err := ParsePieceKey(bad); !errors.Is(err, ErrForm) {
			t.Errorf("%s: %v", bad, err)
		}
	}
}

// FuzzIndexKey looks for a key that breaks who reads it, or that says what no volume may have.
func FuzzIndexKey(f *testing.F) {
	good, err := IndexKey(cluster, shownVolume())
	must(f, err)
	f.Add(good)
	f.Add(strings.Join(strings.Split(good, "/")[:4], "/") + "/" + shownText(`{"p":"`+podUID+`"}`))
	f.Fuzz(func(t *testing.T, key string) {
		of, v, err := ParseIndexKey(key)
		if err != nil {
			return
		}
		again, err := IndexKey(of, v)
		if err != nil {
			t.Fatalf("%q is a key, and none of it can be made: %v", key, err)
		}
		if of2, v2, err := ParseIndexKey(again); err != nil || of2 != of || v2.ID != v.ID || v2.PodUID != v.PodUID {
			t.Errorf("%q became %q: %v", key, again, err)
		}
	})
}

// FuzzIndex looks for an index that breaks who reads it, or that leads out of its volume.
func FuzzIndex(f *testing.F) {
	whole, _, _ := encoded(f, someEntries())
	f.Add(whole)
	small, _, _ := encoded(f, someEntries()[:3])
	f.Add(small)
	f.Add(lines(f, `{"archive":{"version":1,"root":{"t":"directory"},"size":1024,"pieces":1}}`,
		`{"p":{"l":1,"h":"`+strings.Repeat("0", 64)+`"}}`))
	f.Fuzz(func(t *testing.T, object []byte) {
		h, pieces, entries, err := decoded(object)
		if err != nil {
			return
		}
		e, err := NewEncoder()
		must(t, err)
		for _, entry := range entries {
			if err := e.Entry(entry); err != nil {
				t.Fatalf("%+v was read, and cannot be written: %v", entry, err)
			}
		}
		if _, err := e.Finish(h, pieces); err != nil {
			t.Fatalf("it was read, and cannot be written: %v", err)
		}
	})
}
