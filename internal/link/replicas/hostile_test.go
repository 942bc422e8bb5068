package replicas_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/katbox/katbox/internal/model/api"
	"github.com/katbox/katbox/internal/model/volume"
)

// crowded holds volumes of many namespaces of one name.
type crowded struct{ volumes }

func (crowded) Holdings(context.Context) (all []volume.Holding, err error) {
	for i := range 200 {
		uid := fmt.Sprintf("%05d%s", i, strings.Repeat("<", 100))
		all = append(all, volume.Holding{Namespace: "ci", NamespaceUID: uid, Verdict: volume.Confirmed, Volumes: 1})
	}
	return all, nil
}

// TestNodeThatHoldsTooMuch makes no answer of a replica long: it is one of which nothing is known, and is asked itself.
func TestNodeThatHoldsTooMuch(t *testing.T) {
	s := newScene(t, 2, "n1", "n2")
	s.connectWith("n1", crowded{}, named("n1"), s.replicas[0])
	s.connect("n2", named("n2"), s.replicas[0])
	f := s.replicas[1].Look(t.Context(), "ci")
	if len(f.Held) != 2 {
		t.Fatalf("%+v", f)
	}
	for _, h := range f.Held {
		if len(h.Holdings) != 1 || (h.Conn.Node() == "n1") != (h.Holdings[0].Namespace == volume.OtherNamespaces) {
			t.Errorf("%s holds %+v", h.Conn.Node(), h.Holdings)
		}
	}
	if got := list(t, f); got["n1"] != "csi-n1" || got["n2"] != "csi-n2" {
		t.Errorf("the list is %v", got)
	}
}

// TestUsersLooksCountNoFailure: a list that had no time makes no node one that is away; a replica that does not answer twice in a row
// is not asked for lists until it is back.
func TestUsersLooksCountNoFailure(t *testing.T) {
	s := newScene(t, 2, "n1")
	s.connect("n1", named("n1"), s.replicas[0])
	reader := s.replicas[1]
	reader.Look(t.Context(), "ci")
	hurried, cancel := context.WithTimeout(t.Context(), time.Nanosecond)
	defer cancel()
	if f := reader.Look(hurried, "ci"); len(f.Missing) != 1 {
		t.Errorf("a list without time: %+v", f)
	}
	if _, ok := reader.Get("n1"); !ok {
		t.Error("n1 is away since a list had no time")
	}
	s.replicas[0].lose()
	reader.others.Begin(t.Context())
	if _, ok := reader.Get("n1"); !ok {
		t.Error("n1 is away after one failure")
	}
	reader.others.Begin(t.Context())
	if _, ok := reader.Get("n1"); ok || reader.others.Count() != 1 {
		t.Error("the replica has failed twice, and counts")
	}
}

// TestOtherConnection: a node that does not answer one replica is asked over the other one, by whichever replica is asked.
func TestOtherConnection(t *testing.T) {
	s := newScene(t, 3, "n1")
	deaf := func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
	s.connect("n1", deaf, s.replicas[0])
	s.connect("n1", named("n1"), s.replicas[1])
	near, _ := s.replicas[0].Get("n1")
	for range 2 {
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		_, err := near.Client().List(ctx, api.Query{})
		cancel()
		if err == nil {
			t.Fatal("a deaf node answers")
		}
	}
	for i, r := range s.replicas {
		f := r.Look(t.Context(), "ci")
		if got := list(t, f); got["n1"] != "csi-n1" || f.Held[0].Skip != "" {
			t.Errorf("replica %d lists %v", i, got)
		}
		conn, _ := r.Get("n1")
		if all, err := conn.Client().List(t.Context(), api.Query{}); err != nil || all.Items[0].ID != "csi-n1" {
			t.Errorf("replica %d reads %+v, %v", i, all, err)
		}
	}
}
