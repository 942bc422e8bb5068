package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/lib/kernel"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/node/quota"
	"github.com/katbox/katbox/internal/testing/roottest"
)

// crashProgram names, in the environment, a daemon that was built with crash points, for machines
// without Go.
const crashProgram = "KATBOX_CRASHPOINTS_PROGRAM"

// TestQuotaCrash ends the daemon at each step that has to do with projects. No directory that a pod can
// write to is without the project that its record says, and no ID without a volume keeps a limit.
func TestQuotaCrash(t *testing.T) {
	dirs := roottest.Quotas(t, quota.Enforced.String())
	binary := os.Getenv(crashProgram)
	if binary == "" {
		binary = buildCrashing(t)
	}
	for _, dir := range dirs {
		for _, op := range quotaOperations() {
			t.Run(filepath.Base(dir)+" "+op.name, func(t *testing.T) {
				first := freshProjects(t)
				op.quotas = dir
				op.flags = append(op.flags, "--size-limit", "8Mi", "--project-ids", fmt.Sprint(first, "+1000"))
				s := newScene(t, op, binary)
				trace, from := s.playThrough()
				checkProjects(s, first, true)
				reached := 0
				for _, o := range occurrences(trace, from) {
					if !aboutProjects(o.point) {
						continue
					}
					reached++
					t.Run(strings.NewReplacer(" ", "-", "/", "-").Replace(o.point)+fmt.Sprint(o.time), func(t *testing.T) {
						again := op
						first := freshProjects(t)
						again.flags = append(slices.Clip(op.flags), "--project-ids", fmt.Sprint(first, "+1000"))
						again.mend = func(s *scene) { checkProjects(s, first, false) }
						s := newScene(t, again, binary)
						s.playCrash(o)
						checkProjects(s, first, true)
					})
				}
				if reached < 6 {
					t.Errorf("only %d points have to do with projects: %q", reached, trace)
				}
			})
		}
	}
}

func quotaOperations() []crashOperation {
	return []crashOperation{
		{name: "publish", do: func(s *scene) error { return s.publishVolume(s.add("new", podFiles())) }},
		expires(crashOperation{name: "expiry"}, podFiles()),
	}
}

// aboutProjects reports whether a crash at a point may part a record, a directory, its project and its
// limit.
func aboutProjects(point string) bool {
	_, name, _ := strings.Cut(point, " ")
	for _, part := range []string{"quota.", "scratch.Dir.create/", "scratch.Dir.finish/", "scratch.Dir.rename/", "store.", "scratch.erasure"} {
		if strings.HasPrefix(name, part) {
			return true
		}
	}
	return false
}

// checkProjects compares records, directories and the kernel's quotas. atEnd: all volumes are gone.
func checkProjects(s *scene, first uint32, atEnd bool) {
	s.t.Helper()
	top, err := os.Open(s.op.quotas)
	if err != nil {
		s.t.Fatal(err)
	}
	defer top.Close()
	had := map[uint32]volume.ID{}
	known, _ := s.records(nil)
	for id, record := range known {
		if other, ok := had[record.Project]; ok || record.Project == 0 {
			s.t.Errorf("volume %s has project %d, which volume %q has", id, record.Project, other)
		}
		had[record.Project] = id
		checkDirectory(s, record)
	}
	for q, err := range quota.Detect(int(top.Fd())).From(first) {
		if err != nil {
			s.t.Fatal(err)
		}
		if _, ok := had[q.ID]; q.ID < first+1000 && q.Limit != (volume.Size{}) && !ok {
			s.t.Errorf("project %d, which no volume has, has a limit: %+v", q.ID, q)
		}
		if atEnd && q.ID < first+1000 && q.Limit != (volume.Size{}) {
			s.t.Errorf("project %d still has a limit: %+v", q.ID, q)
		}
	}
}

// checkDirectory checks the project of a data directory that pods can write to.
func checkDirectory(s *scene, record volume.Record) {
	s.t.Helper()
	dir, err := kernel.Open(s.data(string(record.Pod), string(record.ID)), unix.O_DIRECTORY)
	if err != nil {
		return
	}
	defer dir.Close()
	attr, err := kernel.GetXAttr(int(dir.Fd()))
	if err != nil {
		s.t.Fatal(err)
	}
	info, err := dir.Stat()
	if err != nil {
		s.t.Fatal(err)
	}
	if info.Mode().Perm()&0o002 != 0 && attr.Project != record.Project {
		s.t.Errorf("volume %s has project %d, its record says %d", record.ID, attr.Project, record.Project)
	}
}
