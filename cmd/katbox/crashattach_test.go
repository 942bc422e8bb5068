package main

import (
	"slices"
	"time"

	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/soak/story"
)

// crashAttachments are operations with a pod that looks at what another one left. That one's own
// deadline does not come before the crash, except where it may.
func crashAttachments() []crashOperation {
	about := func(name string, prepare func(*scene), do func(*scene) error) crashOperation {
		return crashOperation{name: name, lives: time.Hour, alone: true, flags: []string{"--release-grace", crashGrace.String()},
			prepare: prepare, do: do}
	}
	attached := func(s *scene) {
		addSource(s)
		s.must(s.attachLast())
	}
	attach := about("attach", addSource, (*scene).attachLast)
	return []crashOperation{
		attach,
		attach.thenReboot(),
		about("release of an attached volume", attached, func(s *scene) error { return s.decide(s.last().attach, release) }),
		about("detach", attached, func(s *scene) error { return s.unpublishVolume(s.last()) }),
		about("detach of a released volume", func(s *scene) {
			attached(s)
			s.must(release(s, s.last().attach))
			s.passGrace()
		}, func(s *scene) error { return s.unpublishVolume(s.last()) }),
	}
}

// addSource makes a retained volume that pods of its namespace may attach.
func addSource(s *scene) {
	s.t.Helper()
	v := s.add("retained", podFiles())
	v.id, v.namespace = string(volume.KubeletID(volume.PodUID(v.pod), "scratch")), "ci"
	s.must(s.publishVolume(v))
	s.writeFiles(v)
	s.must(s.unpublishVolume(v))
}

// attachLast attaches the last volume to a new pod.
func (s *scene) attachLast() error {
	s.t.Helper()
	source := s.last()
	v := s.add("looking", source.files)
	v.namespace, v.attach, v.readOnly = source.namespace, source, true
	v.tell(story.Event{What: story.Looks})
	v.tell(story.Event{What: story.Wrote, N: 1})
	return s.publishVolume(v)
}

// passGrace returns when the graces of all that was released are over, and the daemon rests.
func (s *scene) passGrace() {
	s.t.Helper()
	const pod, commits = "later", 3 // release and two of the deletion
	before := s.met(afterCommit)
	s.makePod(pod)
	releasedLater(s.daemon, pod)
	s.must(s.await("its record is gone", func() bool { return s.met(afterCommit) >= before+commits && s.trashIsEmpty() }))
}

// attribute adds what the kubelet says of a pod with a namespace.
func (v *playedVolume) attribute(context map[string]string) {
	if v.namespace != "" {
		context["csi.storage.k8s.io/pod.namespace"] = v.namespace
		context["csi.storage.k8s.io/pod.name"] = "nightly"
	}
	if v.attach != nil {
		context["attach"] = v.attach.pod + "/scratch"
	}
}

// isAttached reports whether a pod has the volume attached.
func (s *scene) isAttached(v *playedVolume) bool {
	return slices.ContainsFunc(s.volumes, func(by *playedVolume) bool { return by.attach == v && by.published })
}
