package archived

import (
	"context"
	"errors"
	"io"
	"testing"
)

// TestMemoryIsBounded: what is kept and used together has a bound, and who has to wait for it goes on.
func TestMemoryIsBounded(t *testing.T) {
	o := newObjects(10)
	get := func(key string, size int64) func() {
		t.Helper()
		content, release, err := o.get(t.Context(), key, size, func(context.Context) ([]byte, error) { return make([]byte, size), nil })
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
	_, _, err := o.get(t.Context(), "d", 4, func(context.Context) ([]byte, error) { return nil, io.ErrUnexpectedEOF })
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
