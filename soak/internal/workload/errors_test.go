package workload

import (
	"math"
	"strings"
	"testing"
)

// TestErrors has the text that a user sees for everything that is refused.
func TestErrors(t *testing.T) {
	const (
		top = "pods, parallel, arrival, length, drain, deletedEarly, failed, again, owned, volumes, contents, calls, " +
			"reading, driver, disk, faults, timeout"
		faults = "daemon-kill, kubelet-restart, disk-full, no-inodes, slow-disk, clock-step, open-files, " +
			"busy-target, foreign-mount, nested-mount, pod-removed, volume-removed, volume-symlink"
		inEmpty = "churn.yaml: there is nothing in it; a preset would be an example to begin with"
		tight   = "volumes: {tight: 0.1}\ndisk: {kind: ext4, quotas: true}\n"
	)
	for _, c := range []struct{ text, want string }{
		// What is no workload at all.
		{"", inEmpty},
		{"# nothing\n", inEmpty},
		{"---\n", inEmpty},
		{"pods: 1\n---\npods: 2\n", "churn.yaml: there is more than one YAML document in it, it has to be only one"},
		{"pods: [", "churn.yaml: yaml: line 1: did not find expected node content"},
		{"- pods", "churn.yaml: the document has to have fields, of " + top},
		{"pods", "churn.yaml: the document has to have fields, of " + top},
		// Fields.
		{"pods: 1\nbods: 2", "churn.yaml:2: bods is unknown, it has to be one of " + top},
		{"calls:\n  doubld: 1", "churn.yaml:2: calls.doubld is unknown, it has to be one of doubled, cancelled, reordered, bad"},
		{"faults:\n- kind: daemon-kill\n  how: often", "churn.yaml:3: faults[0].how is unknown, it has to be one of kind, times, for, step"},
		{"pods: 1\npods: 2", "churn.yaml:2: pods is given twice"},
		{"<<: {pods: 1}", "churn.yaml:1: << is unknown, it has to be one of " + top},
		{"calls: 1", "churn.yaml:1: calls has to have fields, of doubled, cancelled, reordered, bad"},
		{"faults: daemon-kill", "churn.yaml:1: faults has to be a list"},
		{"faults: [daemon-kill]", "churn.yaml:1: faults[0] has to have fields, of kind, times, for, step"},
		{"pods: [1]", "churn.yaml:1: pods has to be a whole number"},
		// Values of the wrong type.
		{"pods: many", `churn.yaml:1: pods is "many", it has to be a whole number`},
		{"\n\npods: 1.5", `churn.yaml:3: pods is "1.5", it has to be a whole number`},
		{"pods: 99999999999999999999", `churn.yaml:1: pods is "99999999999999999999", it has to be a whole number`},
		{"drain: maybe", `churn.yaml:1: drain is "maybe", it has to be true or false`},
		{"calls: {doubled: often}", `churn.yaml:1: calls.doubled is "often", it has to be a number`},
		{"disk: {kind: {a: b}}", "churn.yaml:1: disk.kind has to be text"},
		{"timeout: 30", `churn.yaml:1: timeout is "30", it has to be a duration such as 1m30s or 500ms`},
		{"timeout: soon", `churn.yaml:1: timeout is "soon", it has to be a duration such as 1m30s or 500ms`},
		{"disk: {size: 2GB}", `churn.yaml:1: disk.size is "2GB", it has to be a size such as 512Mi or 2Gi, or a whole number of bytes`},
		{"disk: {size: 1.5Gi}", `churn.yaml:1: disk.size is "1.5Gi", it has to be a size such as 512Mi or 2Gi, or a whole number of bytes`},
		{"disk: {size: 9999999999Gi}",
			`churn.yaml:1: disk.size is "9999999999Gi", it has to be a size such as 512Mi or 2Gi, or a whole number of bytes`},
		// Numbers out of their bounds.
		{"timeout: 0s", "churn.yaml:1: timeout is 0s, it has to lie between 1s and 1000h0m0s"},
		{"pods: 0", "churn.yaml:1: pods is 0, it has to lie between 1 and 10000000"},
		{"pods: 1\nparallel: 0", "churn.yaml:2: parallel is 0, it has to lie between 1 and 10000000"},
		{"drain: true", "churn.yaml: parallel is 8, but drain needs all pods on the node at a time: it has to be at least pods, which is 300"},
		{"arrival: {rate: -1}", "churn.yaml:1: arrival.rate is -1, it has to lie between 0 and 1e+06"},
		{"arrival: {rate: .inf}", "churn.yaml:1: arrival.rate is +Inf, it has to lie between 0 and 1e+06"},
		{"arrival: {rate: 0.1}", "churn.yaml:1: arrival.rate is 0.1, so the 300 pods cannot arrive before the timeout of 15m0s"},
		{"arrival: {burst: 0}", "churn.yaml:1: arrival.burst is 0, it has to lie between 1 and 10000000"},
		{"length:\n  distribution: normal",
			`churn.yaml:2: length.distribution is "normal", it has to be one of constant, uniform, exponential, lognormal`},
		{"length: {mean: -1s}", "churn.yaml:1: length.mean is -1s, it has to lie between 0s and 15m0s"},
		{"length: {mean: 1h}", "churn.yaml:1: length.mean is 1h0m0s, it has to lie between 0s and 15m0s"},
		{"length: {mean: 10s, max: 5s}", "churn.yaml:1: length.max is 5s, it has to be 0s or at least length.mean, which is 10s"},
		{"deletedEarly: 2", "churn.yaml:1: deletedEarly is 2, it has to lie between 0 and 1"},
		{"volumes: {min: -1}", "churn.yaml:1: volumes.min is -1, it has to lie between 0 and 100"},
		{"volumes: {max: 101}", "churn.yaml:1: volumes.max is 101, it has to lie between 0 and 100"},
		{"volumes: {min: 3, max: 2}", "churn.yaml:1: volumes.max is 2, it has to be at least volumes.min, which is 3"},
		{"volumes:\n  min: 3", "churn.yaml:2: volumes.max is 2, it has to be at least volumes.min, which is 3"},
		{"volumes: {min: 0, max: 0}", "churn.yaml:1: volumes.max is 0 and so is volumes.persistent, so no pod would have a volume"},
		{"volumes: {readOnly: -0.1}", "churn.yaml:1: volumes.readOnly is -0.1, it has to lie between 0 and 1"},
		{"volumes: {persistent: 1.1}", "churn.yaml:1: volumes.persistent is 1.1, it has to lie between 0 and 1"},
		{"volumes: {pool: 0}", "churn.yaml:1: volumes.pool is 0, it has to lie between 1 and 10000"},
		{"contents: {files: -1}", "churn.yaml:1: contents.files is -1, it has to lie between 0 and 10000"},
		{"contents: {bytes: 2Gi}", "churn.yaml:1: contents.bytes is 2Gi, it has to lie between 0 and 1Gi"},
		{"contents: {deep: 2}", "churn.yaml:1: contents.deep is 2, it has to lie between 0 and 1"},
		{"contents: {names: 2}", "churn.yaml:1: contents.names is 2, it has to lie between 0 and 1"},
		{"contents: {sparse: 2}", "churn.yaml:1: contents.sparse is 2, it has to lie between 0 and 1"},
		{"contents: {links: 2}", "churn.yaml:1: contents.links is 2, it has to lie between 0 and 1"},
		{"contents: {modes: 2}", "churn.yaml:1: contents.modes is 2, it has to lie between 0 and 1"},
		{"contents: {special: 2}", "churn.yaml:1: contents.special is 2, it has to lie between 0 and 1"},
		{"calls:\n  doubled: 1.5", "churn.yaml:2: calls.doubled is 1.5, it has to lie between 0 and 1"},
		{"calls: {doubled: .nan}", "churn.yaml:1: calls.doubled is NaN, it has to lie between 0 and 1"},
		{"calls: {cancelled: -1}", "churn.yaml:1: calls.cancelled is -1, it has to lie between 0 and 1"},
		{"calls: {reordered: 1.01}", "churn.yaml:1: calls.reordered is 1.01, it has to lie between 0 and 1"},
		{"again: 2", "churn.yaml:1: again is 2, it has to lie between 0 and 1"},
		{"owned: 2", "churn.yaml:1: owned is 2, it has to lie between 0 and 1"},
		{"driver: {maxPerOwner: {first: -1}}", "churn.yaml:1: driver.maxPerOwner.first is -1, it has to lie between 0 and 1000"},
		{"driver: {maxPerOwner: {last: 1001}}", "churn.yaml:1: driver.maxPerOwner.last is 1001, it has to lie between 0 and 1000"},
		{"driver:\n  maxPerOwner: {first: 1}", "churn.yaml:2: driver.maxPerOwner.last is 0: the newest pod of an owner has to stay"},
		{"reading: {readers: 33}", "churn.yaml:1: reading.readers is 33, it has to lie between 0 and 32"},
		{"reading: {readers: 1, removed: 2}", "churn.yaml:1: reading.removed is 2, it has to lie between 0 and 1"},
		{"reading: {removed: 0.1}",
			"churn.yaml:1: reading.removed is 0.1, but reading.readers is 0, so the driver has no admin socket to decide about volumes by"},
		{"reading: {attached: 0.1}",
			"churn.yaml:1: reading.attached is 0.1, but reading.readers is 0, so the driver has no admin socket to decide about volumes by"},
		{"reading: {readers: 1, attached: 0.1}", "churn.yaml: driver.releaseGrace is 0s, but reading.released is 0, reading.attached 0.1 " +
			"and volumes.onFailure 0: say how long what is let go is kept"},
		{"volumes: {limits: 2}", "churn.yaml:1: volumes.limits is 2, it has to lie between 0 and 1"},
		{"volumes: {limits: 0.1}", "churn.yaml: driver.maxLifespan is 0s, but volumes.limits is 0.1: it has to be at least " +
			"driver.lifespan, which is 20s"},
		{"driver: {maxLifespan: 2m}", "churn.yaml:1: driver.maxLifespan is 2m0s, it has to lie between 0s and 1m0s"},
		{"volumes: {tight: 2}", "churn.yaml:1: volumes.tight is 2, it has to lie between 0 and 1"},
		{"volumes: {tight: 0.1}", "churn.yaml:1: volumes.tight is 0.1, but nothing limits volumes: disk.quotas has to be true"},
		{tight + "contents: {files: 501}", "churn.yaml:3: contents.files is 501, but volumes.tight is 0.1: it has to be at most 500"},
		{tight + "contents: {files: 500, bytes: 5Ki}", "churn.yaml:3: contents.bytes is 5Ki, but volumes.tight is 0.1: " +
			"all files of a volume have to fit into 4Mi"},
		{tight + "faults: [{kind: disk-full, for: 1s}]", "churn.yaml:1: volumes.tight is 0.1, but faults[0] is disk-full: " +
			"nothing can be said about limits on a full disk"},
		{"disk: {kind: tmpfs, quotas: true}", "churn.yaml:1: disk.quotas is true, " +
			"but a disk.kind of tmpfs has no project quotas: only ext4, xfs have"},
		{"calls: {bad: 101}", "churn.yaml:1: calls.bad is 101, it has to lie between 0 and 100"},
		{"driver: {lifespan: 1h}", "churn.yaml:1: driver.lifespan is 1h0m0s, it has to lie between 0s and 15m0s"},
		{"driver: {headroom: 2}", "churn.yaml:1: driver.headroom is 2, it has to lie between 0 and 1"},
		{"driver: {pruneInterval: 0s}", "churn.yaml:1: driver.pruneInterval is 0s, it has to lie between 100ms and 1000h0m0s"},
		{"driver: {orphanGrace: 0s}", "churn.yaml:1: driver.orphanGrace is 0s, it has to lie between 1ms and 1000h0m0s"},
		// Disks.
		{"disk: {kind: zfs}", `churn.yaml:1: disk.kind is "zfs", it has to be one of directory, tmpfs, ext4, xfs, btrfs, auto`},
		{"disk: {kind: ext4, size: 1Mi}", "churn.yaml:1: disk.size is 1Mi, for ext4 it has to lie between 16Mi and 1Ti"},
		{"disk: {kind: xfs, size: 100Mi}", "churn.yaml:1: disk.size is 100Mi, for xfs it has to lie between 300Mi and 1Ti"},
		{"disk: {kind: auto, size: 2Ti}", "churn.yaml:1: disk.size is 2Ti, for auto it has to lie between 16Mi and 1Ti"},
		{"disk: {kind: auto, inodes: 10}", "churn.yaml:1: disk.inodes is 10, it has to lie between 1000 and 100000000"},
		{"disk: {kind: xfs, inodes: 9999}",
			"churn.yaml:1: disk.inodes is 9999, but a disk.kind of xfs has no fixed number of inodes: only ext4, tmpfs, auto have"},
		{"disk: {inodes: 9999}",
			"churn.yaml:1: disk.inodes is 9999, but a disk.kind of directory has no fixed number of inodes: only ext4, tmpfs, auto have"},
		// Faults.
		{"faults:\n- times: 1", "churn.yaml:2: faults[0].kind is missing, it has to be one of " + faults},
		{"faults:\n- kind: pod-removed\n-", "churn.yaml:3: faults[1] is empty"},
		{"faults: [{kind: fire}]", `churn.yaml:1: faults[0].kind is "fire", it has to be one of ` + faults},
		{"faults: [{kind: pod-removed, times: 0}]", "churn.yaml:1: faults[0].times is 0, it has to lie between 1 and 100000"},
		{"faults:\n- kind: pod-removed\n- kind: daemon-kill",
			"churn.yaml:3: faults[1].for is missing, but daemon-kill lasts for a time: give one, such as 5s"},
		{"faults: [{kind: daemon-kill, for: 1h}]", "churn.yaml:1: faults[0].for is 1h0m0s, it has to lie between 1ms and 15m0s"},
		{"faults: [{kind: pod-removed, for: 1s}]", "churn.yaml:1: faults[0].for is 1s, but pod-removed does not last: leave it out"},
		{"faults: [{kind: clock-step}]",
			"churn.yaml:1: faults[0].step is missing: say by how much the clock goes forwards, such as 1h, or back, such as -1h"},
		{"faults: [{kind: clock-step, step: 999999h}]",
			"churn.yaml:1: faults[0].step is 999999h0m0s, it has to lie between -876000h0m0s and 876000h0m0s"},
		{"faults: [{kind: clock-step, step: 1h, for: 1s}]", "churn.yaml:1: faults[0].for is 1s, but clock-step does not last: leave it out"},
		{"faults: [{kind: pod-removed, step: 1h}]", "churn.yaml:1: faults[0].step is 1h0m0s, but only clock-step has one: leave it out"},
		{"faults: [{kind: disk-full, for: 1s}]",
			"churn.yaml:1: faults[0].kind is disk-full, it needs a disk.kind of tmpfs, ext4, xfs, btrfs, auto, but that is directory"},
		{"faults: [{kind: no-inodes, for: 1s}]\ndisk: {kind: btrfs}",
			"churn.yaml:1: faults[0].kind is no-inodes, it needs a disk.kind of tmpfs, ext4, auto, but that is btrfs"},
		{"faults: [{kind: slow-disk, for: 1s}]\ndisk: {kind: tmpfs}",
			"churn.yaml:1: faults[0].kind is slow-disk, it needs a disk.kind of ext4, xfs, btrfs, auto, but that is tmpfs"},
		{"pods: 5\nfaults: [{kind: pod-removed, times: 3}, {kind: volume-removed, times: 3}]",
			"churn.yaml:2: faults befall 6 volumes, and no more than one of each pod: pods is 5"},
		{"volumes: {min: 0}\nfaults: [{kind: pod-removed}]", "churn.yaml:1: volumes.min is 0, it has to be at least 1 for the faults of volumes"},
	} {
		_, err := parse("churn.yaml", []byte(c.text))
		if err == nil {
			t.Errorf("%q is accepted, want: %s", c.text, c.want)
		} else if err.Error() != c.want {
			t.Errorf("%q:\n got %v\nwant %s", c.text, err, c.want)
		}
	}
}

// TestCheckWithoutFile has the errors of a workload that is no file's.
func TestCheckWithoutFile(t *testing.T) {
	w := defaults()
	w.Calls.Bad = math.NaN()
	err := w.Check()
	if want := "calls.bad is NaN, it has to lie between 0 and 100"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	if err := defaults().Check(); err != nil {
		t.Errorf("the defaults are refused: %v", err)
	}
}

// TestSecondDocumentIsBroken has an error of YAML behind the first document.
func TestSecondDocumentIsBroken(t *testing.T) {
	_, err := parse("x", []byte("pods: 1\n---\n["))
	if err == nil || !strings.Contains(err.Error(), "more than one YAML document") || !strings.Contains(err.Error(), "yaml: ") {
		t.Errorf("got %v, want both what is wrong and the parser's error", err)
	}
}
