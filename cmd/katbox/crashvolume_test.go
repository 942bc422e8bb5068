package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/katbox/katbox/soak/story"
	"github.com/katbox/katbox/soak/testbed"
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
	// story judges what is seen of it. Its only marker stands for all files.
	story    *story.Story
	reported bool
	// published is what the kubelet wants, answered that a call said so.
	published, answered bool
	// vanished: its pod has gone without an unpublish.
	vanished bool
	// decide repeats what a person decided about the volume; nil without a decision.
	decide func() error
	// released: a person let it go, and was answered.
	released bool
}

// add makes the next volume of a scene. Its pod has a directory.
func (s *scene) add(pod string, files map[string]string) *playedVolume {
	s.t.Helper()
	id := volumeID(100 + len(s.volumes))
	v := &playedVolume{
		pod: pod, id: id, files: files, story: story.New(3 * hangs),
		target: testbed.Volume{Kubelet: s.layout().Kubelet, Pod: pod, Name: id[len(id)-3:]}.Target(),
	}
	v.story.InPlace = s.op.inPlace
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
	v.tell(story.Event{What: story.Wrote, N: 1})
}

// publishVolume is the kubelet's call.
func (s *scene) publishVolume(v *playedVolume) error {
	v.published, v.answered = true, false
	v.tell(story.Event{What: story.Publish})
	if v.attach != nil {
		v.attach.tell(story.Event{What: story.Attach})
	}
	req := s.request(v.pod, v.id)
	req.TargetPath, req.Readonly = v.target, v.readOnly
	v.attribute(req.VolumeContext)
	ctx, cancel := context.WithTimeout(s.t.Context(), hangs)
	defer cancel()
	_, err := s.node.NodePublishVolume(ctx, req)
	replied := time.Now()
	if v.answered = err == nil; v.answered {
		v.tell(story.Event{At: replied, What: story.Published, N: s.found(v)})
		if v.attach != nil {
			v.attach.tell(story.Event{At: replied, What: story.Attached})
		}
	}
	return err
}

// unpublishVolume is the kubelet's call.
func (s *scene) unpublishVolume(v *playedVolume) error {
	s.tellUnpublish(v)
	if v.attach != nil {
		v.attach.tell(story.Event{What: story.Detach, Lifespan: crashGrace})
	}
	v.published, v.answered = false, false
	ctx, cancel := context.WithTimeout(s.t.Context(), hangs)
	defer cancel()
	_, err := s.node.NodeUnpublishVolume(ctx, testbed.Unpublish(v.id, v.target))
	if v.answered = err == nil; v.answered {
		v.tell(story.Event{What: story.Retained})
		if v.attach != nil {
			v.attach.tell(story.Event{What: story.Detached})
		}
		if exists(v.target) {
			v.tell(story.Event{What: story.Failed, Text: "it is unpublished, and still has its target"})
		}
	}
	return err
}

// tellUnpublish tells that the daemon may retain a volume from now on, for its present lifespan or the one that was
// promised when the volume was published.
func (s *scene) tellUnpublish(v *playedVolume) {
	now := time.Now()
	for _, lifespan := range []time.Duration{s.lifespan(), s.op.lifespan()} {
		v.tell(story.Event{At: now, What: story.Unpublish, Lifespan: lifespan})
	}
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
