package archived

import (
	"bytes"
	"compress/flate"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/katbox/katbox/internal/model/api"
	"github.com/katbox/katbox/internal/model/volume"
)

// maxShown is how long the JSON in a key may be, in bytes.
const maxShown = 8 << 10

// shown is what a key says of a volume, beside its ID, the UID of its namespace, and when it was retained. The fields with
// omitempty are optional: see [shown.drop].
type shown struct {
	PodUID    string `json:"p"`
	Namespace string `json:"n"`
	Pod       string `json:"o"`
	Node      string `json:"w"`
	// Expires and Published are seconds since 1970.
	Expires        int64  `json:"x"`
	Volume         string `json:"v,omitempty"`
	Outcome        string `json:"c,omitempty"`
	Published      int64  `json:"s,omitempty"`
	Bytes          *int64 `json:"b,omitempty"`
	Inodes         *int64 `json:"i,omitempty"`
	OwnerKind      string `json:"k,omitempty"`
	Job            string `json:"j,omitempty"`
	JobIndex       string `json:"d,omitempty"`
	OwnerName      string `json:"a,omitempty"`
	OwnerUID       string `json:"u,omitempty"`
	ServiceAccount string `json:"g,omitempty"`
}

// drop empties the last optional field that is not empty. It reports false if there is none.
func (s *shown) drop() bool {
	for _, text := range []*string{&s.ServiceAccount, &s.OwnerUID, &s.OwnerName, &s.JobIndex, &s.Job, &s.OwnerKind} {
		if *text != "" {
			*text = ""
			return true
		}
	}
	switch {
	case s.Inodes != nil:
		s.Inodes = nil
	case s.Bytes != nil:
		s.Bytes = nil
	case s.Published != 0:
		s.Published = 0
	case s.Outcome != "":
		s.Outcome = ""
	case s.Volume != "":
		s.Volume = ""
	default:
		return false
	}
	return true
}

// IndexKey returns the key of a volume's index. The volume has a Confirmed owner, and its ExpiresAt is when the archive ends. What
// does not fit into a key is left out, the least needed first.
func IndexKey(cluster string, v api.Volume) (string, error) {
	if v.Owner == nil || v.RetainedAt == nil || v.ExpiresAt == nil {
		return "", fmt.Errorf("%w: the volume %.300q lacks its owner, when it was retained, or when its archive ends", ErrForm, v.ID)
	}
	place := Place{cluster, v.Owner.NamespaceUID, volume.Place{Pod: volume.PodUID(v.PodUID), ID: volume.ID(v.ID)}}
	if err := place.Check(); err != nil {
		return "", err
	}
	s := shown{
		PodUID: v.PodUID, Namespace: v.Namespace, Pod: v.Pod, Node: v.Node, Expires: v.ExpiresAt.Unix(),
		Volume: v.Volume, Outcome: v.Outcome, Bytes: v.Bytes, Inodes: v.Inodes,
		OwnerKind: v.Owner.Kind, OwnerName: v.Owner.Name, OwnerUID: v.Owner.UID, Job: v.Owner.Job, JobIndex: v.Owner.JobIndex,
		ServiceAccount: v.ServiceAccount,
	}
	if v.PublishedAt != nil {
		s.Published = v.PublishedAt.Unix()
	}
	if err := s.check(); err != nil {
		return "", err
	}
	begin := IndexPrefix(cluster, v.Owner.NamespaceUID) + age(*v.RetainedAt) + "-" + v.ID + "/"
	for {
		text, err := s.encode()
		if err != nil {
			return "", err
		}
		if len(begin)+len(text) <= MaxKey {
			return begin + text, nil
		}
		if !s.drop() {
			return "", fmt.Errorf("%w: the key of the volume %s has more than %d bytes", ErrTooLarge, v.ID, MaxKey)
		}
	}
}

func (s *shown) encode() (string, error) {
	plain, err := api.Encode(s)
	if err != nil {
		return "", err
	}
	var compressed bytes.Buffer
	w, err := flate.NewWriter(&compressed, flate.BestCompression)
	if err != nil {
		return "", err
	}
	_, err = w.Write(bytes.TrimSpace(plain))
	if err := errors.Join(err, w.Close()); err != nil {
		return "", err
	}
	return segments(base64.RawURLEncoding.EncodeToString(compressed.Bytes())), nil
}

// segments puts slashes into a text.
func segments(text string) string {
	var parts []string
	for len(text) > segment {
		parts, text = append(parts, text[:segment]), text[segment:]
	}
	return strings.Join(append(parts, text), "/")
}

// joined is the inverse of segments.
func joined(parts []string) (string, error) {
	for i, part := range parts {
		if len(part) > segment || len(part) == 0 || i < len(parts)-1 && len(part) < segment {
			return "", fmt.Errorf("%w: a part of a key of an index has %d characters", ErrForm, len(part))
		}
	}
	return strings.Join(parts, ""), nil
}

// check accepts what a node may say of a volume: texts that are short and can be printed.
func (s *shown) check() error {
	for _, text := range []string{
		s.Namespace, s.Pod, s.Node, s.Volume, s.OwnerKind, s.OwnerName, s.OwnerUID, s.Job, s.JobIndex, s.ServiceAccount,
	} {
		if volume.OwnerText(text) != text {
			return fmt.Errorf("%w: %.80q is too long, or has characters that cannot be printed", ErrForm, text)
		}
	}
	if _, ok := volume.ParseOutcome(s.Outcome); s.Outcome != "" && !ok {
		return fmt.Errorf("%w: %.80q is no outcome", ErrForm, s.Outcome)
	}
	if s.Bytes != nil && *s.Bytes < 0 || s.Inodes != nil && *s.Inodes < 0 {
		return fmt.Errorf("%w: a size is negative", ErrForm)
	}
	for _, seconds := range []int64{s.Expires, s.Published} {
		if y := time.Unix(seconds, 0).UTC().Year(); y < 1970 || y > 9999 {
			return fmt.Errorf("%w: a time is of the year %d", ErrForm, y)
		}
	}
	return nil
}

// ParseIndexKey returns what a key says. The volume's Phase is [api.PhaseArchived], its ExpiresAt when the archive ends, its owner is
// Confirmed, and the UID of its namespace is that of the key.
func ParseIndexKey(key string) (cluster string, v api.Volume, err error) {
	id, retained, ok := IndexID(key)
	if !ok {
		return "", api.Volume{}, fmt.Errorf("%w: %.80q is no key of an index", ErrForm, key)
	}
	parts := strings.Split(key, "/")
	text, err := joined(parts[4:])
	if err != nil {
		return "", api.Volume{}, err
	}
	s, err := decodeShown(text)
	if err != nil {
		return "", api.Volume{}, err
	}
	place := Place{parts[0], parts[1], volume.Place{Pod: volume.PodUID(s.PodUID), ID: id}}
	if err := place.Check(); err != nil {
		return "", api.Volume{}, err
	}
	expires := time.Unix(s.Expires, 0)
	v = api.Volume{
		ID: string(id), Namespace: s.Namespace, Pod: s.Pod, PodUID: s.PodUID, Volume: s.Volume, ServiceAccount: s.ServiceAccount,
		Owner: &api.Owner{
			Verdict: volume.Confirmed.String(), NamespaceUID: place.NamespaceUID,
			Kind: s.OwnerKind, Name: s.OwnerName, UID: s.OwnerUID, Job: s.Job, JobIndex: s.JobIndex,
		},
		Node: s.Node, Phase: api.PhaseArchived, RetainedAt: &retained, ExpiresAt: &expires, Bytes: s.Bytes, Inodes: s.Inodes, Outcome: s.Outcome,
	}
	if s.Published != 0 {
		published := time.Unix(s.Published, 0)
		v.PublishedAt = &published
	}
	return place.Cluster, v, nil
}

// inflaters are readers of DEFLATE: each takes 40 KiB, and a list reads a thousand keys at once.
var inflaters = sync.Pool{New: func() any { return flate.NewReader(nil) }}

func decodeShown(text string) (s shown, err error) {
	compressed, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil {
		return shown{}, fmt.Errorf("%w: a key of an index: %w", ErrForm, err)
	}
	from := inflaters.Get().(io.Reader)
	defer inflaters.Put(from)
	if err := from.(flate.Resetter).Reset(bytes.NewReader(compressed), nil); err != nil {
		return shown{}, fmt.Errorf("%w: a key of an index: %w", ErrForm, err)
	}
	plain, err := io.ReadAll(io.LimitReader(from, maxShown+1))
	switch {
	case err != nil:
		return shown{}, fmt.Errorf("%w: a key of an index: %w", ErrForm, err)
	case len(plain) > maxShown:
		return shown{}, fmt.Errorf("%w: a key of an index has more than %d bytes of JSON", ErrForm, maxShown)
	}
	if err := json.Unmarshal(plain, &s); err != nil {
		return shown{}, fmt.Errorf("%w: a key of an index: %w", ErrForm, err)
	}
	return s, s.check()
}
