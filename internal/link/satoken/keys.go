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

	// fresh is how long the keys are believed: a key that was withdrawn is not accepted for longer.
	fresh = time.Minute
	// pause is the time between two readings at least, readLimit how long one may take: less than a node's request waits, so that
	// a TokenReview is left where the keys do not come.
	pause     = 10 * time.Second
	readLimit = 2 * time.Second
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
	// reading is taken by the caller that reads the keys.
	reading chan struct{}

	mu   sync.Mutex
	last *published
	// tried is when they were read last, successfully or not, and cause why that failed; who has taken reading uses them.
	tried time.Time
	cause string
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
	return &Keys{Config: c, reading: make(chan struct{}, 1)}, nil
}

// key returns the key with this ID, and the issuer.
func (k *Keys) key(ctx context.Context, id string) (key jose.JSONWebKey, issuer string, err error) {
	if key, issuer, ok := k.known(id); ok {
		return key, issuer, nil
	}
	select {
	case k.reading <- struct{}{}:
		defer func() { <-k.reading }()
	case <-ctx.Done():
		return key, "", ctx.Err()
	}
	if key, issuer, ok := k.known(id); ok {
		return key, issuer, nil
	}
	if time.Since(k.tried) >= pause {
		k.read(ctx)
		if key, issuer, ok := k.known(id); ok {
			return key, issuer, nil
		}
	}
	return key, "", fmt.Errorf("the API server publishes no key %.64q, or cannot be asked for its keys", id)
}

// known returns a key if it is known, and not for too long.
func (k *Keys) known(id string) (key jose.JSONWebKey, issuer string, ok bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.last == nil || time.Since(k.last.at) >= fresh {
		return key, "", false
	}
	key, ok = k.last.byID[id]
	return key, k.last.issuer, ok
}

// read reads the keys. The client whose token needs them may leave, and the others that wait need them still.
func (k *Keys) read(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), readLimit)
	defer cancel()
	k.tried = time.Now()
	now, err := k.ask(ctx, k.tried)
	if err != nil {
		if cause := volume.OneLine(err); cause != k.cause {
			k.cause = cause
			k.Log.Info("cannot read the keys of the cluster's ServiceAccount tokens; each token costs a TokenReview", logkeys.Cause, cause)
		}
		return
	}
	if k.cause != "" {
		k.cause = ""
		k.Log.Info("reading the keys of the cluster's ServiceAccount tokens again")
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.last = now
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
