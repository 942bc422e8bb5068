package page

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/katbox/katbox/internal/model/volume"
)

// showcase is a cluster as it is on an ordinary day: some jobs, one of which failed, on three nodes.
type showcase struct {
	*site
	// failed is the name of the volume of the pod that failed, and failedPod of that pod.
	failed, failedPod string
	// earlyPod is a pod of which a volume went early.
	earlyPod string
	// logLine is the line of its out/log.txt that says why.
	logLine int
}

// newShowcase also has nodes that do not answer.
func newShowcase(t testing.TB, missing ...string) *showcase {
	t.Helper()
	c := &showcase{failedPod: "nightly-29371080-x7k2p", earlyPod: "train-llm-8dk2x", logLine: 212}
	random := rand.New(rand.NewPCG(16, 16))
	fill := map[string]func(*node){}
	for i := range 3 {
		fill[fmt.Sprintf("n%d", i+1)] = func(n *node) {
			if i == 1 {
				var path string
				c.failed, path = n.put(func(d *volume.Description) {
					d.Record.PodName, d.Record.VolumeName = c.failedPod, "scratch"
					owned(d, "Job", "nightly-29371080")
					d.Record.Outcome = volume.Failed
					aged(d, 0.7, 12, 1288490188, 31)
				})
				c.write(t, path)
				c.bury(n)
			}
			for j := range 9 {
				at := i*9 + j
				n.put(func(d *volume.Description) {
					job := [...]string{"nightly-29369640", "e2e-checkout", "import-2026-11-21", "train-bert", "etl-orders"}[at%5]
					d.Record.PodName = fmt.Sprintf("%s-%s", job, suffix(random))
					d.Record.VolumeName = [...]string{"scratch", "cache", "tmp"}[at%3]
					owned(d, "Job", job)
					if at%7 == 3 {
						d.Record.PodName = fmt.Sprintf("web-%s-%s", "7d4b9c6f5d", suffix(random))
						owned(d, "ReplicaSet", "web-7d4b9c6f5d")
					}
					aged(d, 1+float64(at)*0.42, 12, int64(random.IntN(1<<31)), int64(random.IntN(4000)))
					d.Early = at%9 == 5
					d.Record.Outcome = [...]volume.Outcome{volume.Succeeded, volume.Succeeded, volume.Failed, volume.Stopped, volume.OutcomeUnknown}[at%5]
					switch at {
					case 6:
						d.Record.Hold = volume.Hold{Kind: volume.Pinned, For: 60 * time.Hour, By: "kim", Why: "post-mortem on Monday"}
						d.Deadline = d.Record.Until()
					case 7:
						d.Record.Hold = volume.Hold{Kind: volume.Released, For: 5 * time.Hour, By: "alice", Why: "all is clear"}
						d.Deadline = d.Record.Until()
					}
				})
			}
		}
	}
	c.site = newSite(t, fill, missing...)
	return c
}

func owned(d *volume.Description, kind, name string) {
	d.Record.Owner.Kind, d.Record.Owner.Name, d.Record.Owner.UID, d.Record.Owner.Job = kind, name, "uid-of-"+name, ""
	if kind == "Job" {
		d.Record.Owner.Job = name
	}
}

// aged says when a volume was retained, how long it is kept, and what it takes.
func aged(d *volume.Description, hours, kept float64, bytes, inodes int64) {
	d.Record.Unpublished, d.Record.Published = hoursAgo(hours), hoursAgo(hours+0.3)
	d.Record.Lifespan = time.Duration(kept * float64(time.Hour))
	d.Deadline = d.Record.Unpublished.Add(d.Record.Lifespan)
	d.Size = volume.Size{Bytes: bytes, Inodes: inodes}
}

func suffix(random *rand.Rand) string {
	const letters = "bcdfghjklmnpqrstvwxz2456789"
	var text strings.Builder
	for range 5 {
		text.WriteByte(letters[random.IntN(len(letters))])
	}
	return text.String()
}

// bury makes volumes that are gone, for different reasons.
func (c *showcase) bury(n *node) {
	for i, g := range []volume.Tombstone{
		{Gone: hoursAgo(30), Reason: volume.Expired}, {Gone: hoursAgo(20), Reason: volume.ForBytes},
		{Gone: hoursAgo(3), Reason: volume.Purged, By: "jane", Why: "it had a token in its log"},
		{Gone: hoursAgo(2), Reason: volume.ForReleased, By: "kim"},
	} {
		d := volume.Description{Record: volume.Record{
			ID: volume.ID(fmt.Sprintf("csi-%064x", 1000+i)), Pod: volume.PodUID(fmt.Sprintf("0a1b2c3d-gone-%d", i)), Phase: volume.Retained,
			Namespace: "ci", PodName: fmt.Sprintf("etl-orders-%d", i), VolumeName: "scratch", Outcome: volume.Failed,
			Owner: volume.Owner{Verdict: volume.Confirmed, NamespaceUID: namespaceUID("ci")},
		}}
		owned(&d, "Job", "etl-orders")
		aged(&d, 42, 12, 3<<30, 812)
		if g.Reason.Early() {
			d.Record.PodName = c.earlyPod
			d.Record.Unpublished = g.Gone.Add(-time.Hour)
		}
		n.bury(d, g)
	}
}

// write writes the files of the pod that failed.
func (c *showcase) write(t testing.TB, path string) {
	t.Helper()
	for _, dir := range []string{"out/screenshots", "out/coverage", "work/orders", "empty", ".cache"} {
		must(t, os.MkdirAll(filepath.Join(path, dir), 0o755))
	}
	var log strings.Builder
	began := time.Date(2026, 11, 22, 2, 0, 4, 0, time.UTC)
	for i := 1; i <= 400; i++ {
		at := began.Add(time.Duration(i) * 1370 * time.Millisecond).Format(time.RFC3339)
		switch {
		case i == c.logLine:
			fmt.Fprintf(&log, "%s ERROR reconcile: order 81723: total is 118.40, the ledger has 118.04\n", at)
		case i == c.logLine+1:
			fmt.Fprintf(&log, "%s ERROR reconcile: 1 of 4096 orders differ, giving up\n", at)
		case i%9 == 0:
			fmt.Fprintf(&log, "%s \x1b[33mWARN\x1b[0m  fetch: page %d was slow, %d ms\n", at, i/9, 900+i)
		default:
			fmt.Fprintf(&log, "%s INFO  reconcile: batch %d of 400, %d orders, no difference\n", at, i, 10+i%3)
		}
	}
	must(t,
		os.WriteFile(filepath.Join(path, "out/log.txt"), []byte(log.String()), 0o644),
		os.WriteFile(filepath.Join(path, "out/report.json"), []byte("{\n  \"orders\": 4096,\n  \"differ\": 1\n}\n"), 0o644),
		os.WriteFile(filepath.Join(path, "out/screenshots/ledger.png"), []byte(picture(640, 360)), 0o644),
		os.WriteFile(filepath.Join(path, "work/orders/81723.bin"), []byte("\x00\x01\x02ORDER\xff\xfe"+strings.Repeat("\x10\x20", 900)),
			0o600),
		os.WriteFile(filepath.Join(path, "README"), []byte("Scratch of the nightly reconciliation.\n"), 0o644),
		os.Symlink("out/log.txt", filepath.Join(path, "latest.log")),
	)
	for i := range 12 {
		must(t, os.WriteFile(filepath.Join(path, fmt.Sprintf("out/coverage/part-%02d.out", i)), []byte(strings.Repeat("x", 1<<i)), 0o644))
	}
}

// writeDeep writes a directory, and a file in it.
func writeDeep(t testing.TB, path, ref string) {
	t.Helper()
	must(t,
		os.MkdirAll(filepath.Join(path, ref), 0o755),
		os.WriteFile(filepath.Join(path, ref, "last.txt"), []byte("The end.\n"), 0o644),
	)
}
