package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/node/metrics"
	"github.com/katbox/katbox/internal/node/policy"
	"github.com/katbox/katbox/internal/testing/metricstest"
)

// configMap writes a version of a policy file as the kubelet does: a new directory, and a symbolic link
// that is swapped.
func configMap(t *testing.T, dir, version, content string) {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(os.Mkdir(filepath.Join(dir, version), 0o700))
	must(os.WriteFile(filepath.Join(dir, version, "policy.yaml"), []byte(content), 0o600))
	must(os.Symlink(version, filepath.Join(dir, "..next")))
	must(os.Rename(filepath.Join(dir, "..next"), filepath.Join(dir, "..data")))
	if _, err := os.Lstat(filepath.Join(dir, "policy.yaml")); err != nil {
		must(os.Symlink("..data/policy.yaml", filepath.Join(dir, "policy.yaml")))
	}
}

// TestPolicyFile goes through the versions of a file: the last good one holds, and each broken one is
// reported once.
func TestPolicyFile(t *testing.T) {
	dir := t.TempDir()
	var errorsLogged int
	m := metrics.New("", "")
	p := &promises{
		path: filepath.Join(dir, "policy.yaml"), flags: policy.Bounds{Lifespan: 12 * time.Hour, MaxLifespan: 12 * time.Hour}, counted: m,
		log: funcr.New(func(_, args string) {
			if strings.Contains(args, "is broken") {
				errorsLogged++
			}
		}, funcr.Options{}),
	}
	want := func(when string, lifespan time.Duration, good float64, logged int) {
		t.Helper()
		p.read()
		p.read() // a file that has not changed changes nothing
		terms, err := p.Terms("ci", nil)
		if lifespan == 0 {
			if !errors.Is(err, volume.ErrUnavailable) || p.ready() == nil || !strings.Contains(err.Error(), "--policy-file") {
				t.Errorf("%s: %v", when, err)
			}
		} else if err != nil || p.ready() != nil || terms.Lifespan != lifespan {
			t.Errorf("%s: %+v (%v), want %v", when, terms, err, lifespan)
		}
		if errorsLogged != logged {
			t.Errorf("%s: %d errors logged, want %d", when, errorsLogged, logged)
		}
		metricstest.Of(t, m).Want(t, when, metricstest.Values{"katbox_policy_file_good": good})
	}
	want("there is no file", 0, 0, 1)
	configMap(t, dir, "1", "")
	want("it is empty", 0, 0, 2)
	configMap(t, dir, "2", "namespaces: [{match: [ci], lifespan: 1h}]")
	want("it is good", time.Hour, 1, 2)
	configMap(t, dir, "3", "namespaces: [{match: [ci], lifespan: 2h}]")
	want("it has changed", 2*time.Hour, 1, 2)
	configMap(t, dir, "4", "namespaces: [{match: [ci], lifespam: 3h}]")
	want("it is broken", 2*time.Hour, 0, 3)
	configMap(t, dir, "5", strings.Repeat("#", 10<<20))
	want("it has 10 MiB", 2*time.Hour, 0, 4)
	configMap(t, dir, "6", "namespaces: [{match: [ci], lifespan: 2h}]")
	want("it is as the last good one", 2*time.Hour, 1, 4)
	if err := os.RemoveAll(filepath.Join(dir, "6")); err != nil {
		t.Fatal(err)
	}
	want("it was removed", 2*time.Hour, 0, 5)
	configMap(t, dir, "7", "namespaces: []")
	want("it is good again", 12*time.Hour, 1, 5)
	if err := os.Remove(p.path); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(p.path, 0o700); err != nil {
		t.Fatal(err)
	}
	want("it is a directory", 12*time.Hour, 0, 6)
}

// TestBoundsOfTheFlags: what is not set follows what is.
func TestBoundsOfTheFlags(t *testing.T) {
	o, err := parse(strings.Fields("--nodeid n --afterlifespan 1d --lifespan-succeeded 1h --max-lifespan 2d "+
		"--size-limit 1Gi --max-size-limit 10Gi --max-inode-limit 100k"), nil)
	if err != nil {
		t.Fatal(err)
	}
	all, err := policy.New(o.bounds())
	if err != nil {
		t.Fatal(err)
	}
	got, err := all.Terms("", map[string]string{"lifespan": "9999h"})
	want := volume.Terms{Lifespan: 48 * time.Hour, LifespanSucceeded: time.Hour, Limit: volume.Size{Bytes: 1 << 30, Inodes: 100_000}}
	if err != nil || got != want {
		t.Errorf("%+v (%v), want %+v", got, err, want)
	}
}

// TestPolicyOfADaemon: a volume keeps the terms of its first publish when the policy changes under it.
// A daemon that is started with a broken file serves the volumes that are there, and new ones once the
// file is mended.
func TestPolicyOfADaemon(t *testing.T) {
	config := t.TempDir()
	configMap(t, config, "1", "namespaces: [{match: [ci], maxSizeLimit: 1Gi}]")
	d := newDaemon(t, "--policy-file", filepath.Join(config, "policy.yaml"))
	const other = "11111111-1f4e-4f0e-9d43-6a1b2c3d4e5f"
	d.makePod(other)
	d.start()
	publish := func(pod, id, limit string) error {
		req := d.request(pod, id)
		req.VolumeContext["csi.storage.k8s.io/pod.namespace"], req.VolumeContext["sizeLimit"], req.VolumeContext["mode"] = "ci", limit, "0700"
		_, err := d.node.NodePublishVolume(t.Context(), req)
		return err
	}
	if err := publish(testPod, volumeID(1), "2Gi"); status.Code(err) != codes.InvalidArgument || exists(d.data(testPod, volumeID(1))) {
		t.Errorf("above the bound: %v", err)
	}
	if err := publish(testPod, volumeID(1), "1Gi"); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(d.data(testPod, volumeID(1))); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("%v (%v), want the mode of the attribute", info, err)
	}
	configMap(t, config, "2", "namespaces: [{match: [ci], maxSizeLimit: 1Mi}]")
	d.eventually("the file is read again", func() bool { return strings.Count(d.stdout.String(), "policy file read") == 2 })
	if err := publish(other, volumeID(2), "1Gi"); status.Code(err) != codes.InvalidArgument {
		t.Errorf("above the smaller bound: %v", err)
	}
	if err := publish(testPod, volumeID(1), "1Gi"); err != nil {
		t.Errorf("repeated under a smaller bound: %v", err)
	}
	configMap(t, config, "3", "namespaces: [")
	d.crash()
	if err := publish(testPod, volumeID(1), "1Gi"); err != nil {
		t.Errorf("repeated with a broken policy file: %v", err)
	}
	if err := publish(other, volumeID(2), "1Mi"); status.Code(err) != codes.Unavailable || !strings.Contains(err.Error(), "--policy-file") {
		t.Errorf("a new volume with a broken policy file: %v", err)
	}
	d.unpublish(testPod, volumeID(1))
	configMap(t, config, "4", "namespaces: []")
	d.eventually("the file is read again", func() bool { return strings.Contains(d.stdout.String(), "policy file read") })
	if err := publish(other, volumeID(2), "1Mi"); err != nil {
		t.Error(err)
	}
}
