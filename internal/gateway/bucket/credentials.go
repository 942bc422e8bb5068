package bucket

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

const (
	// rereadEvery is how long credentials are used until their files are read again.
	rereadEvery = 30 * time.Second
	// mostCredential bounds a file of credentials: session tokens have some 2 KiB.
	mostCredential = 16 << 10
)

// credentials are what requests are signed with.
type credentials struct{ id, secret, token string }

// keyring reads credentials from the files of a directory.
type keyring struct {
	dir string

	mu   sync.Mutex
	last credentials
	read time.Time
}

// get returns the credentials. While the files cannot be read, those that were read last are good.
func (k *keyring) get(now time.Time) (credentials, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.read.IsZero() && now.Sub(k.read).Abs() < rereadEvery {
		return k.last, nil
	}
	c, err := k.load()
	if err != nil && k.last.id == "" {
		return c, err
	}
	if err == nil {
		k.last = c
	}
	k.read = now
	return k.last, nil
}

func (k *keyring) load() (c credentials, err error) {
	for _, file := range []struct {
		name     string
		into     *string
		optional bool
	}{{"access-key-id", &c.id, false}, {"secret-access-key", &c.secret, false}, {"session-token", &c.token, true}} {
		text, err := os.ReadFile(filepath.Join(k.dir, file.name))
		if os.IsNotExist(err) && file.optional {
			continue
		}
		if err != nil {
			return credentials{}, fmt.Errorf("read the credentials of the bucket: %w", err)
		}
		*file.into = strings.TrimSpace(string(text[:min(len(text), mostCredential)]))
		if *file.into == "" {
			return credentials{}, fmt.Errorf("the credentials of the bucket: %s is empty", filepath.Join(k.dir, file.name))
		}
	}
	return c, nil
}
