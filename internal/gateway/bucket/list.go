package bucket

import (
	"context"
	"encoding/xml"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// MostKeys is how many keys a page of a list has at most. No store gives more.
const MostKeys = 1000

// mostPage bounds a page of a list: 1,000 keys of 1,024 bytes, each byte encoded in three, and what is around them.
const mostPage = 4 << 20

// Query selects keys.
type Query struct {
	// Prefix is how they begin.
	Prefix string
	// After leaves out all keys up to this one.
	After string
	// Delimiter, if not empty, joins the keys that are equal up to it, behind the prefix.
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
	// More: the list goes on behind the last key or prefix.
	More bool
}

// listed is what a store answers.
type listed struct {
	XMLName               xml.Name `xml:"ListBucketResult"`
	IsTruncated           bool
	EncodingType          string
	NextContinuationToken string
	Contents              []struct {
		Key          string
		Size         int64
		LastModified string
	}
	CommonPrefixes []struct{ Prefix string }
}

// List returns the first keys that a query selects. The next page begins after the last key.
func (b *Bucket) List(ctx context.Context, q Query) (Page, error) {
	to := b.at("")
	query := url.Values{"list-type": {"2"}, "prefix": {q.Prefix}, "encoding-type": {"url"}}
	if q.After != "" {
		query.Set("start-after", q.After)
	}
	if q.Delimiter != "" {
		query.Set("delimiter", q.Delimiter)
	}
	most := MostKeys
	if q.Most > 0 {
		most = min(q.Most, MostKeys)
	}
	query.Set("max-keys", strconv.Itoa(most))
	to.RawQuery = encodeQuery(query)
	answer, err := b.ask(ctx, http.MethodGet, to, nil)
	if err != nil {
		return Page{}, fmt.Errorf("list the bucket: %w", err)
	}
	defer answer.Body.Close()
	page, err := readPage(io.LimitReader(answer.Body, mostPage), q, most)
	if err != nil {
		return Page{}, fmt.Errorf("list the bucket: %w: %w", ErrAway, err)
	}
	return page, nil
}

// readPage reads an answer. What is not in order, or was not asked for, is an error: who goes on behind the last key must not
// go round in circles.
func readPage(r io.Reader, q Query, most int) (Page, error) {
	var l listed
	if err := xml.NewDecoder(r).Decode(&l); err != nil {
		return Page{}, fmt.Errorf("read the list: %w", err)
	}
	if len(l.Contents)+len(l.CommonPrefixes) > most {
		return Page{}, fmt.Errorf("the list has %d keys, and %d were asked for", len(l.Contents)+len(l.CommonPrefixes), most)
	}
	page := Page{More: l.IsTruncated, Objects: make([]Object, 0, len(l.Contents))}
	decode := func(text string) (string, error) {
		if strings.EqualFold(l.EncodingType, "url") {
			return url.QueryUnescape(text)
		}
		return text, nil
	}
	last := q.After
	for _, c := range l.Contents {
		key, err := decode(c.Key)
		if err != nil || !strings.HasPrefix(key, q.Prefix) || key <= last || c.Size < 0 {
			return Page{}, fmt.Errorf("the list has %.100q, which was not asked for or is out of order", c.Key)
		}
		modified, err := time.Parse(time.RFC3339Nano, c.LastModified)
		if err != nil {
			return Page{}, fmt.Errorf("the list has %.100q, written at %.40q", c.Key, c.LastModified)
		}
		page.Objects, last = append(page.Objects, Object{key, c.Size, modified}), key
	}
	last = q.After
	for _, c := range l.CommonPrefixes {
		prefix, err := decode(c.Prefix)
		if err != nil || !strings.HasPrefix(prefix, q.Prefix) || prefix <= last {
			return Page{}, fmt.Errorf("the list has %.100q, which was not asked for or is out of order", c.Prefix)
		}
		page.Prefixes, last = append(page.Prefixes, prefix), prefix
	}
	if page.More && len(page.Objects)+len(page.Prefixes) == 0 {
		return Page{}, fmt.Errorf("the list says that it goes on, and has no key")
	}
	return page, nil
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
