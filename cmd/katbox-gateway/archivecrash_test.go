package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/katbox/katbox/internal/gateway/uploads"
	form "github.com/katbox/katbox/internal/model/archived"
	"github.com/katbox/katbox/internal/model/resource"
	"github.com/katbox/katbox/internal/model/volume"
)

// sweepNamespaces are what a sweep knows of the cluster.
type sweepNamespaces struct{}

func (sweepNamespaces) OfUID(uid string) (string, bool) { return "ci", uid == ciUID }

func (sweepNamespaces) Tenancy(string) (volume.Tenancy, bool) {
	return volume.Tenancy{UID: clusterUID}, true
}

func (sweepNamespaces) Synced() bool { return true }

// crashStage is a gateway that dies, a node, and a store.
type crashStage struct {
	*process
	store   *deadlyStore
	node    *evidenceNode
	content []byte
}

func newCrashStage(t *testing.T) *crashStage {
	store := newDeadlyStore(t)
	p := newProcess(t, store.URL)
	store.kill = func() { _ = p.running.Process.Kill() } // the test waits for its end
	content := make([]byte, form.PieceSize+1000)         // two pieces
	_, _ = rand.NewChaCha8([32]byte{1}).Read(content)
	return &crashStage{p, store, newEvidenceNode(p), content}
}

// again starts the gateway, once more where it was killed.
func (s *crashStage) again() {
	s.Helper()
	s.kill()
	s.start()
	s.until("the gateway listens for nodes", func() error {
		conn, err := net.Dial("tcp", s.nodes)
		if err == nil {
			err = conn.Close()
		}
		return err
	})
	s.node.connect()
	s.ready()
}

// listed returns the names of the volumes in a list.
func (s *crashStage) listed() (names []string) {
	s.Helper()
	code, text, err := s.ask("alice", http.MethodGet, "")
	var list resource.RetainedVolumeList
	if err == nil && code == http.StatusOK {
		err = json.Unmarshal(text, &list)
	}
	if err != nil || code != http.StatusOK {
		s.Fatalf("list: %d %s, %v", code, text, err)
	}
	for _, v := range list.Items {
		names = append(names, v.Name)
	}
	return names
}

// readable checks that what is listed has its content.
func (s *crashStage) readable(what, name string) {
	s.Helper()
	code, content, err := s.ask("alice", http.MethodGet, "/"+name+"/log?path=content")
	if err != nil || code != http.StatusOK || !bytes.Equal(content, s.content) {
		s.Errorf("%s: %s is listed, and reading it ends with %d, %d bytes, %v", what, name, code, len(content), err)
	}
}

// objects are those of a volume: how many indexes and pieces.
func (s *crashStage) objects(r volume.Record) (indexes, pieces int) {
	for _, key := range s.store.Keys(form.IndexPrefix(clusterUID, ciUID)) {
		if id, _, ok := form.IndexID(key); ok && id == r.ID {
			indexes++
		}
	}
	place := form.Place{Cluster: clusterUID, NamespaceUID: ciUID, Place: r.Place()}
	return indexes, len(s.store.Keys(place.Prefix()))
}

// each calls run with each step, until the gateway lives through it: with -short with every third one.
func (s *crashStage) each(least int, run func(step int) (killed bool)) {
	s.Helper()
	by := 1
	if testing.Short() {
		by = 3
	}
	for step := 0; ; step += by {
		if !run(step) {
			if step < least {
				s.Errorf("it met %d steps, want at least %d", step, least)
			}
			s.Logf("%d steps", step)
			return
		}
		if s.Failed() {
			s.Fatalf("at step %d", step)
		}
	}
}

// sweep is a look for what has ended, which may die.
func (s *crashStage) sweep(step int) (killed bool) {
	s.Helper()
	s.kill()
	s.store.arm(step)
	s.config.Sweep = true
	defer func() { s.config.Sweep = false }()
	s.start()
	err := s.running.Wait()
	if killed = s.store.disarm(); !killed {
		must(s, err)
	}
	s.kill()
	return killed
}

func nameOf(r volume.Record) string { return resource.Name(shownOf(r)) }

// TestGatewayDiesWhileAVolumeIsArchived: whenever it dies, a volume is archived once it is back, as one copy, and is listed only while
// it can be read.
func TestGatewayDiesWhileAVolumeIsArchived(t *testing.T) {
	s := newCrashStage(t)
	s.again()
	var all []volume.Record
	s.each(12, func(step int) (killed bool) {
		dies := s.store.arm(step)
		r := s.node.retain(len(all), s.content)
		all = append(all, r)
		done := func() error {
			select {
			case <-dies:
				return nil
			default:
				return s.node.archived(r.ID)
			}
		}
		s.until("the volume is archived, or the gateway dies", done)
		if killed = s.store.disarm(); killed {
			s.again()
		}
		for _, name := range s.listed() {
			if name == nameOf(r) {
				s.readable(fmt.Sprint("step ", step), name)
			}
		}
		s.until("the volume is archived", func() error { return s.node.archived(r.ID) })
		if indexes, pieces := s.objects(r); indexes != 1 || pieces != 2 {
			t.Errorf("step %d: %d indexes, %d pieces", step, indexes, pieces)
		}
		return killed
	})
	s.store.age(2 * uploads.Abandoned)
	if s.sweep(-1) {
		t.Error("the sweep was killed")
	}
	s.again()
	names := s.listed()
	for _, r := range all {
		if indexes, pieces := s.objects(r); indexes != 1 || pieces != 2 || !slices.Contains(names, nameOf(r)) {
			t.Errorf("%s after the sweep: %d indexes, %d pieces, listed %q", nameOf(r), indexes, pieces, names)
		}
	}
	if len(names) != len(all) {
		t.Errorf("%d are listed, want %d", len(names), len(all))
	}
}

// TestGatewayDiesWhileACopyIsDeleted: whenever it dies, what is listed can be read, who asks again succeeds, and the sweep leaves
// nothing behind.
func TestGatewayDiesWhileACopyIsDeleted(t *testing.T) {
	s := newCrashStage(t)
	s.again()
	var all []volume.Record
	s.each(4, func(step int) (killed bool) {
		r := s.node.retain(len(all), s.content)
		all = append(all, r)
		s.until("the volume is archived", func() error { return s.node.archived(r.ID) })
		s.store.arm(step)
		code, text, err := s.ask("alice", http.MethodDelete, "/"+nameOf(r))
		switch killed = s.store.disarm(); {
		case killed && err == nil && code == http.StatusOK:
			t.Errorf("step %d: a gateway that has died says that it is deleted", step)
		case !killed && (err != nil || code != http.StatusOK):
			t.Errorf("step %d: %d %s, %v", step, code, text, err)
		}
		if killed {
			s.again()
		}
		for _, name := range s.listed() {
			s.readable(fmt.Sprint("step ", step), name)
		}
		code, text, err = s.ask("alice", http.MethodDelete, "/"+nameOf(r))
		if err != nil || code != http.StatusOK && code != http.StatusNotFound {
			t.Errorf("step %d: asked again: %d %s, %v", step, code, text, err)
		}
		if names := s.listed(); len(names) > 0 {
			t.Errorf("step %d: listed %q", step, names)
		}
		return killed
	})
	s.store.age(2 * uploads.Abandoned)
	if s.sweep(-1) {
		t.Error("the sweep was killed")
	}
	if left := s.store.Keys(clusterUID + "/" + ciUID + "/"); len(left) > 0 {
		t.Errorf("left %q", left)
	}
}

// TestGatewayDiesWhileItSweeps: whenever it dies, an index that is there has its pieces, and the next sweep finishes.
func TestGatewayDiesWhileItSweeps(t *testing.T) {
	s := newCrashStage(t)
	record := func(pod int) volume.Record {
		uid := volume.PodUID(podUID(pod))
		return volume.Record{
			ID: volume.KubeletID(uid, "scratch"), Pod: uid, PodName: podName(pod), Namespace: "ci",
			Published: time.Now().Add(-time.Hour), Unpublished: time.Now(),
		}
	}
	ended, abandoned, kept := record(1), record(2), record(3)
	put := func(r volume.Record, until time.Time) {
		place := form.Place{Cluster: clusterUID, NamespaceUID: ciUID, Place: r.Place()}
		for number := range 2 {
			s.store.Put(place.PieceKey(number, form.SumOf([]byte{byte(number)})), []byte("x"))
		}
		if until.IsZero() {
			return
		}
		v := shownOf(r)
		v.ExpiresAt = &until
		key, err := form.IndexKey(clusterUID, v)
		must(t, err)
		s.store.Put(key, []byte("x"))
	}
	s.each(16, func(step int) bool {
		put(ended, time.Now().Add(-time.Hour).Truncate(time.Second))
		put(abandoned, time.Time{})
		put(kept, time.Now().Add(100*time.Hour).Truncate(time.Hour))
		s.store.age(2 * uploads.Abandoned)
		killed := s.sweep(step)
		for _, r := range []volume.Record{ended, kept} {
			if indexes, pieces := s.objects(r); indexes > 0 && pieces != 2 {
				t.Errorf("step %d: %s has an index, and %d pieces", step, r.PodName, pieces)
			}
		}
		if s.sweep(-1) {
			t.Error("the sweep was killed")
		}
		for r, want := range map[*volume.Record]int{&ended: 0, &abandoned: 0, &kept: 3} {
			if indexes, pieces := s.objects(*r); indexes+pieces != want {
				t.Errorf("step %d: after the next sweep %s has %d indexes and %d pieces", step, r.PodName, indexes, pieces)
			}
		}
		return killed
	})
}
