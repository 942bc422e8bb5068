package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/testing/roottest"
)

// burst is pods that write at once to a disk on which little is free, because the rest is retained.
type burst struct {
	fstype   string
	size     int // MiB
	headroom float64
	// retained is the share of the disk that volumes retain at the beginning, each of them each MiB.
	retained float64
	each     int
	// written is the share of the disk that the pods write, all together.
	written float64
	pods    int
	// synced: the pods wait for the disk, and write as fast as it does. Others write as fast as memory
	// takes it.
	synced bool
}

// outcome is what came of a burst.
type burstOutcome struct {
	written, took int64 // bytes, ns
	// refused counts the pods that found no room though retained volumes were left. late is the longest
	// time until there was some, and short how much a pod would have written meanwhile.
	refused int
	late    time.Duration
	short   int64
	// gone and left are the retained volumes at the end, least what was free at the worst moment.
	gone, left int
	least      int64
}

func (o burstOutcome) String() string {
	speed := float64(o.written) / float64(o.took) * 1e3
	return fmt.Sprintf("%d MiB at %.0f MB/s, %d MiB free at least, %d retained volumes gone, %d left; %d refused, for %v, %d KiB short",
		o.written>>20, speed, o.least>>20, o.gone, o.left, o.refused, o.late.Round(time.Millisecond), o.short>>10)
}

// TestABurstFindsRoom: pods write at the disk's speed to a disk of its own, most of which is retained, and
// all of what they write finds room, because retained volumes go in time. KATBOX_BURST_RUNS sets how often
// each burst is tried, and that no write is refused; without it, on a machine that others keep busy, room may come a
// moment late. KATBOX_BURST_DIR is the directory of the disks' images, which are in memory
// otherwise. With both, the bursts at the speed of memory are measured too.
func TestABurstFindsRoom(t *testing.T) {
	runs, dir, strict := 1, os.Getenv("KATBOX_BURST_DIR"), os.Getenv("KATBOX_BURST_RUNS") != ""
	if _, err := fmt.Sscan(os.Getenv("KATBOX_BURST_RUNS"), &runs); err != nil && strict {
		t.Fatal(err)
	}
	for _, fstype := range []string{"ext4", "xfs"} {
		if roottest.LeftOut(fstype) {
			continue
		}
		for _, headroom := range []float64{0.05, 0.1, 0.2} {
			if testing.Short() && headroom != 0.1 {
				continue
			}
			for _, speed := range []string{"disk", "memory"} {
				synced := speed == "disk"
				if !synced && dir == "" {
					continue
				}
				b := burst{fstype: fstype, size: 1024, headroom: headroom, retained: 0.6, each: 16, written: 0.7, pods: 2, synced: synced}
				if dir != "" {
					b.size = 2048
				}
				for run := range runs {
					t.Run(fmt.Sprintf("%s-%v-%s-%d", fstype, 100*headroom, speed, run+1), func(t *testing.T) {
						got := b.play(t, dir)
						t.Log(got)
						if strict && synced && got.refused > 0 {
							t.Errorf("%s with a headroom of %v: %v", fstype, headroom, got)
						}
					})
				}
			}
		}
	}
}

// play plays a burst.
func (b burst) play(t *testing.T, dir string) (o burstOutcome) {
	var mnt string
	if dir == "" {
		mnt = roottest.FileSystem(t, b.fstype, b.size)
	} else {
		image, err := os.MkdirTemp(dir, "burst")
		must(t, err)
		t.Cleanup(func() { _ = os.RemoveAll(image) })
		mnt = roottest.FileSystemIn(t, image, b.fstype, b.size)
	}
	work := filepath.Join(mnt, "work")
	d := newDaemon(t, "--afterlifespan", "48h", "--workdir", work, "--headroom", fmt.Sprint(b.headroom))
	roottest.UnmountBelowAtEnd(t, mnt)
	d.start()
	kept := int(b.retained*float64(b.size)) / b.each
	d.retain(kept, b.each<<20)
	syncFS(t, mnt)
	left := func() (left int) {
		for i := range kept {
			if exists(filepath.Join(work, podName(i), volumeID(i))) {
				left++
			}
		}
		return left
	}
	if n := left(); n != kept {
		t.Fatalf("%d of %d volumes are retained", n, kept)
	}

	var mu sync.Mutex
	var all sync.WaitGroup
	stop := make(chan struct{})
	o.least = free(t, mnt)
	watching := make(chan struct{})
	go func() {
		defer close(watching)
		for {
			select {
			case <-stop:
				return
			case <-time.After(time.Millisecond):
				o.least = min(o.least, free(t, mnt))
			}
		}
	}()
	each := int64(b.written * float64(b.size<<20) / float64(b.pods))
	began := time.Now()
	for i := range b.pods {
		pod := podName(kept + i)
		d.makePod(pod)
		d.publish(pod, volumeID(kept+i))
		path := filepath.Join(d.target(pod), "output")
		all.Go(func() {
			late, short, err := b.write(path, each, func() bool { return left() > 0 })
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				t.Error(err)
			}
			if late > 0 {
				o.refused++
			}
			o.late, o.short = max(o.late, late), max(o.short, short)
		})
	}
	all.Wait()
	o.took, o.written = int64(time.Since(began)), each*int64(b.pods)
	close(stop)
	<-watching
	o.left = left()
	o.gone = kept - o.left
	if strings.Contains(d.stdout.String(), "makes no room") {
		t.Error("deletions were taken to make no room")
	}
	if strings.Contains(d.stdout.String(), "panic") || o.late > time.Second || t.Failed() {
		t.Logf("%s", d.stdout)
	}
	return o
}

// write writes a file. late is how long it had to wait for room, while more says that something could still be
// deleted, and short how much it would have written meanwhile.
func (b burst) write(path string, size int64, more func() bool) (late time.Duration, short int64, err error) {
	f, err := os.Create(path)
	if err != nil {
		return 0, 0, err
	}
	defer f.Close()
	piece := make([]byte, 1<<20)
	began := time.Now()
	for done := int64(0); done < size; {
		n, err := f.Write(piece[:min(int64(len(piece)), size-done)])
		done += int64(n)
		if err == nil && b.synced && done%(4<<20) == 0 {
			err = unix.Fdatasync(int(f.Fd()))
		}
		switch {
		case errors.Is(err, unix.ENOSPC) && more():
			speed := float64(done) / time.Since(began).Seconds()
			refused := time.Now()
			for errors.Is(err, unix.ENOSPC) && time.Since(refused) < hangs {
				time.Sleep(time.Millisecond)
				n, err = f.Write(piece[:min(4096, size-done)])
				done += int64(n)
			}
			waited := time.Since(refused)
			late += waited
			short += int64(speed * waited.Seconds())
			if err != nil {
				return late, short, fmt.Errorf("no room after %v: %w", waited, err)
			}
		case err != nil:
			return late, short, err
		}
	}
	return late, short, nil
}
