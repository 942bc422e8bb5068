package main

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

func TestRemains(t *testing.T) {
	for _, test := range []struct {
		name string
		dirs []string
		want []string
	}{
		{"nothing", nil, nil},
		{"empty trash", []string{".trash"}, nil},
		{"something set aside", []string{".aside/x"}, nil},
		{"data", []string{"uid/csi-1", "uid/csi-2"}, []string{"uid/csi-1", "uid/csi-2"}},
		{"empty pod", []string{"uid"}, []string{"uid/"}},
		{"trash", []string{".trash/csi-1"}, []string{".trash/csi-1"}},
	} {
		work := t.TempDir()
		if err := os.WriteFile(filepath.Join(work, "records.db"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		for _, dir := range test.dirs {
			if err := os.MkdirAll(filepath.Join(work, dir), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		got, err := remains(work)
		if err != nil || !slices.Equal(got, test.want) {
			t.Errorf("%s: %q, %v; want %q", test.name, got, err, test.want)
		}
		f := &findings{}
		if err := awaitEmpty(context.Background(), work, time.Now(), f); err != nil {
			t.Errorf("%s: %v", test.name, err)
		}
		if found := f.number(leftData) > 0; found != (test.want != nil) {
			t.Errorf("%s: reported %t, want %t", test.name, found, test.want != nil)
		}
	}
}

func TestAwaitEmptyWaits(t *testing.T) {
	work := t.TempDir()
	dir := filepath.Join(work, "uid")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	time.AfterFunc(150*time.Millisecond, func() { os.Remove(dir) })
	f := &findings{}
	if err := awaitEmpty(context.Background(), work, time.Now().Add(time.Minute), f); err != nil || f.sum() != 0 {
		t.Errorf("violations %+v, %v; want none", f.all(), err)
	}
}
