package satoken

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-logr/logr"

	"github.com/katbox/katbox/internal/lib/logkeys"
	"github.com/katbox/katbox/internal/model/volume"
)

const (
	issuerPath = "/.well-known/openid-configuration"
	keysPath   = "/openid/v1/jwks"

	// fresh is how long the keys are believed: a key that was withdrawn is not accepted for longer. From the age renewed on they are
	// read anew, and no caller waits for that: an API server that thousands of nodes make slow has half a minute to answer.
	fresh   = time.Minute
	renewed = fresh / 2
	// pause is the time between two readings at least, readLimit how long one may take.
	pause     = 10 * time.Second
	readLimit = 15 * time.Second
	// patience is how long a caller waits for a reading: less than a node's request waits, so that a TokenReview is left where the
	// keys do not come.
	patience = 2 * time.Second
	// mostKeys bounds the keys. A cluster has one, and two during a rotation.
	mostKeys = 100
)

// Config is what Keys need. Get and Audience are required.
type Config struct {
	// Get reads a path of the API server.
	Get func(ctx context.Context, path string) ([]byte, error)
	// Audience is whom tokens have to be for.
	Audience string
	// Log may be the zero Logger.
	Log logr.Logger
}

// Keys are the keys that the API server signs tokens with.
type Keys struct {
	Config

	mu   sync.Mutex
	last *published
	// reading is closed when the reading ends that is under way; nil if none is. tried is when the last one began, and cause why it
	// failed.
	reading chan struct{}
	tried   time.Time
	cause   string
}

// published is what the API server has said at a time.
type published struct {
	at     time.Time
	issuer string
	byID   map[string]jose.JSONWebKey
}

// New returns Keys that have not been read yet.
func New(c Config) (*Keys, error) {
	if c.Get == nil || c.Audience == "" {
		return nil, errors.New("satoken: Config.Get and Config.Audience are required")
	}
	return &Keys{Config: c}, nil
}

// key returns the key with this ID, and the issuer.
func (k *Keys) key(ctx context.Context, id string) (key jose.JSONWebKey, issuer string, err error) {
	key, issuer, read := k.known(id)
	if read == nil {
		return key, issuer, nil
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	select {
	case <-read:
	case <-ctx.Done():
	}
	if key, issuer, read = k.known(id); read == nil {
		return key, issuer, nil
	}
	return key, "", fmt.Errorf("the API server publishes no key %.64q, or cannot be asked for its keys", id)
}

// known returns a key that is known, and not for too long. Else read is closed at the end of the reading that may bring it, if
// there is one.
func (k *Keys) known(id string) (key jose.JSONWebKey, issuer string, read <-chan struct{}) {
	k.mu.Lock()
	defer k.mu.Unlock()
	age := fresh
	if k.last != nil {
		age = time.Since(k.last.at)
	}
	ok := false
	if age < fresh {
		key, ok = k.last.byID[id]
		issuer = k.last.issuer
	}
	if (!ok || age >= renewed) && k.reading == nil && time.Since(k.tried) >= pause {
		k.tried, k.reading = time.Now(), make(chan struct{})
		go k.read(k.tried)
	}
	switch {
	case ok:
		return key, issuer, nil
	case k.reading == nil:
		return key, issuer, ended
	}
	return key, issuer, k.reading
}

// ended is what a caller waits for where no reading is under way.
var ended = func() <-chan struct{} { c := make(chan struct{}); close(c); return c }()

// read reads the keys, for all who need them, whoever was the first.
func (k *Keys) read(at time.Time) {
	ctx, cancel := context.WithTimeout(context.Background(), readLimit)
	defer cancel()
	now, err := k.ask(ctx, at)
	k.mu.Lock()
	defer k.mu.Unlock()
	close(k.reading)
	k.reading = nil
	if err != nil {
		if cause := volume.OneLine(err); cause != k.cause {
			k.cause = cause
			k.Log.Info("cannot read the keys of the cluster's ServiceAccount tokens; each token costs a TokenReview", logkeys.Cause, cause)
		}
		return
	}
	k.last = now
	if k.cause != "" {
		k.cause = ""
		k.Log.Info("reading the keys of the cluster's ServiceAccount tokens again")
	}
}

// ask asks the API server for its issuer and its keys.
func (k *Keys) ask(ctx context.Context, at time.Time) (*published, error) {
	var about struct {
		Issuer string `json:"issuer"`
	}
	if err := k.get(ctx, issuerPath, &about); err != nil {
		return nil, err
	}
	var set struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if err := k.get(ctx, keysPath, &set); err != nil {
		return nil, err
	}
	if about.Issuer == "" || len(set.Keys) == 0 || len(set.Keys) > mostKeys {
		return nil, fmt.Errorf("the API server has the issuer %.256q and %d keys", about.Issuer, len(set.Keys))
	}
	p := &published{at: at, issuer: about.Issuer, byID: map[string]jose.JSONWebKey{}}
	ambiguous := map[string]bool{}
	for _, text := range set.Keys {
		var key jose.JSONWebKey
		// A key of a kind that is not known verifies no token here, and says nothing about the others.
		if err := key.UnmarshalJSON(text); err != nil || key.KeyID == "" || !key.IsPublic() || key.Use != "" && key.Use != "sig" {
			continue
		}
		if _, twice := p.byID[key.KeyID]; twice {
			ambiguous[key.KeyID] = true
		}
		p.byID[key.KeyID] = key
	}
	for id := range ambiguous {
		delete(p.byID, id)
	}
	return p, nil
}

// get reads a document of the API server.
func (k *Keys) get(ctx context.Context, path string, into any) error {
	text, err := k.Get(ctx, path)
	if err != nil {
		return fmt.Errorf("read %s of the API server: %w", path, err)
	}
	if err := json.Unmarshal(text, into); err != nil {
		return fmt.Errorf("read %s of the API server: %w", path, err)
	}
	return nil
}
