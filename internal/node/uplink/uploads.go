package uplink

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/katbox/katbox/internal/lib/logkeys"
	"github.com/katbox/katbox/internal/model/api"
)

const (
	// mostUploads bounds the asks for URLs that wait: a gateway takes no more of a node.
	mostUploads = 16
	// mostURL and mostHeaders bound an answer: a signed URL is about 1 KiB, and has a few headers.
	mostURL, mostHeaders = 8 << 10, 16
)

// errUploadsBusy: as many asks for URLs wait as may, or the same one does.
var errUploadsBusy = errors.New("too many objects of the archive wait for a URL")

// Uploads are asks for URLs that take objects of the archive. Each waits in an [Uploads.Ask] for its answer, and is sent again,
// to another gateway if there is one, where that does not come. The archive has one, whatever uplinks there are: it is a part of
// a [Config].
type Uploads struct {
	mu        sync.Mutex
	waiting   map[uploadKey]*upload
	listeners map[*listener]struct{}
}

// NewUploads returns Uploads without asks.
func NewUploads() *Uploads {
	return &Uploads{waiting: map[uploadKey]*upload{}, listeners: map[*listener]struct{}{}}
}

// uploadKey is what an answer says of its ask.
type uploadKey struct {
	id     string
	number int
	sha256 string
}

func uploadKeyOf(a *api.UploadAsk) uploadKey {
	k := uploadKey{id: a.ID, number: a.Number()}
	if a.Piece != nil {
		k.sha256 = a.Piece.SHA256
	} else if a.Index != nil {
		k.sha256 = a.Index.SHA256
	}
	return k
}

// upload is an ask that waits.
type upload struct {
	word     api.UploadAsk
	answered chan api.UploadAnswer
	// to is the gateway that it was sent to; nil if it was sent to none. not is one that has not answered.
	to, not *listener
}

// Ask asks for a URL, of any gateway that is connected, or once one is. again is after how long it asks once more. The error is
// that of ctx, or that too many wait.
func (u *Uploads) Ask(ctx context.Context, word api.UploadAsk, again time.Duration) (api.UploadAnswer, error) {
	key, asked := uploadKeyOf(&word), &upload{word: word, answered: make(chan api.UploadAnswer, 1)}
	u.mu.Lock()
	if len(u.waiting) >= mostUploads || u.waiting[key] != nil {
		u.mu.Unlock()
		return api.UploadAnswer{}, errUploadsBusy
	}
	u.waiting[key] = asked
	u.wake()
	u.mu.Unlock()
	defer func() {
		u.mu.Lock()
		defer u.mu.Unlock()
		delete(u.waiting, key)
	}()
	repeat := time.NewTicker(again)
	defer repeat.Stop()
	for {
		select {
		case answer := <-asked.answered:
			return answer, nil
		case <-ctx.Done():
			return api.UploadAnswer{}, ctx.Err()
		case <-repeat.C:
			u.mu.Lock()
			asked.to, asked.not = nil, asked.to
			u.wake()
			u.mu.Unlock()
		}
	}
}

// wake is called with mu.
func (u *Uploads) wake() {
	for l := range u.listeners {
		signal(l.ready)
	}
}

// open adds a gateway that listens. On nil Uploads it returns a listener that nothing is for.
func (u *Uploads) open(gateway string) *listener {
	l := &listener{gateway: gateway, ready: make(chan struct{}, 1)}
	if u == nil {
		return l
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.listeners[l] = struct{}{}
	signal(l.ready)
	return l
}

// close removes a gateway. What it has not answered another one is asked.
func (u *Uploads) close(l *listener) {
	if u == nil {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.listeners, l)
	for _, asked := range u.waiting {
		if asked.to == l {
			asked.to = nil
		}
	}
	u.wake()
}

// take returns the asks that no gateway has.
func (u *Uploads) take(l *listener) (words []api.UploadAsk) {
	if u == nil {
		return nil
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if _, open := u.listeners[l]; !open {
		return nil
	}
	for _, asked := range u.waiting {
		if asked.to == nil && (asked.not != l || len(u.listeners) == 1) {
			asked.to = l
			words = append(words, asked.word)
		}
	}
	return words
}

// answer gives an answer to who waits for it, and reports whether anyone does.
func (u *Uploads) answer(a api.UploadAnswer) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	asked := u.waiting[uploadKey{a.ID, a.Number, a.SHA256}]
	if asked == nil {
		return false
	}
	select {
	case asked.answered <- a:
		return true
	default:
		return false // it has one
	}
}

// uploads takes the answers of a gateway.
func (c *connection) uploads(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), ownLimit)
	defer cancel()
	answers, ok := receive(ctx, c, w, r, readUploads)
	if !ok {
		return
	}
	taken := 0
	for _, a := range answers {
		if c.u.cfg.Uploads.answer(a) {
			taken++
		} else {
			c.u.cfg.Log.V(1).Info("a gateway answers about an object of the archive that is not waited for", logkeys.VolumeID, a.ID)
		}
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(api.UploadsTaken{Taken: taken}) // the gateway is gone
}

// readUploads reads and checks the body of a request.
func readUploads(body io.Reader) ([]api.UploadAnswer, error) {
	var all struct {
		Items bounded[api.UploadAnswer] `json:"items"`
	}
	if err := json.NewDecoder(body).Decode(&all); err != nil {
		return nil, fmt.Errorf("the body is no list of answers: %w", err)
	}
	for i, item := range all.Items {
		if len(item.URL) > mostURL || len(item.Header) > mostHeaders {
			return nil, fmt.Errorf("items[%d]: its URL has more than %d bytes, or it has more than %d headers", i, mostURL, mostHeaders)
		}
	}
	return all.Items, nil
}
