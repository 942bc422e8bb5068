package kubelet

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/katbox/katbox/soak/internal/workload"
)

// TestEndings: who watches learns of pods that ended before, and of those that end later, also if the socket
// comes after the watch.
func TestEndings(t *testing.T) {
	root, err := os.MkdirTemp("", "kubelet") // short, for the socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(root) })
	ctx, cancel := context.WithCancel(t.Context())
	told, over := make(chan string, 10), make(chan struct{})
	go func() {
		defer close(over)
		Endings(ctx, root, func(uid, phase string) { told <- uid + " " + phase })
	}()
	api, err := StartPodsAPI(root, "driver")
	if err != nil {
		t.Fatal(err)
	}
	defer api.Stop()
	for _, end := range []struct {
		uid    string
		failed bool
		want   string
	}{{"u1", false, "u1 Succeeded"}, {"u2", true, "u2 Failed"}} {
		api.Ended(&Pod{Plan: workload.Pod{UID: end.uid, Failed: end.failed}})
		select {
		case got := <-told:
			if got != end.want {
				t.Errorf("told %q, want %q", got, end.want)
			}
		case <-time.After(2 * time.Minute):
			t.Fatalf("not told: %s", end.want)
		}
	}
	cancel()
	<-over
}

// TestFieldOfDamagedMessages: they have none.
func TestFieldOfDamagedMessages(t *testing.T) {
	for _, message := range [][]byte{nil, {0xff}, {0x0a, 0x05, 'a'}, {0x12, 0x01, 'a'}} {
		if got := field(message, 1); got != nil {
			t.Errorf("%x has %q", message, got)
		}
	}
}
