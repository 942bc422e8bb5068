package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/soak/story"
	"github.com/katbox/katbox/soak/testbed"
)

// This file is the eye of the crash tests: it tells the story of each volume what is seen of it on the node. What that
// means is decided in package story.

// tell goes on with the story of a volume.
func (v *playedVolume) tell(e story.Event) {
	if e.At.IsZero() {
		e.At = time.Now()
	}
	e.Until = time.Now()
	v.story.Add(e)
}

// tellAll goes on with the stories of all volumes.
func (s *scene) tellAll(what story.Verb) {
	for _, v := range s.volumes {
		v.tell(story.Event{What: what})
	}
}

// look looks at all volumes, at what concerns none, and judges.
func (s *scene) look(when string) {
	s.t.Helper()
	for _, v := range s.volumes {
		s.lookAtTarget(v)
		s.lookAtData(v)
	}
	s.lookOutside(when)
	s.judge(when)
}

// judge reports the stories that broke.
func (s *scene) judge(when string) {
	s.t.Helper()
	for _, v := range s.volumes {
		if broken := v.story.Broken(); broken != "" && !v.reported {
			v.reported = true
			var told strings.Builder
			for _, e := range v.story.Told() {
				told.WriteString("\n    " + e.String())
			}
			s.t.Errorf("%s: volume %s of pod %s: %s%s", when, v.id, v.pod, broken, told.String())
		}
	}
}

// lookAtTarget looks at a volume as its pod sees it.
func (s *scene) lookAtTarget(v *playedVolume) {
	s.t.Helper()
	e := story.Event{At: time.Now(), What: story.Missing}
	if s.mounted(v.target) {
		e.What = story.Shown
		if e.Text = s.wrongView(v); e.Text != "" {
			e.What = story.Wrong
		}
	}
	v.tell(e)
}

// wrongView returns what is wrong with a mounted volume.
func (s *scene) wrongView(v *playedVolume) string {
	s.t.Helper()
	if problem := wrongFile(v, v.target); v.story.Markers() > 0 && problem != "" {
		return problem
	}
	info, err := os.Stat(v.target)
	if err != nil {
		s.t.Fatal(err)
	}
	if info.Mode().Perm() != 0o777 {
		return "mode " + info.Mode().String() + ", want 0777"
	}
	err = testbed.WriteUnforked(filepath.Join(v.target, ".try"), nil)
	if v.readOnly != errors.Is(err, syscall.EROFS) {
		return fmt.Sprintf("a write to it ends with %v, read-only %t", err, v.readOnly)
	}
	return ""
}

// lookAtData looks at a volume's own data directory. It goes by one rename, so what is half there after the files were
// read is not on its way out.
func (s *scene) lookAtData(v *playedVolume) {
	s.t.Helper()
	dir := s.data(v.pod, v.id)
	e := story.Event{At: time.Now(), What: story.Whole}
	problem := wrongFile(v, dir)
	switch {
	case !exists(dir):
		e.What = story.Gone
	case v.story.Markers() > 0 && problem != "":
		e.What, e.Text = story.Partial, problem
	}
	v.tell(e)
}

// lookOutside looks at files that no volume has.
func (s *scene) lookOutside(when string) {
	s.t.Helper()
	if got, err := testbed.ReadUnforked(filepath.Join(s.outside(), "precious")); err != nil || string(got) != "precious" {
		s.t.Errorf("%s: a file outside: %q, %v", when, got, err)
	}
	if got, err := testbed.ReadUnforked(s.foreign()); !s.op.empty && (err != nil || string(got) != "notes") {
		s.t.Errorf("%s: a file of somebody else: %q, %v", when, got, err)
	}
}

// found is what a pod finds in a volume that was just published: all markers, or none.
func (s *scene) found(v *playedVolume) int {
	s.t.Helper()
	problem := wrongFile(v, v.target)
	switch {
	case v.story.Markers() == 0:
		return 0
	case problem == "":
		return 1
	}
	for path := range v.files {
		if exists(filepath.Join(v.target, path)) {
			v.tell(story.Event{What: story.Partial, Text: "its pod sees: " + problem})
		}
	}
	return 0
}

// wrongFile returns what is wrong with a volume's files in a directory.
func wrongFile(v *playedVolume, dir string) string {
	for path, want := range v.files {
		got, err := testbed.ReadUnforked(filepath.Join(dir, path))
		if link, ok := strings.CutPrefix(want, "-> "); ok {
			var to string
			to, err = os.Readlink(filepath.Join(dir, path))
			got, want = []byte(to), link
		}
		if err != nil {
			return err.Error()
		}
		if string(got) != want {
			return path + " has other content"
		}
	}
	return ""
}

// lookAtRecord tells what a volume's record says, if it has one.
func (v *playedVolume) lookAtRecord(known map[volume.ID]volume.Record) {
	record, ok := known[volume.ID(v.id)]
	e := story.Event{What: story.KnownKept}
	switch {
	case !ok:
		e.What = story.Unknown
	case record.Phase.Live():
		e.What = story.KnownLive
	case record.Phase == volume.Deleting:
		e.What = story.KnownGoing
	case record.Hold.Kind != volume.NoHold:
		e.Text = record.Hold.Kind.String()
	}
	v.tell(e)
}
