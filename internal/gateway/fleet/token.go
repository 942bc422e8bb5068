package fleet

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"time"
)

const (
	// tokenVersion is that of the words in a token.
	tokenVersion = 1
	// tokenTime is how long a token is good.
	tokenTime = 15 * time.Minute
	// mostToken is how long a token can be: the names of 20 nodes, and what is around them.
	mostToken = 16 << 10
)

// token is what the Continue of a page says. It is encrypted, since a place may be that of a volume
// which the reader may not see, and bound to the list and its reader.
type token struct {
	Version int       `json:"v"`
	Issued  time.Time `json:"i"`
	// At, ID and Node are the place where the page ended.
	At   time.Time `json:"a"`
	ID   string    `json:"d"`
	Node string    `json:"n"`
	// Listed is how many entries the pages so far had.
	Listed int64 `json:"l,omitempty"`
	// Missing and More are those of the pages so far.
	Missing []Missing `json:"m,omitempty"`
	More    int       `json:"o,omitempty"`
}

// place returns where the page ended.
func (t token) place() place { return place{t.At, t.ID, t.Node} }

// binding is what a token is bound to.
func (r Request) binding() []byte {
	return fmt.Appendf(nil, "%q %q %q", r.Namespace, r.Selectors, r.Reader.User)
}

// write returns a token as text.
func (f *Fleet) write(t token, r Request) (string, error) {
	t.Version, t.Issued = tokenVersion, time.Now().UTC().Truncate(time.Second)
	text, err := json.Marshal(t)
	if err != nil {
		return "", fmt.Errorf("write where the list continues: %w", err)
	}
	return base64.RawURLEncoding.EncodeToString(f.seal.Seal(nil, nil, text, r.binding())), nil
}

// read returns the token of a request. One of another version is a replica's that is older or newer.
func (f *Fleet) read(r Request) (token, error) {
	var t token
	if r.Continue == "" {
		return t, nil
	}
	if len(r.Continue) > mostToken {
		return t, ErrContinue
	}
	sealed, err := base64.RawURLEncoding.Strict().DecodeString(r.Continue)
	if err != nil {
		return t, ErrContinue
	}
	text, err := f.seal.Open(nil, nil, sealed, r.binding())
	if err != nil {
		return t, ErrContinue
	}
	switch err := json.Unmarshal(text, &t); {
	case err != nil || t.Version != tokenVersion, time.Since(t.Issued).Abs() > tokenTime:
		return token{}, ErrExpired
	case t.ID == "":
		return token{}, ErrContinue
	}
	return t, nil
}
