package main

import (
	"encoding/json"
	"maps"
	"strings"
	"syscall"
	"testing"
	"time"
)

// linesWith returns the lines of a daemon's log with a message. The daemon has ended.
func (d *daemon) linesWith(message string) (found []map[string]any) {
	d.t.Helper()
	for line := range strings.Lines(d.stdout.String()) {
		fields := map[string]any{}
		if err := json.Unmarshal([]byte(line), &fields); err != nil {
			d.t.Errorf("line %s: %v", line, err)
		}
		if fields["msg"] == message {
			found = append(found, fields)
		}
	}
	return found
}

// onlyLineWith returns the only line with a message and checks the volume in it.
func (d *daemon) onlyLineWith(message string, about map[string]any) map[string]any {
	d.t.Helper()
	found := d.linesWith(message)
	if len(found) != 1 {
		d.t.Fatalf("%d lines %q, want 1\n%s", len(found), message, d.stdout)
	}
	for key, want := range about {
		if found[0][key] != want {
			d.t.Errorf("line %q: %s is %v, want %v", message, key, found[0][key], want)
		}
	}
	return found[0]
}

// TestLogTellsAPersonWhatIsRetainedAndWhatIsGone: the log leads from a pod's name to its files,
// even if another process keeps and deletes them.
func TestLogTellsAPersonWhatIsRetainedAndWhatIsGone(t *testing.T) {
	d := newDaemon(t, "--afterlifespan", "10s", "--workdir-on-node", "/mnt/katbox", "--log-level", "info")
	d.start()
	req := d.request(testPod, volumeID(1))
	maps.Copy(req.VolumeContext, map[string]string{
		"csi.storage.k8s.io/pod.namespace": "batch", "csi.storage.k8s.io/pod.name": "nightly-x7k2q",
		"csi.storage.k8s.io/serviceAccount.name": "robot",
	})
	before := time.Now().Truncate(time.Second)
	if _, err := d.node.NodePublishVolume(t.Context(), req); err != nil {
		t.Fatal(err)
	}
	d.unpublish(testPod, volumeID(1))
	after := time.Now()
	if code := d.signal(syscall.SIGTERM); code != 0 {
		t.Fatalf("exit code %d\n%s", code, d.stderr)
	}
	about := map[string]any{
		"level": "info", "namespace": "batch", "pod": "nightly-x7k2q", "podUID": testPod, "volume": "scratch", "volumeID": volumeID(1),
		"node": "node-1", "path": "/mnt/katbox/" + testPod + "/" + volumeID(1), "lifespan": "10s",
	}
	line := d.onlyLineWith("retained", about)
	if line["reason"] != "unpublished" {
		t.Errorf("retained because of %v", line["reason"])
	}
	const lifespan = 10 * time.Second
	for key, earliest := range map[string]time.Time{"published": before, "until": before.Add(lifespan)} {
		text, _ := line[key].(string)
		if at, err := time.Parse(time.RFC3339, text); err != nil || at.Before(earliest) || at.After(after.Add(lifespan)) {
			t.Errorf("%s %q, %v, want a time from %v on", key, text, err, earliest)
		}
	}

	d.start()
	d.eventually("deleted", d.gone(testPod, volumeID(1)))
	d.signal(syscall.SIGTERM)
	line = d.onlyLineWith("deleted", about)
	if kept, err := time.ParseDuration(line["kept"].(string)); line["reason"] != "expired" || err != nil || kept < lifespan {
		t.Errorf("deleted because of %v, kept %v, %v, want expired after 10s", line["reason"], line["kept"], err)
	}
	if again := d.linesWith("retained"); len(again) != 0 {
		t.Errorf("the restarted daemon says again what is retained: %v", again)
	}
}
