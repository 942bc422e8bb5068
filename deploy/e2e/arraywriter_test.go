//go:build e2e

package e2e

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// A steady writer writes blocks, one after the other, each with fsync, and begins anew after the last.
const (
	blockSize = 64 << 10
	blocks    = 1024
)

// steadyWriter is a pod that never ceases to write into its volume, and ends with the first error.
type steadyWriter struct {
	*arrayCluster
	claim claim
	path  string
}

// startWriting makes a volume and a pod that writes to it.
func (a *arrayCluster) startWriting(c claim) *steadyWriter {
	a.t.Helper()
	w := &steadyWriter{arrayCluster: a, claim: c, path: "/v/data"}
	if c.mode == "Block" {
		w.path = "/dev/v"
	}
	script := fmt.Sprintf("i=0; while [ ! -e /tmp/stop ]; do "+
		"yes %s-$i | dd of=%s bs=%d count=1 iflag=fullblock seek=$((i %% %d)) conv=notrunc,fsync 2>/tmp/error || "+
		"{ echo failed at $i: $(cat /tmp/error); exit 1; }; echo $i; i=$((i+1)); done",
		c.name, w.path, blockSize, blocks)
	a.apply(c.String(), container{name: c.name, script: script, claim: c}.String())
	return w
}

// last is the number of the last block that was written.
func (w *steadyWriter) last() (int, error) {
	out, err := w.tryKubectl("", "logs", "--tail=1", w.claim.name)
	if err != nil {
		return 0, err
	}
	n, err := strconv.Atoi(strings.TrimSpace(out))
	if err != nil {
		return 0, fmt.Errorf("the writer %s says %q", w.claim.name, out)
	}
	return n, nil
}

// wantGoesOn waits until it has written more.
func (w *steadyWriter) wantGoesOn(when string) {
	w.t.Helper()
	began, first := time.Now(), -1
	w.eventually(w.claim.name+" writes "+when, func() error {
		now, err := w.last()
		if err != nil {
			if phase := w.kubectl("get", "pod", w.claim.name, "-o", "jsonpath={.status.phase}"); phase == "Failed" || phase == "Succeeded" {
				w.t.Fatalf("%s: the writer has ended: %v", when, err)
			}
			return err
		}
		if first < 0 {
			first = now
		}
		if now < first+3 {
			return errors.New("it has written " + strconv.Itoa(now))
		}
		return nil
	})
	if took := time.Since(began); took > 10*time.Second {
		w.t.Logf("%s: %s went on after %.0f s", when, w.claim.name, took.Seconds())
	}
}

// finish ends the writer, and compares what another pod reads from the volume, which is staged anew.
func (w *steadyWriter) finish() {
	w.t.Helper()
	w.exec(w.claim.name, "touch /tmp/stop")
	w.phase(w.claim.name, "Succeeded")
	last, err := w.last()
	if err != nil {
		w.t.Fatal(err)
	}
	w.kubectl("delete", "pod", w.claim.name, "--wait=true")
	sum := sha256.New()
	for block := range min(last+1, blocks) {
		written := last - (last-block)%blocks // the last number that this block was written with
		line := fmt.Sprintf("%s-%d\n", w.claim.name, written)
		content := strings.Repeat(line, blockSize/len(line)+1)[:blockSize]
		sum.Write([]byte(content))
	}
	want := fmt.Sprintf("%x", sum.Sum(nil))
	script := fmt.Sprintf("dd if=%s bs=%d count=%d 2>/dev/null | sha256sum", w.path, blockSize, min(last+1, blocks))
	if out, _, _ := strings.Cut(w.answer(w.claim, script), " "); out != want {
		w.t.Errorf("%s: after %d blocks the content has the checksum %s, want %s", w.claim.name, last+1, out, want)
	}
	w.t.Logf("%s: %d blocks", w.claim.name, last+1)
	w.kubectl("delete", "pvc", w.claim.name, "--wait=true", "--timeout", patience.String())
}

// grow makes the volume larger while it is written to.
func (w *steadyWriter) grow(gib int) {
	w.t.Helper()
	size := fmt.Sprintf("%dGi", gib)
	w.kubectl("patch", "pvc", w.claim.name, "-p", `{"spec":{"resources":{"requests":{"storage":"`+size+`"}}}}`)
	w.kubectl("wait", "--for=jsonpath={.status.capacity.storage}="+size, "--timeout", patience.String(), "pvc/"+w.claim.name)
	w.wantSize(w.claim.name, w.claim, gib)
}
