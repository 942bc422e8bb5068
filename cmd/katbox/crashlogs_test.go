package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"

	core "k8s.io/api/core/v1"

	"github.com/katbox/katbox/internal/model/api"
	"github.com/katbox/katbox/internal/model/podend"
	"github.com/katbox/katbox/internal/model/volume"
)

const (
	// loggedPod is the UID of a pod with logs.
	loggedPod = "0e8dfcf5-8b1f-4a52-9c7b-2f8f9b0c1d2f"
	// said is what its container has printed since it was restarted.
	said = "2026-11-30T05:00:00.123456789Z stdout F the last word\n"
)

// crashLogs are operations with a pod whose logs are kept.
func crashLogs() []crashOperation {
	ends := crashOperation{name: "end of a pod with logs", stop: syscall.SIGTERM, offline: addLogs, restarted: checkLogs,
		do: func(s *scene) error {
			if err := s.startIt(); err != nil {
				return err
			}
			v := s.last()
			if err := s.publishVolume(v); err != nil {
				return err
			}
			s.ownPart()
			if err := s.unpublishVolume(v); err != nil {
				return err
			}
			return s.await("the logs are kept", func() bool { return s.met(afterEntry) >= 4 })
		}}
	again := ends
	again.name = "second end of a pod with logs"
	again.certain = 5 // a sixth entry is not in each run: not each of its records may lag
	again.do = func(s *scene) error {
		if err := ends.do(s); err != nil {
			return err
		}
		if err := os.RemoveAll(filepath.Join(s.podLogs(), "ci_nightly_"+loggedPod, "sidecar")); err != nil {
			return err
		}
		v := s.last()
		s.makeTargetParent(v)
		if err := s.publishVolume(v); err != nil {
			return err
		}
		s.ownPart()
		if err := s.unpublishVolume(v); err != nil {
			return err
		}
		return s.await("the logs are kept anew", func() bool {
			return s.met("after lastwords.copying.file/Renameat") >= 1 && s.met(afterEntry) >= 5
		})
	}
	late := ends
	late.name = "end of a pod that is told after its logs are kept"
	late.do = func(s *scene) error {
		events := make(chan []byte, 1)
		s.tellPods(events)
		if err := ends.do(s); err != nil {
			return err
		}
		events <- podEnded(s.t, loggedPod, core.PodFailed)
		return s.await("it is kept how the pod ended", func() bool { return s.met("after lastwords.KeepEnd/Renameat") >= 1 })
	}
	return []crashOperation{ends, again, late}
}

// addLogs makes the next start keep logs, of which the kubelet has some of a pod: those of a container that was restarted,
// and more of another one than are kept.
func addLogs(s *scene) {
	s.t.Helper()
	v := s.add(loggedPod, podFiles())
	v.namespace = "ci"
	dir := filepath.Join(s.podLogs(), "ci_nightly_"+loggedPod)
	s.write(filepath.Join(dir, "main/0.log"), strings.Repeat(said, 10))
	s.write(filepath.Join(dir, "main/1.log"), said)
	s.write(filepath.Join(dir, "sidecar/0.log"), strings.Repeat(said, 20_000))
	s.flags = append(s.flags, "--logs", "on", "--pod-logs-dir", s.podLogs(), "--logs-limit", "64Ki")
}

func (s *scene) podLogs() string { return filepath.Join(s.dir, "podlogs") }

// checkLogs looks at what is kept after a crash: if there is anything, it is whole, because the kubelet has the logs still.
func checkLogs(s *scene) {
	s.t.Helper()
	id := volume.LogsID(loggedPod)
	known, _ := s.records(nil)
	record, ok := known[id]
	if !ok {
		return // the daemon died before it knew of the end, or it has expired
	}
	if !record.IsLogs() || record.Namespace != "ci" || record.PodName != "nightly" {
		s.t.Errorf("the logs are recorded as %+v", record)
	}
	s.eventually("the logs are kept, or have expired", func() bool {
		known, _ := s.records(nil)
		record, ok := known[id]
		return !ok || record.Phase != volume.Publishing
	})
	read := func(path string) (string, bool) {
		text, err := os.ReadFile(filepath.Join(s.data(loggedPod, string(id)), path))
		return string(text), err == nil
	}
	if end, ok := read(api.PodEnd); ok {
		if _, err := podend.Decode([]byte(end)); err != nil {
			s.t.Errorf("%s is %q: %v", api.PodEnd, end, err)
		}
	}
	text, ok := read("main/1.log")
	missing, said := read(api.MissingLogs)
	if !ok || !said {
		return // it expires meanwhile
	}
	if !strings.Contains(text, "the last word") || !strings.Contains(missing, `"container":"sidecar"`) {
		s.t.Errorf("kept is %q, and missing %q", text, missing)
	}
}
