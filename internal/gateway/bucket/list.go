package bucket

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"
)

// MostKeys is how many keys a page of a list has at most. No store gives more.
const MostKeys = 1000

// Query selects keys.
type Query struct {
	// Prefix is how they begin.
	Prefix string
	// After leaves out all keys up to this one.
	After string
	// Delimiter is a slash, which joins the keys that are equal up to it, behind the prefix; or empty.
	Delimiter string
	// Most is how many the page may have; 0 is MostKeys.
	Most int
}

// Object is one key.
type Object struct {
	Key string
	// Size is in bytes, Modified is when it was written.
	Size     int64
	Modified time.Time
}

// Page is a part of a list, in the order of the keys.
type Page struct {
	Objects []Object
	// Prefixes stand for the keys that the delimiter joins.
	Prefixes []string
	// More: the list may go on behind the last key or prefix.
	More bool
}

// List returns the first keys that a query selects. The next page begins after the last key. What is not in order, or was not
// asked for, is an error: who goes on behind the last key must not go round in circles.
func (b *Bucket) List(ctx context.Context, q Query) (page Page, err error) {
	if q.Most <= 0 || q.Most > MostKeys {
		q.Most = MostKeys
	}
	if err := ctx.Err(); err != nil {
		return Page{}, err
	}
	listed := b.client.ListObjectsIter(ctx, b.name, minio.ListObjectsOptions{
		Prefix: q.Prefix, StartAfter: q.After, Recursive: q.Delimiter == "", MaxKeys: q.Most, FetchOwner: new(bool),
	})
	for o := range listed {
		if o.Err != nil {
			return Page{}, fmt.Errorf("list the bucket: %w", errorOf(o.Err))
		}
		if err := page.add(o, q); err != nil {
			return Page{}, fmt.Errorf("list the bucket: %w: %w", ErrAway, err)
		}
		if len(page.Objects)+len(page.Prefixes) == q.Most {
			page.More = true // perhaps
			break
		}
	}
	return page, ctx.Err()
}

// add adds a key or a prefix to a page.
func (p *Page) add(o minio.ObjectInfo, q Query) error {
	prefix := q.Delimiter != "" && strings.HasSuffix(o.Key, q.Delimiter) && o.LastModified.IsZero()
	last := q.After
	if n := len(p.Objects); n > 0 && !prefix {
		last = p.Objects[n-1].Key
	}
	if n := len(p.Prefixes); n > 0 && prefix {
		last = p.Prefixes[n-1]
	}
	if !strings.HasPrefix(o.Key, q.Prefix) || o.Key <= last || o.Size < 0 || !prefix && o.LastModified.IsZero() {
		return fmt.Errorf("the list has %.100q, which was not asked for, is out of order, or has no time", o.Key)
	}
	if prefix {
		p.Prefixes = append(p.Prefixes, o.Key)
	} else {
		p.Objects = append(p.Objects, Object{o.Key, o.Size, o.LastModified})
	}
	return nil
}

// Last returns the last key or prefix of a page, behind which the list goes on.
func (p Page) Last() string {
	last := ""
	if n := len(p.Objects); n > 0 {
		last = p.Objects[n-1].Key
	}
	if n := len(p.Prefixes); n > 0 {
		// All keys that begin with it come before this one.
		last = max(last, p.Prefixes[n-1]+"\U0010FFFF")
	}
	return last
}
