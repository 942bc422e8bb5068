package fakedriver

import (
	"errors"
	"testing"
	"testing/synctest"

	"github.com/katbox/katbox/internal/model/volume"
)

// TestBusy: a call is refused while another one works on its volume, and waits for what the driver does by itself.
func TestBusy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &run{busy: make(map[string]chan struct{})}
		end, ok := r.begin("v")
		if !ok {
			t.Fatal("a volume that nobody works on is busy")
		}
		var leave func()
		var err error
		go func() { leave, err = r.enter("v") }()
		synctest.Wait()
		if leave != nil || err != nil {
			t.Fatalf("a call did not wait for the driver: %v", err)
		}
		end()
		synctest.Wait()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := r.enter("v"); !errors.Is(err, volume.ErrBusy) {
			t.Errorf("a second call: %v", err)
		}
		if _, ok := r.begin("v"); ok {
			t.Error("the driver does not leave the volume to the call")
		}
		leave()
		if _, ok := r.begin("v"); !ok {
			t.Error("the volume is busy for ever")
		}
	})
}
