//go:build e2e

package e2e

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// writer is a pod that never ceases to write into its volume: numbers, one after
// the other, each by opening the file anew.
type writer struct {
	*cluster
	name, uid string
	mount     string
}

// startWriter starts a writer and waits until it has written.
func (c *cluster) startWriter(name string) *writer {
	c.t.Helper()
	w := &writer{cluster: c, name: name}
	w.uid = c.create(pod{Name: name, Scripts: []string{
		"trap 'echo end >> /scratch/log; exit 0' TERM; i=0; while i=$((i+1)); do echo $i >> /scratch/log || exit 9; sleep 0.05; done",
	}})
	c.wantPhase(name, "Running")
	c.eventually("pod "+name+" writes", func() error {
		_, err := os.ReadFile(c.file(w.uid, "log"))
		return err
	})
	if w.mount = c.mountOf(w.uid, "scratch"); w.mount == "" {
		c.t.Fatalf("nothing is mounted for pod %s", name)
	}
	return w
}

// lines are the numbers that it has written, all of them in order.
func (w *writer) lines() int {
	w.t.Helper()
	log, err := os.ReadFile(w.file(w.uid, "log"))
	if err != nil {
		w.t.Fatal(err)
	}
	// The last line may just be written.
	text := strings.TrimSuffix(string(log[:strings.LastIndexByte(string(log), '\n')+1]), "end\n")
	n := 0
	for line := range strings.Lines(text) {
		n++
		if strings.TrimSpace(line) != strconv.Itoa(n) {
			w.t.Fatalf("line %d of %s is %q", n, w.file(w.uid, "log"), line)
		}
	}
	return n
}

// wantUnaffected fails unless the pod goes on writing in the same container into
// the same mount.
func (w *writer) wantUnaffected(when string) {
	w.t.Helper()
	before := w.lines()
	w.eventually("pod "+w.name+" writes "+when, func() error {
		if now := w.lines(); now <= before {
			return fmt.Errorf("still %d lines", now)
		}
		return nil
	})
	if now := w.mountOf(w.uid, "scratch"); now != w.mount {
		w.t.Errorf("%s the mount of pod %s is another one:\n%s\n%s", when, w.name, w.mount, now)
	}
	s := w.status(w.name)
	if s.Status.Phase != "Running" || len(s.Status.ContainerStatuses) != 1 || s.Status.ContainerStatuses[0].RestartCount > 0 {
		w.t.Errorf("%s the pod %s is %+v", when, w.name, s.Status)
	}
}

// wantRetained fails unless the volume of the ended pod is kept with all its
// files, and mounted nowhere.
func (w *writer) wantRetained() {
	w.t.Helper()
	w.eventually("unmounted", func() error {
		if mount := w.mountOf(w.uid, "scratch"); mount != "" {
			return fmt.Errorf("still there: %s", mount)
		}
		return nil
	})
	log, err := os.ReadFile(w.file(w.uid, "log"))
	if err != nil || w.lines() == 0 || !strings.HasSuffix(string(log), "\nend\n") {
		w.t.Errorf("the retained volume of pod %s lacks lines: %v", w.name, err)
	}
}
