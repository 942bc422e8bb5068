package web

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"time"
)

// mergePatch is the form of a patch.
const mergePatch = "application/merge-patch+json"

// patch is what the page may change of a volume: until when it is kept, and why. With null, what a person
// has decided is taken back.
type patch struct {
	Spec struct {
		KeepUntil  json.RawMessage `json:"keepUntil"`
		KeepReason string          `json:"keepReason,omitempty"`
	} `json:"spec"`
}

// hold pins a volume, or takes back what a person has decided about it. The cluster sees what was
// understood here, and nothing else of the request.
func (s *Server) hold(w http.ResponseWriter, r *http.Request, c call) {
	body, err := parsePatch(w, r)
	if err != nil {
		fail(w, http.StatusBadRequest, "BadRequest", err.Error())
		return
	}
	header := http.Header{"Accept": {"application/json"}, "Content-Type": {mergePatch}}
	reply := s.backend.send(r.Context(), http.MethodPatch, c, "", header, body)
	defer reply.close()
	text, err := io.ReadAll(io.LimitReader(reply.body, maxBody))
	if !sane(reply.code) || err != nil || !json.Valid(text) {
		fail(w, http.StatusBadGateway, "BadGateway", "the cluster did not answer as expected; reload the volume to see how long it is kept")
		return
	}
	answer(w, reply.code, json.RawMessage(text))
}

// parsePatch reads and checks what the page sends, and returns it as the cluster gets it.
func parsePatch(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	if media, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); media != mergePatch {
		return nil, errors.New("a patch has the Content-Type " + mergePatch)
	}
	text, err := readBody(w, r)
	if err != nil {
		return nil, err
	}
	var p patch
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&p); err != nil {
		return nil, fmt.Errorf("the patch cannot be read: %w", err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("the patch has something behind its end")
	}
	var until *time.Time
	if err := json.Unmarshal(p.Spec.KeepUntil, &until); err != nil {
		return nil, errors.New("the patch has no spec.keepUntil that is a time, or null")
	}
	return json.Marshal(p)
}
