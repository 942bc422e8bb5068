package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/katbox/katbox/internal/volume"
)

// playedVolume is a volume of a scene, as the kubelet knows it.
type playedVolume struct {
	pod, id, target string
	readOnly        bool
	// namespace is the pod's; empty where it does not matter.
	namespace string
	// attach is the retained volume that is mounted in place of a new one; nil for most. Only that one
	// has data.
	attach *playedVolume
	// files are what its pod has written, by path; "-> x" is a link to x.
	files map[string]string
	// written: the files are there.
	written bool
	// published is what the kubelet wants, answered that a call said so.
	published, answered bool
	// recorded: the last answer means that there is a record.
	recorded bool
	// keptUntil: while the volume is not published, its data is there until then.
	keptUntil time.Time
	// pressed: the disk is full, or a person wants it, so the volume may go at any time.
	pressed bool
	// decide repeats what a person decided about the volume; nil without a decision. hold is what the last
	// answer said, holdKnown that there was one.
	decide    func() error
	hold      volume.HoldKind
	holdKnown bool
}

// mayGo reports whether the volume is not kept any more.
func (s *scene) mayGo(v *playedVolume) bool {
	return !v.published && !s.isAttached(v) && (v.pressed || !time.Now().Before(v.keptUntil))
}

// add makes the next volume of a scene. Its pod has a directory.
func (s *scene) add(pod string, files map[string]string) *playedVolume {
	s.t.Helper()
	id := volumeID(100 + len(s.volumes))
	v := &playedVolume{
		pod: pod, id: id, files: files,
		target: filepath.Join(s.dir, "kubelet/pods", pod, "volumes/kubernetes.io~csi", id[len(id)-3:], "mount"),
	}
	s.makeTargetParent(v)
	s.volumes = append(s.volumes, v)
	return v
}

func (s *scene) makeTargetParent(v *playedVolume) {
	s.t.Helper()
	if err := os.MkdirAll(filepath.Dir(v.target), 0o750); err != nil {
		s.t.Fatal(err)
	}
}

// writeFiles writes the pod's files into the data directory, which also works for a
// read-only volume.
func (s *scene) writeFiles(v *playedVolume) {
	s.t.Helper()
	dir := s.data(v.pod, v.id)
	if !exists(dir) { // the daemon has not made it
		if err := errors.Join(os.MkdirAll(dir, 0o755), os.Chmod(dir, 0o777)); err != nil {
			s.t.Fatal(err)
		}
	}
	for path, content := range v.files {
		if link, ok := strings.CutPrefix(content, "-> "); ok {
			if err := os.Symlink(link, filepath.Join(dir, path)); err != nil {
				s.t.Fatal(err)
			}
			continue
		}
		s.write(filepath.Join(dir, path), content)
	}
	v.written = true
}

// publishVolume is the kubelet's call.
func (s *scene) publishVolume(v *playedVolume) error {
	v.published, v.answered, v.recorded = true, false, false
	req := s.request(v.pod, v.id)
	req.TargetPath, req.Readonly = v.target, v.readOnly
	v.attribute(req.VolumeContext)
	ctx, cancel := context.WithTimeout(s.t.Context(), hangs)
	defer cancel()
	_, err := s.node.NodePublishVolume(ctx, req)
	v.answered, v.recorded = err == nil, err == nil
	return err
}

// unpublishVolume is the kubelet's call.
func (s *scene) unpublishVolume(v *playedVolume) error {
	if v.attach != nil {
		v.attach.prolong()
	} else if kept := time.Now().Add(s.lifespan()); v.published || v.keptUntil.After(kept) {
		v.keptUntil = kept
	}
	v.published, v.answered, v.recorded = false, false, false
	ctx, cancel := context.WithTimeout(s.t.Context(), hangs)
	defer cancel()
	_, err := s.node.NodeUnpublishVolume(ctx, &csi.NodeUnpublishVolumeRequest{VolumeId: v.id, TargetPath: v.target})
	v.answered, v.recorded = err == nil, err == nil
	return err
}

// addPublished makes a volume of a pod that runs and has written something.
func (s *scene) addPublished(pod string, files map[string]string) *playedVolume {
	s.t.Helper()
	v := s.add(pod, files)
	s.must(s.publishVolume(v))
	s.writeFiles(v)
	return v
}

// must ends the test if a call did not succeed.
func (s *scene) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatalf("%v\n%s", err, s.logText())
	}
}

// repeated repeats a call while the answer is Aborted, as the kubelet does.
func repeated(call func() error) error {
	for deadline := time.Now().Add(hangs); ; {
		err := call()
		if status.Code(err) != codes.Aborted || time.Now().After(deadline) {
			return err
		}
		time.Sleep(10 * time.Millisecond) // the kubelet waits half a second
	}
}
