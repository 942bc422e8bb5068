package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/node/quota"
	"github.com/katbox/katbox/internal/testing/roottest"
	"github.com/katbox/katbox/soak/testbed"
)

func TestQuotaLimitsAVolume(t *testing.T) {
	onQuotas(t, quota.Enforced, func(t *testing.T, n *limitedNode) {
		const limit, inodes = 8 << 20, 20
		n.start()
		small := n.mustPublish(podNamed(1), volumeID(1), "8Mi", inodes)
		large := n.mustPublish(podNamed(2), volumeID(2), "", 0)
		its := n.project(small)
		if other := n.project(large); its < n.first || its >= n.first+10 || other < n.first || other >= n.first+10 || other == its {
			t.Fatalf("projects %d and %d, want two of the ten from %d on", its, other, n.first)
		}
		if size, err := n.write(small, "big", 16); err == nil || size > limit || size < limit/2 {
			t.Errorf("%d bytes were written: %v", size, err)
		}
		if size, err := n.write(large, "big", 16); err != nil {
			t.Errorf("a volume without a limit: %d bytes, %v", size, err)
		}
		for _, path := range []string{small, n.data(podNamed(1), volumeID(1))} {
			var st unix.Statfs_t
			if err := unix.Statfs(path, &st); err != nil || int64(st.Blocks)*st.Bsize != limit || st.Files != inodes || st.Ffree != inodes-2 {
				t.Errorf("df of %s: %d bytes, %d of %d inodes free, %v", path, int64(st.Blocks)*st.Bsize, st.Ffree, st.Files, err)
			}
		}
		bytes, files := n.stats(podNamed(1), volumeID(1))
		if bytes.Total != limit || bytes.Used > limit || bytes.Used < limit/2 || bytes.Available != limit-bytes.Used ||
			files.Total != inodes || files.Used != 2 || files.Available != inodes-2 {
			t.Errorf("stats: %v, %v", bytes, files)
		}
		if bytes, files := n.stats(podNamed(2), volumeID(2)); bytes.Total <= limit || bytes.Used < 16<<20 || files.Used != 2 {
			t.Errorf("stats of a volume without a limit: %v, %v", bytes, files)
		}

		var err error
		if err = os.Remove(small + "/big"); err != nil {
			t.Fatal(err)
		}
		made := 0
		for ; err == nil && made < 2*inodes; made++ {
			_, err = roottest.AsPod(small, "touch", fmt.Sprint("f", made))
		}
		if err == nil || made != inodes {
			t.Errorf("file %d is refused, want %d, the top directory counts: %v", made, inodes, err)
		}
		if _, err := roottest.AsPod(small, "mkfifo", "fifo"); err == nil {
			t.Error("one more FIFO could be made")
		}

		// The limits hold after a crash, and while the volume is retained; then they go.
		n.crash()
		if size, err := n.write(small, "f0", 16); err == nil || size > limit || size < limit/2 {
			t.Errorf("%d bytes were written after a crash: %v", size, err)
		}
		n.unpublish(podNamed(1), volumeID(1))
		if q := n.quota(its); q.Limit != (volume.Size{Bytes: limit, Inodes: inodes}) || q.Used.Inodes != inodes {
			t.Errorf("retained: %+v", q)
		}
		n.purgeRetained(podNamed(1), volumeID(1))
		n.wantFree(its)
		n.wantGivenAgain(its, 3)
	})
}

// TestQuotaCountsOnly is a file system that enforces nothing.
func TestQuotaCountsOnly(t *testing.T) {
	onQuotas(t, quota.Accounted, func(t *testing.T, n *limitedNode) {
		n.start()
		target := n.mustPublish(podNamed(1), volumeID(1), "1Mi", 0)
		if size, err := n.write(target, "big", 4); err != nil {
			t.Errorf("%d bytes were written: %v", size, err)
		}
		if bytes, files := n.stats(podNamed(1), volumeID(1)); bytes.Total <= 1<<20 || bytes.Used < 4<<20 || files.Used != 2 {
			t.Errorf("stats: %v, %v", bytes, files)
		}
		n.flags = append(n.flags, "--quota", "required")
		n.crash()
		if err := n.publishLimited(podNamed(2), volumeID(2), "1Mi", 0); err == nil || !strings.Contains(err.Error(), "cannot be enforced") {
			t.Errorf("required: %v", err)
		}
		if exists(n.data(podNamed(2), volumeID(2))) {
			t.Error("the directory of a refused volume stays")
		}
		n.mustPublish(podNamed(3), volumeID(3), "", 0)
	})
}

// TestQuotaWhereThereAreNone publishes volumes with a limit where there are no quotas.
func TestQuotaWhereThereAreNone(t *testing.T) {
	onQuotas(t, quota.None, func(t *testing.T, n *limitedNode) {
		n.start()
		target := n.mustPublish(podNamed(1), volumeID(1), "1Mi", 0)
		if size, err := n.write(target, "big", 4); err != nil {
			t.Errorf("%d bytes were written: %v", size, err)
		}
		if bytes, files := n.stats(podNamed(1), volumeID(1)); bytes.Total <= 1<<20 || bytes.Used < 4<<20 || files.Used != 2 {
			t.Errorf("stats: %v, %v", bytes, files)
		}
		n.flags = append(n.flags, "--quota", "required")
		n.crash()
		err := n.publishLimited(podNamed(2), volumeID(2), "1Mi", 0)
		if err == nil || !strings.Contains(err.Error(), "not mounted with project quotas") {
			t.Errorf("required: %v", err)
		}
		n.mustPublish(podNamed(3), volumeID(3), "", 0)
	})
}

// TestVolumesOfAnEarlierVersion have no project, and get none.
func TestVolumesOfAnEarlierVersion(t *testing.T) {
	onQuotas(t, quota.Enforced, func(t *testing.T, n *limitedNode) {
		n.flags = append(n.flags, "--quota", "off")
		n.start()
		target := n.mustPublish(podNamed(1), volumeID(1), "1Mi", 0)
		if size, err := n.write(target, "big", 4); err != nil || n.project(target) != 0 {
			t.Errorf("%d bytes were written, %v, project %d", size, err, n.project(target))
		}
		n.flags = n.flags[:len(n.flags)-2]
		n.crash()
		n.mustPublish(podNamed(1), volumeID(1), "1Mi", 0)
		if n.project(target) != 0 {
			t.Errorf("project %d was set on a directory with files", n.project(target))
		}
		if bytes, files := n.stats(podNamed(1), volumeID(1)); bytes.Total <= 1<<20 || bytes.Used < 4<<20 || files.Used != 2 {
			t.Errorf("stats: %v, %v", bytes, files)
		}
		n.purge(podNamed(1), volumeID(1))
	})
}

// TestQuotaIDsOfOthers are neither given to a volume nor touched, and a range may end.
func TestQuotaIDsOfOthers(t *testing.T) {
	onQuotas(t, quota.Enforced, func(t *testing.T, n *limitedNode) {
		others := []uint32{1048577, n.first, n.first + 1}
		limit := volume.Size{Bytes: 1 << 20, Inodes: 7}
		for i, id := range others {
			if err := n.quotas.SetLimit(id, limit); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = n.quotas.SetLimit(id, volume.Size{}) })
			dir := filepath.Join(filepath.Dir(n.data("x", "y")), "..", ".others"+strconv.Itoa(i))
			if err := os.Mkdir(dir, 0o700); err != nil {
				t.Fatal(err)
			}
			if _, err := roottest.Run("chattr", "+P", "-p", fmt.Sprint(id), dir); err != nil {
				t.Fatal(err)
			}
		}
		n.flags[3] = fmt.Sprint(n.first, "+4")
		n.start()
		for i := 1; i <= 2; i++ {
			n.mustPublish(podNamed(i), volumeID(i), "1Mi", 0)
			if project := n.project(n.target(podNamed(i))); project != n.first+2 && project != n.first+3 {
				t.Errorf("volume %d has project %d", i, project)
			}
		}
		its := n.project(n.target(podNamed(1)))
		if n.mustPublish(podNamed(3), volumeID(3), "1Mi", 0); n.project(n.target(podNamed(3))) != 0 {
			t.Errorf("project %d is outside of the range", n.project(n.target(podNamed(3))))
		}
		n.flags = append(n.flags, "--quota", "required")
		n.crash()
		if err := n.publishLimited(podNamed(4), volumeID(4), "1Mi", 0); err == nil || !strings.Contains(err.Error(), "no project ID is free") {
			t.Errorf("required: %v", err)
		}
		n.purge(podNamed(1), volumeID(1))
		n.wantFree(its)
		for _, id := range others {
			if q := n.quota(id); q.Limit != limit || q.Used.Inodes != 1 {
				t.Errorf("project %d of somebody else: %+v", id, q)
			}
		}
	})
}

// TestQuotaInsideAProject is a working directory that an administrator limits as a whole.
func TestQuotaInsideAProject(t *testing.T) {
	onQuotas(t, quota.Enforced, func(t *testing.T, n *limitedNode) {
		whole := n.first + 50_000
		if _, err := roottest.Run("chattr", "+P", "-p", fmt.Sprint(whole), n.workdir()); err != nil {
			t.Fatal(err)
		}
		n.start()
		target := n.mustPublish(podNamed(1), volumeID(1), "1Mi", 0)
		if n.project(target) != whole {
			t.Errorf("project %d, want that of the working directory", n.project(target))
		}
		// Root in a pod takes the top directory out of the project, and the trash has none.
		if _, err := roottest.Run("chattr", "-p", "7", target); err != nil {
			t.Fatal(err)
		}
		n.purge(podNamed(1), volumeID(1))
		n.flags = append(n.flags, "--quota", "required")
		n.crash()
		its := n.project(n.mustPublish(podNamed(2), volumeID(2), "1Mi", 0))
		if its < n.first || its >= n.first+10 {
			t.Errorf("required: project %d, want one from %d on", its, n.first)
		}
		n.purge(podNamed(2), volumeID(2))
		n.wantFree(its)
	})
}

// TestQuotaIDsComeBack erases many volumes, and publishes as many: none begins with what is not its
// own.
func TestQuotaIDsComeBack(t *testing.T) {
	const many = 1000
	onQuotas(t, quota.Enforced, func(t *testing.T, n *limitedNode) {
		// XFS frees an ID a moment after the erasure, so a few more may be needed.
		n.flags[1], n.flags[3] = "0s", fmt.Sprint(n.first, "+", many+many/10)
		n.start()
		round := func(from int) (projects []uint32) {
			for i := from; i < from+many; i++ {
				target := n.mustPublish(podNamed(i), volumeID(i), "1Mi", 10)
				project := n.project(target)
				if q := n.quota(project); project < n.first || q.Used.Inodes != 1 || q.Used.Bytes > 4096 {
					t.Fatalf("volume %d begins with %+v", i, q)
				}
				projects = append(projects, project)
				if err := os.WriteFile(target+"/file", make([]byte, 5000), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			for i := from; i < from+many; i++ {
				n.unpublish(podNamed(i), volumeID(i))
			}
			n.eventually("all volumes are erased", func() bool {
				return len(n.trash()) == 0 && !exists(n.data(podNamed(from+many-1), volumeID(from+many-1)))
			})
			return projects
		}
		first := round(0)
		for _, project := range first {
			n.wantFree(project)
		}
		slices.Sort(first)
		if different := len(slices.Compact(first)); different != many {
			t.Errorf("%d volumes have %d projects", many, different)
		}
		round(many) // fails unless IDs come back: there are not enough for both
	})
}

// TestQuotaOfAnOpenFile: a process of the node keeps a deleted file of a volume open.
func TestQuotaOfAnOpenFile(t *testing.T) {
	onQuotas(t, quota.Enforced, func(t *testing.T, n *limitedNode) {
		n.start()
		target := n.mustPublish(podNamed(1), volumeID(1), "", 0)
		its := n.project(target)
		var held *os.File
		testbed.Unforked(func() {
			held, _ = os.Create(filepath.Join(n.data(podNamed(1), volumeID(1)), "held"))
		})
		if err := unix.Fallocate(int(held.Fd()), 0, 0, 64<<20); err != nil {
			t.Fatal(err)
		}
		if err := os.Remove(target + "/held"); err != nil {
			t.Fatal(err)
		}
		if bytes, files := n.stats(podNamed(1), volumeID(1)); bytes.Used < 64<<20 || files.Used != 2 {
			t.Errorf("stats: %v, %v", bytes, files)
		}
		n.purge(podNamed(1), volumeID(1))
		if q := n.quota(its); q.Used.Bytes < 64<<20 {
			t.Errorf("the kernel counts %+v", q)
		}
		if target := n.mustPublish(podNamed(2), volumeID(2), "", 0); n.project(target) == its {
			t.Error("its project was given to another volume")
		}
		if err := held.Close(); err != nil {
			t.Fatal(err)
		}
		n.wantFree(its)
		n.wantGivenAgain(its, 3)
	})
}

// TestQuotaThatIsChanged by root of a container that has a mount of the disk: some programs take the limit of the next
// project away at their start. No volume has the next one, and a limit that is gone comes back.
func TestQuotaThatIsChanged(t *testing.T) {
	onQuotas(t, quota.Enforced, func(t *testing.T, n *limitedNode) {
		n.flags[3] = fmt.Sprint(n.first, "+65536")
		n.start()
		ids := map[uint32]bool{}
		var target string
		for i := range 20 {
			target = n.mustPublish(podNamed(i), volumeID(i), "8Mi", 0)
			ids[n.project(target)] = true
		}
		for id := range ids {
			if ids[id+1] && ids[id+2] && ids[id+3] {
				t.Errorf("four volumes have the projects from %d on", id)
			}
		}
		its := n.project(target)
		for _, limit := range []volume.Size{{}, {Bytes: 1 << 40}, {Bytes: 8 << 20, Inodes: 1}} {
			if err := n.quotas.SetLimit(its, limit); err != nil {
				t.Fatal(err)
			}
			n.stats(podNamed(19), volumeID(19))
			if q := n.quota(its); q.Limit != (volume.Size{Bytes: 8 << 20}) {
				t.Errorf("changed to %+v, and now it is %+v", limit, q.Limit)
			}
		}
		n.eventually("the log says so", func() bool { return n.logged("another program had changed the limit of a volume") })
		// Nobody has to ask for it.
		if err := n.quotas.SetLimit(its, volume.Size{}); err != nil {
			t.Fatal(err)
		}
		n.crash()
		n.eventually("the limit is set again", func() bool { return n.quota(its).Limit == volume.Size{Bytes: 8 << 20} })
		if size, err := n.write(target, "big", 16); err == nil || size > 8<<20 {
			t.Errorf("%d bytes were written: %v", size, err)
		}
	})
}

// TestQuotaIsTurnedOff by root of a container that has the disk's device: it is on again within a minute, or when Katbox
// asks what a volume takes.
func TestQuotaIsTurnedOff(t *testing.T) {
	onQuotas(t, quota.Enforced, func(t *testing.T, n *limitedNode) {
		n.start()
		target := n.mustPublish(podNamed(1), volumeID(1), "8Mi", 0)
		if out, err := roottest.Run("quotaoff", "-P", n.fileSystem); err != nil {
			t.Fatal(out, err)
		}
		top, err := os.Open(n.fileSystem)
		if err != nil {
			t.Fatal(err)
		}
		defer top.Close()
		if state, err := quota.Detect(int(top.Fd())).State(); state != quota.Accounted {
			t.Fatalf("turned off, it is %s, %v", state, err)
		}
		n.stats(podNamed(1), volumeID(1))
		if size, err := n.write(target, "big", 16); err == nil || size > 8<<20 {
			t.Errorf("%d bytes were written: %v", size, err)
		}
		n.eventually("the log says so", func() bool { return n.logged("another program had turned project quotas off") })
	})
}

// TestQuotaOfACopy of the working directory, as an administrator makes it who gives Katbox a disk of its own, or restores
// one from a backup: no file has a project. Sizes are those of the files, and the limit of a volume holds once it is published again.
func TestQuotaOfACopy(t *testing.T) {
	onQuotas(t, quota.Enforced, func(t *testing.T, n *limitedNode) {
		n.start()
		former := n.project(n.mustPublish(podNamed(1), volumeID(1), "8Mi", 20))
		if _, err := roottest.AsPod(n.target(podNamed(1)), "mkdir", "-p", "a/b"); err != nil {
			t.Fatal(err)
		}
		if size, err := n.write(n.target(podNamed(1)), "a/b/data", 4); err != nil {
			t.Fatal(size, err)
		}
		n.unpublish(podNamed(1), volumeID(1))
		n.end()
		backup := t.TempDir() + "/backup"
		for _, command := range [][]string{
			{"cp", "-a", n.workdir(), backup},
			{"sh", "-c", `rm -r "$1"/* "$1"/.[!.]*`, "sh", n.workdir()},
			{"cp", "-a", backup + "/.", n.workdir()},
		} {
			if out, err := roottest.Run(command...); err != nil {
				t.Fatal(out, err)
			}
		}

		n.start()
		n.eventually("the copy is measured, and its limit is shown as not enforced", func() bool {
			v, err := n.admin().Volume(t.Context(), volumeID(1))
			return err == nil && v.Bytes != nil && *v.Bytes >= 4<<20 && v.Terms.LimitNotEnforced
		})
		target := n.mustPublish(podNamed(1), volumeID(1), "8Mi", 20)
		its := n.project(target)
		if its == former || its != n.project(target+"/a/b") || its != n.project(target+"/a/b/data") {
			t.Errorf("project %d, and %d before; below it %d and %d", its, former, n.project(target+"/a/b"), n.project(target+"/a/b/data"))
		}
		if bytes, files := n.stats(podNamed(1), volumeID(1)); bytes.Total != 8<<20 || bytes.Used < 4<<20 || files.Total != 20 || files.Used != 4 {
			t.Errorf("stats: %v, %v", bytes, files)
		}
		if size, err := n.write(target, "a/b/more", 16); err == nil || size > 4<<20 {
			t.Errorf("%d bytes were written: %v", size, err)
		}
		n.purge(podNamed(1), volumeID(1))
		n.wantFree(its)
	})
}
