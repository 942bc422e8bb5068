package fakevpsa

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/katbox/katbox/internal/testing/array/dataplane"
)

// administration returns the handler for what is below /fake/.
func (a *Array) administration() http.Handler {
	mux := http.NewServeMux()
	for pattern, handle := range map[string]func(*http.Request) (any, error){
		"GET /fake/state":       func(*http.Request) (any, error) { return a.snapshotOfState(), nil },
		"GET /fake/counts":      func(*http.Request) (any, error) { return a.Counts(), nil },
		"DELETE /fake/counts":   func(*http.Request) (any, error) { a.ResetCounts(); return nil, nil },
		"GET /fake/changes":     func(r *http.Request) (any, error) { return a.Changes(r.URL.Query().Get("call")), nil },
		"GET /fake/attachments": func(*http.Request) (any, error) { return a.Attachments(), nil },
		"GET /fake/faults":      func(*http.Request) (any, error) { return a.Faults(), nil },
		"POST /fake/faults":     a.postFault,
		"DELETE /fake/faults":   func(*http.Request) (any, error) { a.Heal(0); return nil, nil },
		"DELETE /fake/faults/{id}": func(r *http.Request) (any, error) {
			id, err := strconv.Atoi(r.PathValue("id"))
			if err != nil || id == 0 {
				return nil, fmt.Errorf("no fault has the ID %q", r.PathValue("id"))
			}
			a.Heal(id)
			return nil, nil
		},
		"POST /fake/settle":    func(*http.Request) (any, error) { a.Settle(); return nil, nil },
		"GET /fake/settings":   func(*http.Request) (any, error) { return a.Settings(), nil },
		"PATCH /fake/settings": a.patchSettings,
		"POST /fake/switch":    func(*http.Request) (any, error) { return nil, a.SwitchController() },
		"POST /fake/away":      a.postAway,
		"POST /fake/back":      func(*http.Request) (any, error) { return nil, a.Return() },
		"POST /fake/ca":        func(*http.Request) (any, error) { return nil, a.RenewCA() },
		"POST /fake/seed":      a.postSeed,
		"POST /fake/status":    a.postStatus,
		"POST /fake/volumes": func(r *http.Request) (any, error) {
			return add(r, a.AddVolume)
		},
		"POST /fake/servers":          func(r *http.Request) (any, error) { return add(r, a.AddServer) },
		"POST /fake/pools":            func(r *http.Request) (any, error) { return add(r, a.AddPool) },
		"POST /fake/snapshots":        a.postSnapshot,
		"PATCH /fake/volumes/{id}":    a.patchVolume,
		"PATCH /fake/pools/{id}":      a.patchPool,
		"DELETE /fake/volumes/{id}":   func(r *http.Request) (any, error) { return nil, a.Remove(r.PathValue("id")) },
		"DELETE /fake/snapshots/{id}": func(r *http.Request) (any, error) { return nil, a.Remove(r.PathValue("id")) },
		"DELETE /fake/servers/{id}":   func(r *http.Request) (any, error) { return nil, a.Remove(r.PathValue("id")) },
	} {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			result, err := handle(r)
			w.Header().Set("Content-Type", "application/json")
			if err != nil {
				w.WriteHeader(http.StatusBadRequest)
				result = map[string]string{"error": err.Error()}
			}
			if result == nil {
				result = struct{}{}
			}
			_ = json.NewEncoder(w).Encode(result)
		})
	}
	return mux
}

// read decodes the body of a request into v. What is not in the body stays as it is.
func read(r *http.Request, v any) error {
	d := json.NewDecoder(r.Body)
	d.DisallowUnknownFields()
	return d.Decode(v)
}

// add reads an object and adds it.
func add[T any](r *http.Request, to func(T) (T, error)) (any, error) {
	var o T
	if err := read(r, &o); err != nil {
		return nil, err
	}
	return to(o)
}

// faultInWords is a fault whose delay is written as 1.5s.
type faultInWords struct {
	*plainFault
	Delay string `json:"delay,omitempty"`
}

type plainFault Fault

// MarshalJSON writes the delay as 1.5s.
func (f Fault) MarshalJSON() ([]byte, error) {
	words := faultInWords{plainFault: (*plainFault)(&f)}
	if f.Delay != 0 {
		words.Delay = f.Delay.String()
	}
	return json.Marshal(words)
}

// UnmarshalJSON reads a delay such as 1.5s.
func (f *Fault) UnmarshalJSON(data []byte) (err error) {
	words := faultInWords{plainFault: (*plainFault)(f)}
	if err = json.Unmarshal(data, &words); err == nil && words.Delay != "" {
		f.Delay, err = time.ParseDuration(words.Delay)
	}
	return err
}

func (a *Array) postFault(r *http.Request) (any, error) {
	var f Fault
	if err := read(r, &f); err != nil {
		return nil, err
	}
	id, err := a.Fail(f)
	return map[string]int{"id": id}, err
}

func (a *Array) patchSettings(r *http.Request) (any, error) { return nil, merge(r, a.Change) }

func (a *Array) patchVolume(r *http.Request) (any, error) {
	return nil, merge(r, func(change func(*Volume)) error { return a.ChangeVolume(r.PathValue("id"), change) })
}

func (a *Array) patchPool(r *http.Request) (any, error) {
	return nil, merge(r, func(change func(*Pool)) error { return a.ChangePool(r.PathValue("id"), change) })
}

// merge changes those fields of an object that the body has.
func merge[T any](r *http.Request, change func(func(*T)) error) error {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return err
	}
	var bad error
	err = change(func(o *T) {
		changed := *o
		d := json.NewDecoder(bytes.NewReader(body))
		d.DisallowUnknownFields()
		if bad = d.Decode(&changed); bad == nil {
			*o = changed
		}
	})
	return errors.Join(bad, err)
}

func (a *Array) postSeed(r *http.Request) (any, error) {
	var seed struct {
		Prefix string
		Count  int
		Size   int64
		Block  bool
	}
	if err := read(r, &seed); err != nil {
		return nil, err
	}
	return nil, a.Seed(seed.Prefix, seed.Count, max(seed.Size, 1), seed.Block)
}

func (a *Array) postAway(r *http.Request) (any, error) {
	var away struct{ How dataplane.Away }
	if err := read(r, &away); err != nil {
		return nil, err
	}
	return nil, a.Leave(away.How)
}

func (a *Array) postStatus(r *http.Request) (any, error) {
	var s struct {
		ID, Status string
		Requests   int64
	}
	if err := read(r, &s); err != nil {
		return nil, err
	}
	return nil, a.SetStatus(s.ID, s.Status, s.Requests)
}

func (a *Array) postSnapshot(r *http.Request) (any, error) {
	var s struct{ Volume, Name string }
	if err := read(r, &s); err != nil {
		return nil, err
	}
	return a.AddSnapshot(s.Volume, s.Name)
}

// snapshotOfState returns the whole state, as the file has it.
func (a *Array) snapshotOfState() (data json.RawMessage) {
	a.look(func(s *state) {
		var err error
		if data, err = json.Marshal(s.file()); err != nil {
			panic(err) // It is made of text and numbers.
		}
	})
	return data
}
