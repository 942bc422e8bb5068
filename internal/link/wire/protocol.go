package wire

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"
	"unicode/utf8"

	"github.com/katbox/katbox/internal/model/local"
	"github.com/katbox/katbox/internal/model/pools"
	"github.com/katbox/katbox/internal/model/volume"
)

// Path is that of all questions, and the first part of their paths.
const Path = "/v1/pools"

const (
	// MostPools bounds the pools of a node.
	MostPools = 64
	// MostPage bounds a page of a list.
	MostPage = 1000
	// mostBody bounds the body of a question, mostAnswer that of an answer and mostPage that of a page: a
	// comment has some 400 bytes and at most mostComment.
	mostBody    = 64 << 10
	mostAnswer  = 256 << 10
	mostPage    = 8 << 20
	mostComment = 4096
	// mostText bounds other texts that a node sends, mostMessage what it says of an error.
	mostText    = 4096
	mostMessage = 1000
	// mostSize is more bytes than a disk has.
	mostSize = 1 << 60
)

// Summary is what a node tells of its pools without being asked, in a line of JSON: when the controller begins to
// listen, when the pools have changed, and again and again as a sign of life.
type Summary struct {
	Time time.Time `json:"time"`
	// Full: Pools are all that the node has. Else the line says only that the node lives.
	Full  bool         `json:"full,omitempty"`
	Pools []local.Pool `json:"pools,omitempty"`
}

// SamePool reports whether nothing about a pool has changed but how full it is.
func SamePool(a, b local.Pool) bool {
	a.Free, a.Provisioned = b.Free, b.Provisioned
	return a == b
}

// list is a list in an answer.
type list[T any] struct {
	Items items[T] `json:"items"`
}

// items are not more than a page has. In memory empty ones take fifty times their text.
type items[T any] []T

// UnmarshalJSON reads the items one by one, up to the first one too many.
func (l *items[T]) UnmarshalJSON(text []byte) error {
	decoder := json.NewDecoder(bytes.NewReader(text))
	begin, err := decoder.Token()
	switch {
	case err != nil:
		return err
	case begin == nil:
		return nil
	case begin != json.Delim('['):
		return errors.New("items are no list")
	}
	for *l = nil; decoder.More(); {
		var one T
		if len(*l) == MostPage {
			return fmt.Errorf("a list has more than %d entries", MostPage)
		}
		if err := decoder.Decode(&one); err != nil {
			return err
		}
		*l = append(*l, one)
	}
	return nil
}

// size, comment and snapshot are the bodies of questions.
type (
	size struct {
		Bytes int64 `json:"bytes"`
	}
	comment struct {
		Comment string `json:"comment"`
	}
	snapshot struct {
		Name   string `json:"name"`
		Volume string `json:"volume"`
	}
)

// Reason says what kind of error a [Failure] is.
type Reason string

// kinds are the reasons and what they stand for. The order decides where an error is several.
var kinds = []struct {
	reason Reason
	kind   error
	status int
}{
	{"Uncertain", volume.ErrUncertain, http.StatusInternalServerError},
	{"NotFound", volume.ErrNotFound, http.StatusNotFound},
	{"Conflict", volume.ErrConflict, http.StatusConflict},
	{"NoSpace", volume.ErrNoSpace, http.StatusInsufficientStorage},
	{"InUse", pools.ErrInUse, http.StatusConflict},
	{"OutOfRange", pools.ErrOutOfRange, http.StatusUnprocessableEntity},
	{"Invalid", volume.ErrInvalid, http.StatusBadRequest},
	{"Busy", volume.ErrBusy, http.StatusTooManyRequests},
	{"Unwritable", local.ErrUnwritable, http.StatusServiceUnavailable},
	{"Unavailable", volume.ErrUnavailable, http.StatusServiceUnavailable},
}

// unavailable answers what ended before it was done, where nothing was to be changed.
const unavailable = Reason("Unavailable")

// Failure is an error in an answer.
type Failure struct {
	Reason  Reason `json:"reason"`
	Message string `json:"message"`
}

// failureOf returns how an error is answered. change: something may have changed.
func failureOf(err error, change bool) (Failure, int) {
	for _, k := range kinds {
		if errors.Is(err, k.kind) {
			return Failure{k.reason, volume.OneLine(err)}, k.status
		}
	}
	ended := errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
	switch {
	case change:
		return Failure{kinds[0].reason, volume.OneLine(err)}, kinds[0].status
	case ended:
		return Failure{unavailable, "it took too long: " + volume.OneLine(err)}, http.StatusServiceUnavailable
	}
	return Failure{unavailable, volume.OneLine(err)}, http.StatusInternalServerError
}

// kindOf returns what a reason stands for; nil for one that is not known.
func kindOf(r Reason) error {
	for _, k := range kinds {
		if k.reason == r {
			return k.kind
		}
	}
	return nil
}

// checkName returns why a volume or a snapshot cannot have the name. On a disk it is the name of a file.
func checkName(field, name string) error {
	switch {
	case name == "":
		return volume.Invalid(field, "is missing")
	case !pools.IsID(name):
		return volume.Invalid(field, "is no name of a volume or a snapshot: "+shorten(name, 100))
	}
	return nil
}

func checkPool(uuid string) error {
	if !pools.IsUUID(uuid) {
		return volume.Invalid("pool", "is no UUID: "+shorten(uuid, 100))
	}
	return nil
}

func checkSize(bytes int64) error {
	if bytes <= 0 || bytes > mostSize {
		return volume.Invalid("size", "is not between 1 and 2^60 bytes")
	}
	return nil
}

func checkComment(text string) error {
	if len(text) > mostComment || !utf8.ValidString(text) {
		return volume.Invalid("comment", "is no text of at most 4096 bytes")
	}
	return nil
}

// fsTypes are the file systems that a volume may have; the node decides further.
var fsTypes = map[string]bool{"": true, "ext4": true, "xfs": true, "btrfs": true}

func checkNew(v local.NewVolume) error {
	errs := []error{checkName("name", v.Name), checkSize(v.Size), checkComment(v.Comment)}
	if v.Source.Snapshot != "" {
		errs = append(errs, checkName("source.snapshot", v.Source.Snapshot))
	}
	if v.Source.Volume != "" {
		errs = append(errs, checkName("source.volume", v.Source.Volume))
	}
	switch {
	case v.Source.Snapshot != "" && v.Source.Volume != "":
		errs = append(errs, volume.Invalid("source", "is a snapshot and a volume"))
	case !fsTypes[v.FSType]:
		errs = append(errs, volume.Invalid("fsType", "is none that volumes have: "+shorten(v.FSType, 20)))
	}
	return errors.Join(errs...)
}
