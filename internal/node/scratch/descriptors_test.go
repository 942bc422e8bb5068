package scratch

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/katbox/katbox/internal/model/volume"
)

// descriptors is how many files this process has open.
func descriptors(t *testing.T) int {
	t.Helper()
	names, err := os.ReadDir("/proc/self/fd")
	must(t, err)
	return len(names)
}

// TestNoDescriptorStaysOpen: whatever a call does, and whether it succeeds, it closes what it has opened.
// A daemon that lives for months makes each of them a million times.
func TestNoDescriptorStaysOpen(t *testing.T) {
	eachKernel(t, func(t *testing.T, d *Dir) {
		ctx := t.Context()
		link, file := at("pod-1", "csi-link"), at("pod-1", "csi-file")
		create(t, d, here)
		must(t, os.Symlink("/", d.Path(link)))
		must(t, os.WriteFile(d.Path(file), nil, 0o600))
		must(t, os.Symlink("/", filepath.Join(d.root, "pod-link")))
		missing, elsewhere := at("pod-2", "csi-1"), at("pod-link", "csi-1")
		deep := d.Path(here)
		for range 70 {
			deep = filepath.Join(deep, "a")
		}
		must(t, os.MkdirAll(filepath.Join(deep, "b"), 0o755))
		must(t, os.WriteFile(filepath.Join(deep, "file"), nil, 0o644))

		withoutTrash := t.TempDir()
		must(t, os.WriteFile(filepath.Join(withoutTrash, trashName), nil, 0o600)) // it should be a directory

		all := []volume.Place{here, link, file, missing, elsewhere}
		of := func(call func(volume.Place) error) func() {
			return func() {
				for _, p := range all {
					_ = call(p) // most are to fail
				}
			}
		}
		for _, test := range []struct {
			name string
			call func()
		}{
			{"Exists", of(func(p volume.Place) error { _, err := d.Exists(p); return err })},
			{"Create", of(func(p volume.Place) error {
				created, err := d.Create(p)
				if created {
					err = d.RemoveEmpty(p)
				}
				return err
			})},
			{"Usage", of(func(p volume.Place) error { _, _, err := d.Usage(ctx, p, nil); return err })},
			{"Usage that is broken off", func() {
				ended, cancel := context.WithCancel(ctx)
				cancel()
				if _, _, err := d.Usage(ended, here, nil); err == nil {
					t.Error("Usage did not end with its context")
				}
			}},
			{"Walk", func() { must(t, d.Walk(ctx, func(volume.Place) error { return nil })) }},
			{"CheckPath", func() { must(t, d.CheckPath()) }},
			{"Space", func() { _, err := d.Space(); must(t, err) }},
			{"Foreign", func() {
				if _, err := Foreign(d.Path(here)); err != nil {
					t.Error(err)
				}
				_, _ = Foreign(d.Path(file)) // it is no directory
			}},
			{"Open", func() {
				opened, err := Open(d.root)
				must(t, err)
				must(t, opened.Close())
				for _, path := range []string{d.Path(file), withoutTrash} {
					if _, err := Open(path); err == nil {
						t.Errorf("%s was opened as a working directory", path)
					}
				}
			}},
			{"Tree", of(func(p volume.Place) error {
				tree, err := d.Tree(p)
				if err == nil {
					err = tree.Close()
				}
				return err
			})},
			{"Trash", func() {
				must(t, d.SyncTrash())
				_, _, err := d.TrashPage(0, 10)
				must(t, err)
				_, err = d.TrashSize()
				must(t, err)
			}},
			{"SyncGone", of(func(p volume.Place) error { return d.SyncGone(p.Pod) })},
			{"Discard and Erase", func() {
				for _, p := range []volume.Place{missing, elsewhere, file} {
					if _, err := d.Discard(p); err == nil {
						t.Errorf("%v went to the trash", p)
					}
				}
				p := at("pod-3", "csi-3")
				create(t, d, p)
				must(t, os.MkdirAll(filepath.Join(d.Path(p), "a", "b"), 0o755))
				name, err := d.Discard(p)
				must(t, err)
				must(t, d.Erase(ctx, name, nil))
				must(t, d.Erase(ctx, name, nil)) // it is gone
			}},
			{"EraseInPlace", func() {
				p := at("pod-4", "csi-4")
				create(t, d, p)
				must(t, os.MkdirAll(filepath.Join(d.Path(p), "a", "b"), 0o755))
				must(t, d.EraseInPlace(ctx, p, nil))
				_ = d.EraseInPlace(ctx, elsewhere, nil) // its pod is a symlink
			}},
		} {
			test.call() // what is kept for later is open from then on
			before := descriptors(t)
			for range 4 {
				test.call()
			}
			if after := descriptors(t); after != before {
				t.Errorf("%s: %d descriptors are open after four more calls, and %d were before", test.name, after, before)
			}
		}
	})
}

// TestEraseRefusesOtherNames: a name leads to nothing but an entry of the trash.
func TestEraseRefusesOtherNames(t *testing.T) {
	d := open(t)
	create(t, d, here)
	for _, name := range []string{"", ".", "..", "../pod-1", "/", "a/b", "a\x00"} {
		if err := d.Erase(t.Context(), name, nil); err == nil {
			t.Errorf("Erase(%q) is no error", name)
		}
	}
	if !exists(d.Path(here)) {
		t.Error("a volume is gone")
	}
}
