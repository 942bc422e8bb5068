package store

import (
	"fmt"
	"math"
	"time"

	"github.com/katbox/katbox/internal/model/volume"
)

// storedPromise has what a volume was promised, what became of its pod and of the promise, and what
// it stands on. An earlier version ignores these fields and does not write them.
type storedPromise struct {
	Lifespan          int64  `cbor:"20,keyasint,omitempty"` // of the terms
	LifespanSucceeded int64  `cbor:"21,keyasint,omitempty"`
	Retain            uint64 `cbor:"22,keyasint,omitempty"`
	LimitBytes        int64  `cbor:"23,keyasint,omitempty"`
	LimitInodes       int64  `cbor:"24,keyasint,omitempty"`
	Mode              uint64 `cbor:"25,keyasint,omitempty"`
	Outcome           uint64 `cbor:"26,keyasint,omitempty"`
	HoldKind          uint64 `cbor:"27,keyasint,omitempty"`
	HoldFor           int64  `cbor:"28,keyasint,omitempty"`
	HoldBy            string `cbor:"29,keyasint,omitempty"`
	HoldWhy           string `cbor:"30,keyasint,omitempty"`
	Project           uint64 `cbor:"31,keyasint,omitempty"`
	AttachPod         string `cbor:"32,keyasint,omitempty"`
	AttachID          string `cbor:"33,keyasint,omitempty"`
	NoLogs            bool   `cbor:"34,keyasint,omitempty"`
	Archive           uint64 `cbor:"35,keyasint,omitempty"`
	ArchivedUntil     int64  `cbor:"36,keyasint,omitempty"`
}

func storePromise(r volume.Record) storedPromise {
	t, h := r.Terms, r.Hold
	return storedPromise{
		Lifespan: int64(t.Lifespan), LifespanSucceeded: int64(t.LifespanSucceeded), Retain: uint64(t.Retain),
		LimitBytes: t.Limit.Bytes, LimitInodes: t.Limit.Inodes, Mode: uint64(t.Mode),
		Outcome:  uint64(r.Outcome),
		HoldKind: uint64(h.Kind), HoldFor: int64(h.For), HoldBy: h.By, HoldWhy: h.Why,
		Project:   uint64(r.Project),
		AttachPod: string(r.Attach.Pod), AttachID: string(r.Attach.ID), NoLogs: t.NoLogs,
		Archive: uint64(t.Archive), ArchivedUntil: max(r.ArchivedUntil.Unix(), 0),
	}
}

// into sets the fields of a record that are stored here. What cannot be used, because a later version
// wrote it, is no reason to lose the record: it counts as not set.
func (s *storedPromise) into(r *volume.Record) {
	r.Terms = volume.Terms{
		Lifespan: time.Duration(s.Lifespan), LifespanSucceeded: time.Duration(s.LifespanSucceeded),
		Retain: volume.Retain(clamp8(s.Retain)),
		Limit:  volume.Size{Bytes: s.LimitBytes, Inodes: s.LimitInodes},
		Mode:   uint32(min(s.Mode, math.MaxUint32)), NoLogs: s.NoLogs,
		Archive: volume.Archive(clamp8(s.Archive)),
	}
	if r.Terms.Check() != nil {
		r.Terms = volume.Terms{}
	}
	if o := volume.Outcome(clamp8(s.Outcome)); o.Valid() {
		r.Outcome = o
	}
	r.Hold = s.hold()
	if s.ArchivedUntil > 0 {
		r.ArchivedUntil = time.Unix(s.ArchivedUntil, 0)
	}
	if s.Project <= math.MaxUint32 {
		r.Project = uint32(s.Project)
	}
	r.Attach = volume.Place{Pod: volume.PodUID(s.AttachPod), ID: volume.ID(s.AttachID)}
	if checkAttach(r.Attach) != nil {
		r.Attach = volume.Place{}
	}
}

// hold returns the hold that is stored. One whose texts cannot be used still holds the volume.
func (s *storedPromise) hold() volume.Hold {
	h := volume.Hold{Kind: volume.HoldKind(clamp8(s.HoldKind)), For: time.Duration(s.HoldFor), By: s.HoldBy, Why: s.HoldWhy}
	if h.Check() == nil {
		return h
	}
	h.By, h.Why = "", ""
	if h.Check() == nil {
		return h
	}
	return volume.Hold{}
}

// clamp8 returns a number that means nothing for one that does not fit.
func clamp8(n uint64) uint8 { return uint8(min(n, math.MaxUint8)) }

// checkPromise refuses what into would not return.
func checkPromise(r *volume.Record) error {
	if err := r.Terms.Check(); err != nil {
		return err
	}
	if err := r.Hold.Check(); err != nil {
		return err
	}
	if !r.Outcome.Valid() {
		return fmt.Errorf("outcome %d does not exist", uint8(r.Outcome))
	}
	return checkAttach(r.Attach)
}

// checkAttach refuses a place that leads out of the working directory.
func checkAttach(p volume.Place) error {
	if p == (volume.Place{}) {
		return nil
	}
	if _, err := volume.ParseID("attached volume ID", string(p.ID)); err != nil {
		return err
	}
	_, err := volume.ParsePodUID("attached pod UID", string(p.Pod))
	return err
}
