package main

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/testing/roottest"
)

// TestSlackOfAllThreads: the thread that matters exists before the daemon's first line runs.
func TestSlackOfAllThreads(t *testing.T) {
	roottest.Need(t)
	d := newDaemon(t)
	d.start()
	d.publish(testPod, "csi-1") // makes more threads
	threads, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", d.process.PID()))
	if err != nil || len(threads) < 2 {
		t.Fatalf("%d threads, %v", len(threads), err)
	}
	for _, thread := range threads {
		got, err := os.ReadFile(slackFile(thread.Name()))
		if errors.Is(err, os.ErrNotExist) || errors.Is(err, unix.ESRCH) {
			continue // it has ended
		}
		if want := fmt.Sprint(timerSlack.Nanoseconds()); err != nil || strings.TrimSpace(string(got)) != want {
			t.Errorf("thread %s: %s, %v, want %s", thread.Name(), got, err, want)
		}
	}
}
