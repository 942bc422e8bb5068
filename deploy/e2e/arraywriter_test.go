//go:build e2e

package e2e

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// A steady writer writes blocks, one after the other, each with fsync, and begins anew after the last. It rests
// between them: the machine has one CPU, and is slow in starting processes.
const (
	blockSize = 64 << 10
	blocks    = 1024
	rest      = "0.4"
)

// steadyWriter is a pod that never ceases to write into its volume, and ends with the first error.
type steadyWriter struct {
	*arrayCluster
	claim claim
	path  string
	log   string // empty until it was looked for
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
		"{ echo failed at $i: $(cat /tmp/error); exit 1; }; echo $i; i=$((i+1)); sleep %s; done",
		c.name, w.path, blockSize, blocks, rest)
	a.apply(c.String(), container{name: c.name, script: script, claim: c}.String())
	return w
}

// last is the number of the last block that was written, from the log where it lies on the node.
func (w *steadyWriter) last() (int, error) {
	if w.log == "" {
		uid, err := w.tryKubectl("", "get", "pod", w.claim.name, "-o", "jsonpath={.metadata.uid}")
		if err != nil {
			return 0, err
		}
		w.log = filepath.Join(w.state, "podlogs", "default_"+w.claim.name+"_"+uid, "c", "0.log")
	}
	content, err := os.ReadFile(w.log)
	if err != nil {
		return 0, err
	}
	whole := strings.TrimSuffix(string(content[:bytes.LastIndexByte(content, '\n')+1]), "\n")
	fields := strings.SplitN(whole[strings.LastIndexByte(whole, '\n')+1:], " ", 4) // time, stream, tag and what the pod says
	n, err := strconv.Atoi(fields[len(fields)-1])
	if err != nil {
		return 0, fmt.Errorf("the writer %s says %q", w.claim.name, fields)
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
