package main

import (
	"crypto/sha256"
	"fmt"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/node/store"
)

// BenchmarkManyRetained starts the daemon with 200,000 retained volumes of 10,000 namespaces, and with a million, with
// owners, outcomes, projects and 300 different lifespans, and measures how soon it is ready and what
// memory it takes. The volumes have records and no data, which makes no difference for either.
func BenchmarkManyRetained(b *testing.B) {
	for _, size := range []int{200_000, 1_000_000} {
		b.Run(fmt.Sprint(size), func(b *testing.B) { startWithRetained(b, size) })
	}
}

func startWithRetained(b *testing.B, size int) {
	const batch = 20_000
	d := newDaemon(b, "--log-level", "info")
	d.start()
	d.signal(syscall.SIGTERM)
	s, err := store.Open(filepath.Join(d.workdir(), recordsFile))
	must(b, err)
	changes := make([]volume.Change, batch)
	for first := 0; first < size; first += batch {
		for i := range changes {
			r := retainedRecord(first+i, time.Now())
			changes[i] = volume.Change{ID: r.ID, Record: &r}
		}
		must(b, s.Commit(changes))
	}
	must(b, s.Close())
	flags := d.flags
	for _, order := range []string{"oldest", "fair"} {
		b.Run(order, func(b *testing.B) {
			d.flags = append(slices.Clip(flags), "--pressure-order", order)
			for b.Loop() {
				began := time.Now()
				d.start()
				b.ReportMetric(time.Since(began).Seconds(), "s/ready")
				b.ReportMetric(d.cpu().Seconds(), "CPU-s/ready")
				time.Sleep(10 * time.Second) // the garbage of the start is collected
				b.ReportMetric(d.memory("RssAnon"), "MiB")
				d.signal(syscall.SIGTERM)
			}
		})
	}
}

// retainedRecord returns a record with all that may be known of a retained volume.
func retainedRecord(i int, now time.Time) volume.Record {
	const namespaces, lifespans = 10_000, 300
	job := fmt.Sprintf("nightly-%08d", i)
	lifespan := 24*time.Hour + time.Duration(i%lifespans)*time.Hour
	r := volume.Record{
		Pod: volume.PodUID(fmt.Sprintf("01234567-89ab-4def-8123-%012x", i)), Namespace: fmt.Sprint("team-", i%namespaces),
		PodName: job + "-x7k2p", VolumeName: "scratch", ServiceAccount: "default", Published: now.Add(-time.Hour).Round(time.Second),
		Owner: volume.Owner{
			Verdict: volume.Confirmed, NamespaceUID: fmt.Sprintf("76543210-89ab-4def-8123-%012x", i%namespaces),
			Kind: "Job", Name: job, UID: fmt.Sprintf("fedcba98-89ab-4def-8123-%012x", i), Job: job,
		},
		Terms:   volume.Terms{Lifespan: lifespan, LifespanSucceeded: lifespan, Limit: volume.Size{Bytes: 1 << 30}},
		Outcome: volume.Outcome(i / lifespans % 4), Project: 1_258_291_200 + uint32(i),
	}.Retain(now.Add(-time.Duration(i)*time.Millisecond), lifespan)
	r.ID = volume.ID(fmt.Sprintf("csi-%x", sha256.Sum256([]byte(string(r.Pod)+r.VolumeName))))
	return r
}
