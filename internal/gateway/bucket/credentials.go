package bucket

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/minio/minio-go/v7/pkg/credentials"
)

const (
	// rereadEvery is how long credentials are used until their files are read again.
	rereadEvery = 30 * time.Second
	// mostCredential bounds a file of credentials: session tokens have some 2 KiB.
	mostCredential = 16 << 10
)

// keyring reads credentials from the files of a directory. minio-go calls it under a lock of its own.
type keyring struct {
	dir string
	now func() time.Time

	last credentials.Value
	read time.Time
}

// IsExpired reports whether the files are to be read again.
func (k *keyring) IsExpired() bool { return k.now().Sub(k.read).Abs() >= rereadEvery }

// Retrieve returns the credentials. While the files cannot be read, those that were read last are good.
func (k *keyring) Retrieve() (credentials.Value, error) {
	c, err := k.load()
	if err != nil && k.last.AccessKeyID == "" {
		return c, err
	}
	if err == nil {
		k.last = c
	}
	k.read = k.now()
	return k.last, nil
}

// RetrieveWithCredContext is Retrieve.
func (k *keyring) RetrieveWithCredContext(*credentials.CredContext) (credentials.Value, error) {
	return k.Retrieve()
}

func (k *keyring) load() (credentials.Value, error) {
	c := credentials.Value{SignerType: credentials.SignatureV4}
	for _, file := range []struct {
		name     string
		into     *string
		optional bool
	}{{"access-key-id", &c.AccessKeyID, false}, {"secret-access-key", &c.SecretAccessKey, false}, {"session-token", &c.SessionToken, true}} {
		text, err := os.ReadFile(filepath.Join(k.dir, file.name))
		if os.IsNotExist(err) && file.optional {
			continue
		}
		if err != nil {
			return credentials.Value{}, fmt.Errorf("read the credentials of the bucket: %w", err)
		}
		*file.into = strings.TrimSpace(string(text[:min(len(text), mostCredential)]))
		if *file.into == "" {
			return credentials.Value{}, fmt.Errorf("the credentials of the bucket: %s is empty", filepath.Join(k.dir, file.name))
		}
	}
	return c, nil
}
