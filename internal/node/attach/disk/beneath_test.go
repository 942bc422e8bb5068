package disk

import (
	"errors"
	"testing"

	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/node/attach"
	"github.com/katbox/katbox/internal/testing/roottest"
)

// TestBindBeneathAMountOfThePod: a kubelet that starts anew publishes again what a pod has mounted something on.
func TestBindBeneathAMountOfThePod(t *testing.T) {
	d, staging := formatted(t, ext4, small), target(t)
	first := published(t)
	mustMount(t, d.path, staging, ext4, false)
	if err := quiet.Bind(staging, first, nil, false); err != nil {
		t.Fatal(err)
	}
	roottest.Tmpfs(t, first, 0)
	if err := quiet.Bind(staging, first, nil, false); err != nil {
		t.Errorf("again: %v", err)
	}
	if err := quiet.Bind(staging, first, nil, true); !errors.Is(err, volume.ErrConflict) {
		t.Errorf("read-only: %v", err)
	}
	other, elsewhere := formatted(t, ext4, small), target(t)
	mustMount(t, other.path, elsewhere, ext4, false)
	if err := quiet.Bind(elsewhere, first, nil, false); !errors.Is(err, attach.ErrNotOurs) {
		t.Errorf("another volume: %v", err)
	}
	table, err := attach.Table()
	if err != nil {
		t.Fatal(err)
	}
	if top, _ := attach.At(table, first); top.FSType != "tmpfs" {
		t.Errorf("on top is %+v", top)
	}
}
