package main

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/katbox/katbox/soak/internal/history"
	"github.com/katbox/katbox/soak/internal/launch"
	"github.com/katbox/katbox/soak/internal/workload"
	"github.com/katbox/katbox/soak/story"
)

// TestContainer: what a container has written is found again, and what is different is told.
func TestContainer(t *testing.T) {
	dir := t.TempDir()
	wanted := workload.Content{Marker: "marker", Seed: 1, Files: 3, Bytes: 1000, Links: true}
	d := deed{Write: true, Path: dir, Outside: t.TempDir(), Content: wanted}
	if err := d.run(t.Context()); err != nil {
		t.Fatal(err)
	}
	d.Write = false
	if err := d.run(t.Context()); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(dir, "content/file-1-*"))
	if err != nil || len(files) != 1 {
		t.Fatal(files, err)
	}
	if err := os.WriteFile(files[0], []byte("other"), 0o600); err != nil {
		t.Fatal(err)
	}
	if d.run(t.Context()) == nil {
		t.Error("another content was not found")
	}
}

// TestContainerOnDevice is the same for devices, and for one that is too small.
func TestContainerOnDevice(t *testing.T) {
	device := filepath.Join(t.TempDir(), "device")
	if err := errors.Join(os.WriteFile(device, nil, 0o600), os.Truncate(device, 4<<20)); err != nil {
		t.Fatal(err)
	}
	d := deed{Write: true, Path: device, Block: true, Content: workload.Content{Seed: 1}}
	if err := d.run(t.Context()); err != nil {
		t.Fatal(err)
	}
	d.Write = false
	if err := d.run(t.Context()); err != nil {
		t.Fatal(err)
	}
	larger, other := d, d
	larger.Bytes, other.Content.Seed = 8<<20, 2
	if larger.run(t.Context()) == nil || other.run(t.Context()) == nil {
		t.Error("a device that is too small, or has another content, was not found")
	}
}

// TestDoubled: what the array did twice is found, and nothing else.
func TestDoubled(t *testing.T) {
	made := func(name string) change {
		return change{Call: "POST /api/volumes.json", Params: map[string][]string{"name": {name}}}
	}
	grown := func(id string) change { return change{Call: "POST /api/volumes/*/expand.json", Object: id} }
	once := []change{made("a"), made("b"), grown("1"), grown("2"), {Call: "DELETE /api/servers/*.json"}, {Call: "DELETE /api/servers/*.json"}}
	if found := doubled(once); len(found) != 0 {
		t.Errorf("found %q", found)
	}
	if found := doubled(append(slices.Clone(once), made("a"), grown("2"))); len(found) != 2 {
		t.Errorf("found %q", found)
	}
}

// TestOptions: what cannot be played is refused.
func TestOptions(t *testing.T) {
	for _, args := range [][]string{{"--kinds", "tape"}, {"--parallel", "0"}, {"--for", "1ms"}, {"more"}} {
		if _, err := parseOptions(args); !errors.Is(err, launch.ErrUsage) {
			t.Errorf("%q: %v", args, err)
		}
	}
	if _, err := parseOptions(nil); err != nil {
		t.Error(err)
	}
}

// TestStories: a volume that the array lost, or has with another size, breaks its story, and so do other data.
func TestStories(t *testing.T) {
	for _, test := range []struct {
		promise history.Promise
		seen    story.Event
	}{
		{Once, story.Event{What: story.Unknown}},
		{Once, sized(story.Listed, 2)},
		{history.PublishedData, story.Event{What: story.Partial, Text: "other bytes"}},
		{history.AnyOrder, story.Event{What: story.Failed, Text: "expand: refused"}},
	} {
		f, v := newFindings(io.Discard), newVolume("a", nfs, workload.Content{})
		for _, e := range []story.Event{
			sized(story.Create, 1), sized(story.Created, 1), {What: story.Wrote, N: 1}, {What: story.Whole}, sized(story.Listed, 1),
		} {
			if !f.add(test.promise, v, e) {
				t.Errorf("%s: %v", e, f.err())
			}
		}
		if f.add(test.promise, v, test.seen) || f.Number(test.promise) != 1 {
			t.Errorf("%s was not found", test.seen)
		}
	}
}
