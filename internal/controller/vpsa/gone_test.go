package vpsa

import (
	"errors"
	"testing"

	"github.com/katbox/katbox/internal/controller/array"
	"github.com/katbox/katbox/internal/testing/array/fakevpsa"
)

// TestWordsAloneDoNotMakeAVolumeGone: the code of the answer is unknown, and the list of all volumes has it.
func TestWordsAloneDoNotMakeAVolumeGone(t *testing.T) {
	a := newArray(t, fakevpsa.Options{})
	if err := a.Seed("v", 1, 1, true); err != nil {
		t.Fatal(err)
	}
	id := a.Volumes()[0].ID
	c, ctx := newClient(t, &wire{array: a}), within(t)
	server := must(c.EnsureServer(ctx, array.NewServer{Name: "node1", IQN: "iqn.2026-11.io.katbox:node1"}))(t)
	must(c.Attach(ctx, array.NewAttachment{ServerID: server.ID, VolumeID: id}))(t)
	fault := must(a.Fail(fakevpsa.Fault{Kind: fakevpsa.Refuse, Path: "/api/volumes/*/servers.json", Text: "The session was not found"}))(t)
	wantError(t, c.Detach(ctx, id, server.ID), array.ErrUncertain)
	_, err := c.Attachments(ctx, id)
	wantError(t, err, array.ErrUncertain)
	a.Heal(fault)
	must(a.Fail(fakevpsa.Fault{Kind: fakevpsa.Refuse, Path: "/api/volumes/*.json", Text: "No such controller"}))(t)
	_, err = c.Volume(ctx, id)
	wantError(t, err, array.ErrUncertain)
	wantError(t, c.DeleteVolume(ctx, id), array.ErrUncertain)
	// What the list does not have either is gone.
	_, err = c.Volume(ctx, "volume-00000099")
	wantError(t, err, array.ErrNotFound)
	// A list that answers so says nothing.
	must(a.Fail(fakevpsa.Fault{Kind: fakevpsa.Refuse, Path: "/api/volumes.json", Text: "The session was not found"}))(t)
	if _, err = c.Volume(ctx, "volume-00000099"); !errors.Is(err, array.ErrUncertain) || errors.Is(err, array.ErrNotFound) {
		t.Errorf("the error is %v", err)
	}
	a.Heal(0)
	if left := must(c.Attachments(ctx, id))(t); len(left) != 1 {
		t.Errorf("attached: %+v", left)
	}
	must(struct{}{}, c.Detach(ctx, id, server.ID))(t)
}
