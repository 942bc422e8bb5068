//go:build e2e

package e2e

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

const volumesPerPod = 2

// churn is what rktool reports of pods that came and went.
type churn struct {
	Run          string         `json:"run"`
	Pods         int            `json:"pods"`
	ToRunning    quantiles      `json:"create_to_running"`
	Failures     int            `json:"failures"`
	Notes        map[string]int `json:"failure_notes"`
	NeverRan     int            `json:"never_ran"`
	FailedMounts int            `json:"failed_mount_events"`
	Events       map[string]int `json:"warning_events"`
	LeftMounts   int            `json:"left_mounts"`
	LeftPods     int            `json:"left_pod_dirs"`
	Left         []string       `json:"left_examples"`
	Wanted       int            `json:"markers_wanted"`
	Found        int            `json:"markers_found"`
	Wrong        int            `json:"markers_wrong"`
}

type quantiles struct {
	P50 float64 `json:"p50_s"`
	P99 float64 `json:"p99_s"`
}

// churn lets pods come and go, 20 at a time. Each writes a marker with its name
// and UID into each volume. It does not end the test, as others may run meanwhile.
func (c *cluster) churn(kind string, pods int) (churn, error) {
	args := []string{
		"churn", "--volume", kind, "--driver", driverName, "--pods", strconv.Itoa(pods), "--parallel", "20",
		"--volumes-per-pod", strconv.Itoa(volumesPerPod), "--kubelet-root", c.kubeletDir(), "--workdir", c.workdir(), "--json",
		"--progress=false",
	}
	var r churn
	out, err := c.try("", c.tool, args...)
	if err == nil {
		err = json.Unmarshal([]byte(out), &r)
	}
	return r, err
}

// wantClean fails unless every pod ran, but for so many that are excused, and
// nothing of it is left but its data.
func (c *cluster) wantClean(r churn, excused int) {
	c.t.Helper()
	if r.Failures > excused || r.NeverRan > excused || r.LeftMounts+r.LeftPods > 0 {
		c.t.Errorf("of %d pods %d failed %v, %d never ran, %d are excused; %d mounts and %d pod directories are left %q; events %v",
			r.Pods, r.Failures, r.Notes, r.NeverRan, excused, r.LeftMounts, r.LeftPods, r.Left, r.Events)
	}
}

// wantMarkers fails unless each volume of the churn is retained with its marker,
// under the UID of its pod.
func (c *cluster) wantMarkers(r churn) {
	c.t.Helper()
	if r.Found != r.Wanted || r.Wrong > 0 {
		c.t.Errorf("found %d markers of %d, and %d wrong ones", r.Found, r.Wanted, r.Wrong)
	}
	// A pod that was never seen running may have left its markers all the same.
	found := c.markers(func(uid, volume string, marker []string) {
		if marker[0] == r.Run && uid != marker[3] {
			c.t.Errorf("%s/%s has the marker of pod %s", uid, volume, marker[3])
		}
	}, r.Run)
	if found < r.Wanted {
		c.t.Errorf("%d markers are retained, want %d", found, r.Wanted)
	}
}

// markers counts the markers of a run in the working directory, of any run if
// that is "", and shows each one.
func (c *cluster) markers(show func(uid, volume string, marker []string), run string) int {
	c.t.Helper()
	paths, err := fs.Glob(os.DirFS(c.workdir()), "*/*/marker")
	if err != nil {
		c.t.Fatal(err)
	}
	n := 0
	for _, path := range paths {
		content, err := os.ReadFile(filepath.Join(c.workdir(), path))
		fields := strings.Fields(string(content))
		if err != nil || len(fields) != 4 || run != "" && fields[0] != run {
			continue // just being written, perhaps
		}
		n++
		if show != nil {
			dirs := strings.Split(path, "/")
			show(dirs[0], dirs[1], fields)
		}
	}
	return n
}

// testChurn: 200 pods come and go, and as many with emptyDir volumes, in turns
// that a machine which becomes slower or faster does not bias.
func (c *cluster) testChurn() {
	turns := []string{"csi", "emptydir", "emptydir", "csi", "csi", "emptydir", "emptydir", "csi"}
	medians := map[string][]float64{}
	volumes := 0
	for _, kind := range turns {
		r, err := c.churn(kind, 50)
		if err != nil {
			c.t.Fatal(err)
		}
		c.t.Logf("%-8s created to running: p50 %.2f s, p99 %.2f s", kind, r.ToRunning.P50, r.ToRunning.P99)
		c.wantClean(r, 0)
		if r.FailedMounts > 0 {
			c.t.Errorf("%d FailedMount events: %v", r.FailedMounts, r.Events)
		}
		if kind == "csi" {
			c.wantMarkers(r)
			volumes += r.Wanted
		}
		medians[kind] = append(medians[kind], r.ToRunning.P50)
	}
	if want := 200 * volumesPerPod; volumes != want {
		c.t.Errorf("%d volumes had a marker, want %d", volumes, want)
	}
	c.wantNoMounts()
	c.wantMetric("katbox_mounts", 0)
	c.wantMetric(`katbox_volumes{phase="Retained"}`, float64(c.volumes()))

	katbox, empty := median(medians["csi"]), median(medians["emptydir"])
	report("pods churned, with 2 volumes each", "%d", volumes/volumesPerPod)
	report("created to running, median, Katbox", "%.2f s", katbox)
	report("created to running, median, emptyDir", "%.2f s", empty)
	report("Katbox against emptyDir (wanted: 1.10)", "%.2f", katbox/empty)
	// A tenth is wanted. What other work on the machine does to one turn may be more.
	if katbox > 1.3*empty {
		c.t.Errorf("a start takes %.2f s with Katbox, %.2f s with emptyDir", katbox, empty)
	}
}

// volumes counts the data directories.
func (c *cluster) volumes() int {
	c.t.Helper()
	dirs, err := filepath.Glob(filepath.Join(c.workdir(), "*", "csi-*"))
	if err != nil {
		c.t.Fatal(err)
	}
	return len(dirs)
}

// median is that of an even number of values.
func median(values []float64) float64 {
	slices.Sort(values)
	half := len(values) / 2
	return (values[half-1] + values[half]) / 2
}

// wantMoreMarkers waits until the churn has left n more than there were.
func (c *cluster) wantMoreMarkers(before, n int) {
	c.t.Helper()
	c.eventually(fmt.Sprintf("%d more markers", n), func() error {
		if now := c.markers(nil, ""); now < before+n {
			return fmt.Errorf("%d so far", now-before)
		}
		return nil
	})
}
