package bucket

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"
)

// Upload is a signed request to write one object.
type Upload struct {
	// URL is where it is sent, with the method PUT.
	URL string
	// Header has to be sent with it, beside the Content-Length.
	Header map[string]string
	// Expires is when it is good no more.
	Expires time.Time
}

// checksumHeader has the checksum of an object, in base64. Stores compare it with what they get.
const checksumHeader = "X-Amz-Checksum-Sha256"

// SignPut signs the upload of an object of that length and checksum, which is in hexadecimal digits.
func (b *Bucket) SignPut(key string, length int64, sum string, expires time.Duration) (Upload, error) {
	raw, err := hex.DecodeString(sum)
	if err != nil || len(raw) != sha256.Size || length <= 0 {
		return Upload{}, fmt.Errorf("an object of %d bytes with the SHA-256 %.80q cannot be signed", length, sum)
	}
	checksum := base64.StdEncoding.EncodeToString(raw)
	header := http.Header{"Content-Length": {strconv.FormatInt(length, 10)}, checksumHeader: {checksum}}
	// It waits for no one but AWS, where a pod has its credentials from there.
	ctx, cancel := context.WithTimeout(context.Background(), answerLimit)
	defer cancel()
	now := b.now()
	to, err := b.client.PresignHeader(ctx, http.MethodPut, b.name, key, expires, nil, header)
	if err != nil {
		return Upload{}, fmt.Errorf("sign an upload: %w", err)
	}
	return Upload{URL: to.String(), Header: map[string]string{checksumHeader: checksum}, Expires: now.Add(expires)}, nil
}

// Put writes an object as a node does, with a signed URL.
func (b *Bucket) Put(ctx context.Context, key string, content []byte) error {
	upload, err := b.SignPut(key, int64(len(content)), hex.EncodeToString(sumOf(content)), answerLimit)
	if err != nil {
		return err
	}
	return b.put(ctx, upload, content)
}

func (b *Bucket) put(ctx context.Context, upload Upload, content []byte) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPut, upload.URL, bytes.NewReader(content))
	if err != nil {
		return err
	}
	for name, value := range upload.Header {
		request.Header.Set(name, value)
	}
	answer, err := b.http.Do(request)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrAway, withoutURL(err))
	}
	defer answer.Body.Close()
	if answer.StatusCode >= http.StatusMultipleChoices {
		return &PutError{answer.StatusCode, refusal(answer)}
	}
	_, err = io.Copy(io.Discard, io.LimitReader(answer.Body, mostError))
	return err
}

// PutError is the answer of a store that has not taken an object.
type PutError struct {
	Code int
	Err  error
}

// Error says why.
func (e *PutError) Error() string { return e.Err.Error() }

// Unwrap returns the error that it has for every request.
func (e *PutError) Unwrap() error { return e.Err }

// Heeds is what a store does with a signed upload.
type Heeds struct {
	// Length and Checksum: it refuses another length, and other bytes of the same length, than were signed.
	Length, Checksum bool
}

// Probe finds out whether the credentials may write, read and delete, and what the store heeds, with an object of that key.
// It deletes the object.
func (b *Bucket) Probe(ctx context.Context, key string) (h Heeds, err error) {
	content := []byte("katbox looks whether this bucket can be written\n")
	defer func() {
		if deleted := b.Delete(ctx, key); err == nil && deleted != nil {
			err = fmt.Errorf("clean up after a trial: %w", deleted)
		}
	}()
	if err := b.Put(ctx, key, content); err != nil {
		return h, fmt.Errorf("write an object as a trial: %w", err)
	}
	other := bytes.ToUpper(content)
	if h.Checksum, err = b.refuses(ctx, key, content, other); err != nil {
		return h, err
	}
	h.Length, err = b.refuses(ctx, key, content, other[:len(other)/2])
	return h, err
}

// refuses reports whether the store refuses other bytes than those that were signed.
func (b *Bucket) refuses(ctx context.Context, key string, signed, sent []byte) (bool, error) {
	upload, err := b.SignPut(key, int64(len(signed)), hex.EncodeToString(sumOf(signed)), answerLimit)
	if err != nil {
		return false, err
	}
	err = b.put(ctx, upload, sent)
	refused := (*PutError)(nil)
	switch {
	case err == nil:
		return false, nil
	case errors.As(err, &refused) && refused.Code < http.StatusInternalServerError:
		return true, nil
	}
	return false, fmt.Errorf("write other bytes than were signed as a trial: %w", err)
}

func sumOf(b []byte) []byte {
	sum := sha256.Sum256(b)
	return sum[:]
}
