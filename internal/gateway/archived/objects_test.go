package archived

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/katbox/katbox/internal/model/api"
)

// TestMemoryIsBounded: what is kept and used together has a bound, and who has to wait for it goes on.
func TestMemoryIsBounded(t *testing.T) {
	o := newObjects(10, 10)
	get := func(key string, size int64) func() {
		t.Helper()
		content, release, err := o.get(t.Context(), "anna", key, size, func(context.Context) ([]byte, error) { return make([]byte, size), nil })
		if err != nil || int64(len(content)) != size {
			t.Fatal(err)
		}
		return release
	}
	a, b := get("a", 6), get("b", 4)
	got := make(chan func())
	go func() { got <- get("c", 6) }()
	b()
	select {
	case <-got:
		t.Fatal("there was no room")
	default:
	}
	a()
	c := <-got
	if o.taken != 6 || len(o.kept) != 1 {
		t.Errorf("%d bytes of %d objects", o.taken, len(o.kept))
	}
	// One that cannot be read is not kept.
	_, _, err := o.get(t.Context(), "anna", "d", 4, func(context.Context) ([]byte, error) { return nil, io.ErrUnexpectedEOF })
	if !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Error(err)
	}
	get("d", 4)()
	c()
	get("e", 10)()
	if o.taken != 10 || len(o.kept) != 1 || o.idle.Len() != 1 {
		t.Errorf("%d bytes of %d objects", o.taken, len(o.kept))
	}
}

// TestOneReaderLeavesMemory: however much one reader reads, and whatever is large, the others have room.
func TestOneReaderLeavesMemory(t *testing.T) {
	o := newObjects(mostIndexBytes, indexShare)
	o.patience = time.Millisecond // nothing is released meanwhile
	content := func(context.Context) ([]byte, error) { return []byte("x"), nil }
	get := func(of, key string, size int64) error {
		_, _, err := o.get(t.Context(), of, key, size, content)
		return err
	}
	must(t, get("mallory", "the longest", mostIndexBytes-indexShare))
	if err := get("mallory", "one more", 1); code(err) != http.StatusTooManyRequests {
		t.Error(err)
	}
	must(t, get("mallory", "the longest", mostIndexBytes-indexShare)) // it takes no more memory
	must(t, get("anna", "hers", indexShare/2))
	must(t, get("anna", "hers, too", indexShare/2))
	if err := get("anna", "a third one", 1); code(err) != http.StatusTooManyRequests {
		t.Error(err)
	}
	must(t, get("bert", "the longest", mostIndexBytes-indexShare)) // it is there
}

// TestUseCountsOnce: a reader's share has each object once, until no request of that reader uses it.
func TestUseCountsOnce(t *testing.T) {
	o := newObjects(100, 10)
	o.patience = time.Millisecond
	get := func(key string) (release func(), err error) {
		_, release, err = o.get(t.Context(), "anna", key, 6, func(context.Context) ([]byte, error) { return []byte("x"), nil })
		return release, err
	}
	first, err := get("a")
	must(t, err)
	second, err := get("a")
	must(t, err)
	first()
	if _, err := get("b"); code(err) != http.StatusTooManyRequests {
		t.Errorf("beside one that is used: %v", err)
	}
	second()
	third, err := get("b")
	must(t, err)
	third()
	if len(o.used) > 0 || o.idleBytes != 12 || o.waits.Len() > 0 {
		t.Errorf("%d readers, %d idle bytes, %d wait", len(o.used), o.idleBytes, o.waits.Len())
	}
}

// TestIdleObjectsStay where to drop them does not make enough room.
func TestIdleObjectsStay(t *testing.T) {
	o := newObjects(10, 10)
	o.patience = time.Millisecond
	get := func(of, key string, size int64) (func(), error) {
		_, release, err := o.get(t.Context(), of, key, size, func(context.Context) ([]byte, error) { return []byte("x"), nil })
		return release, err
	}
	idle, err := get("anna", "idle", 3)
	must(t, err)
	idle()
	_, err = get("anna", "used", 6)
	must(t, err)
	if _, err := get("bert", "large", 5); code(err) != http.StatusTooManyRequests {
		t.Error(err)
	}
	if o.kept["idle"] == nil || o.taken != 9 {
		t.Errorf("%d bytes of %d objects", o.taken, len(o.kept))
	}
	_, err = get("bert", "small", 4)
	must(t, err)
	if o.kept["idle"] != nil || o.taken != 10 || o.idleBytes != 0 {
		t.Errorf("%d bytes of %d objects, %d idle", o.taken, len(o.kept), o.idleBytes)
	}
}

// TestLargeOneIsNotOvertakenForEver: a request that has waited for half of its patience goes before smaller ones.
func TestLargeOneIsNotOvertakenForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newObjects(10, 10)
		get := func(of, key string, size int64) func() {
			_, release, err := o.get(t.Context(), of, key, size, func(context.Context) ([]byte, error) { return []byte("x"), nil })
			if err != nil {
				t.Errorf("%s: %v", key, err)
				return func() {}
			}
			return release
		}
		first, second := get("anna", "a", 5), get("bert", "b", 5)
		var order []string
		var running sync.WaitGroup
		ask := func(of string, size int64) {
			running.Go(func() {
				release := get(of, "of "+of, size)
				order = append(order, of)
				time.Sleep(time.Second)
				release()
			})
			synctest.Wait()
		}
		ask("large", 9)
		time.Sleep(o.patience / 4)
		first()
		ask("early", 5) // it may overtake
		time.Sleep(o.patience/4 + time.Second)
		ask("late", 5)
		second()
		running.Wait()
		if strings.Join(order, " ") != "early large late" || o.waits.Len() > 0 {
			t.Errorf("%v, and %d wait", order, o.waits.Len())
		}
	})
}

// TestShareOfStreams: who reads a volume without an end, and one more, is refused, and others are not.
func TestShareOfStreams(t *testing.T) {
	s := newStage(t)
	dir := t.TempDir()
	write(t, dir, "large", string(random(1<<20)))
	first, second := s.archive(dir, shown(alpha, 1)), s.archive(dir, shown(alpha, 2))
	size := int64(len(s.store.Get(first.Archived)))
	s.indexes = newObjects(2*size+100, size)
	s.indexes.patience = time.Millisecond
	begin := func(user string, v api.Volume) error {
		stream, err := s.Client(v).OnBehalf(user, "").Bytes(t.Context(), v.ID, api.BytesQuery{Path: "large"})
		if err == nil {
			t.Cleanup(func() { stream.Close() })
		}
		return err
	}
	must(t, begin("mallory", first))
	if err := begin("mallory", second); code(err) != http.StatusTooManyRequests {
		t.Error(err)
	}
	must(t, begin("alice", second))
	if _, err := s.Client(first).OnBehalf("bob", "").Files(t.Context(), first.ID, api.FilesQuery{}); err != nil {
		t.Error(err)
	}
}

// TestPanicWhileItIsRead: who waits for what another request reads goes on when that fails by a bug, and reads it.
func TestPanicWhileItIsRead(t *testing.T) {
	o := newObjects(10, 10)
	reads, fails := make(chan struct{}), make(chan struct{})
	recovered := make(chan any)
	go func() {
		defer func() { recovered <- recover() }()
		_, _, _ = o.get(t.Context(), "anna", "a", 10, func(context.Context) ([]byte, error) {
			close(reads)
			<-fails
			panic("a bug")
		})
	}()
	<-reads
	got := make(chan error)
	go func() {
		_, release, err := o.get(t.Context(), "bert", "a", 10, func(context.Context) ([]byte, error) { return []byte("content"), nil })
		if err == nil {
			release()
		}
		got <- err
	}()
	for waits := false; !waits; {
		o.mu.Lock()
		waits = o.kept["a"].users == 2
		o.mu.Unlock()
	}
	close(fails)
	if r := <-recovered; r != "a bug" {
		t.Errorf("recovered %v", r)
	}
	if err := <-got; err != nil {
		t.Error(err)
	}
	if o.taken != 10 || len(o.used) != 0 || o.idle.Len() != 1 {
		t.Errorf("%d bytes, %d readers, %d idle", o.taken, len(o.used), o.idle.Len())
	}
}
