package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/katbox/katbox/internal/model/api"
)

// BenchmarkSearchingBesideCalls compares, within one run, the time that calls take while two searches, as many as one
// namespace gets, go through 10,000 volumes with 100 files each, with the time that they take without.
// It also says how long the first line takes that is found, with calls and without, and how long a whole search.
// KATBOX_BENCH_VOLUMES sets how many volumes there are.
func BenchmarkSearchingBesideCalls(b *testing.B) {
	const files, searches = 100, 2
	volumes := 10_000
	if set, err := strconv.Atoi(os.Getenv("KATBOX_BENCH_VOLUMES")); err == nil {
		volumes = set
	}
	r := newReading(b, 1024+volumes*(files+10)*8192/(1<<20))
	for range volumes {
		r.retainFailed(files)
	}
	syncFS(b, r.work)
	client := api.Dial(r.d.layout().Admin)
	defer client.Close()
	peak := r.watchMemory()
	for b.Loop() {
		var first []float64
		r.compareCalls(func() (end func()) {
			stop := r.search(searches, client)
			found := make(chan float64, 1)
			go func() { found <- r.firstFound(client) }()
			return func() {
				stop()
				first = append(first, <-found)
			}
		})
		b.ReportMetric(median(first), "first-found-s-beside-calls")
	}
	b.ReportMetric(r.firstFound(client), "first-found-s")
	began := time.Now()
	end, _, err := r.searched(b.Context(), client, api.Grep{Pattern: "no such line"})
	if err != nil || end.Files < int64(volumes*files) {
		b.Fatalf("%+v, %v", end, err)
	}
	b.ReportMetric(float64(end.Files)/time.Since(began).Seconds(), "files/s")
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(peak(), "MiB-anon-peak")
	b.ReportMetric(r.d.memory("VmHWM"), "MiB-peak")
}

// retainFailed makes a retained volume of a pod whose last file says why it failed.
func (r *reading) retainFailed(files int) {
	r.b.Helper()
	r.volumes++
	req := r.d.request(testPod, volumeID(r.volumes))
	req.VolumeContext["csi.storage.k8s.io/pod.namespace"] = "bench"
	if _, err := r.d.node.NodePublishVolume(r.b.Context(), req); err != nil {
		r.b.Fatal(err)
	}
	for i := range files {
		text := strings.Repeat(fmt.Sprintf("step %d: done\n", i), 20)
		if i == files-1 {
			text += "CUDA error: out of memory\n"
		}
		if err := os.WriteFile(filepath.Join(r.d.target(testPod), fmt.Sprintf("step-%03d.log", i)), []byte(text), 0o644); err != nil {
			r.b.Fatal(err)
		}
	}
	r.d.unpublish(testPod, volumeID(r.volumes))
}

// search searches over and over until stop is called.
func (r *reading) search(searches int, client *api.Client) (stop func()) {
	ctx, cancel := context.WithCancel(r.b.Context())
	var group sync.WaitGroup
	for range searches - 1 { // the last one is firstFound's
		group.Go(func() {
			for ctx.Err() == nil {
				if _, _, err := r.searched(ctx, client, api.Grep{Pattern: "(?i)no such line"}); err != nil && ctx.Err() == nil {
					r.b.Error(err)
					return
				}
			}
		})
	}
	return func() {
		cancel()
		group.Wait()
	}
}

// searched searches to the end, and returns how long the first line took, in seconds.
func (r *reading) searched(ctx context.Context, client *api.Client, g api.Grep) (end api.GrepEnd, first float64, err error) {
	began := time.Now()
	in, err := client.Grep(ctx, api.GrepQuery{Grep: g, Query: api.Query{Namespace: "bench"}})
	if err != nil {
		return end, 0, err
	}
	defer in.Close()
	for {
		record, err := in.Next()
		switch {
		case errors.Is(err, io.EOF):
			return end, first, nil
		case err != nil:
			return end, first, err
		case record.Found != nil && first == 0:
			first = time.Since(began).Seconds()
		case record.End != nil:
			end = *record.End
		}
	}
}

// firstFound returns how long the first line takes, in seconds, and what one in each volume has, to the end.
func (r *reading) firstFound(client *api.Client) float64 {
	ctx, cancel := context.WithTimeout(r.b.Context(), 5*time.Second)
	defer cancel()
	_, first, err := r.searched(ctx, client, api.Grep{Pattern: "CUDA error"})
	if first == 0 {
		r.b.Error("nothing was found", err)
	}
	return first
}
