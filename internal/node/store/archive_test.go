package store

import (
	"strings"
	"testing"
	"time"

	"github.com/katbox/katbox/internal/model/volume"
)

// TestArchiveIsStored: until when the archive has a copy, and the seal of an owner. A seal that cannot be used costs nothing else.
func TestArchiveIsStored(t *testing.T) {
	owner := volume.Owner{Verdict: volume.Confirmed, NamespaceUID: "ns", Kind: "Job", Name: "a", Seal: strings.Repeat("s", volume.MaxSeal)}
	r := volume.Record{ID: "csi-a", Pod: "pod", Phase: volume.Published, Owner: owner, ArchivedUntil: time.Unix(1_800_000_000, 0)}
	value, err := encodeValue(r, moment{})
	if err != nil {
		t.Fatal(err)
	}
	got, err := decodeValue([]byte(r.ID), value, moment{})
	if err != nil || got.Owner != owner || !got.ArchivedUntil.Equal(r.ArchivedUntil) {
		t.Errorf("%+v, %v, want %+v", got, err, r)
	}
	r.Owner.Seal += "s"
	if _, err := encodeValue(r, moment{}); err == nil {
		t.Error("a seal that is too long is stored")
	}
	stored := storeOwner(r.Owner)
	if got := stored.owner(); got != owner.Unsealed() {
		t.Errorf("%+v, want the owner without its seal", got)
	}
}
