package archived

import (
	"container/list"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/katbox/katbox/internal/gateway/bucket"
	form "github.com/katbox/katbox/internal/model/archived"
)

const (
	// mostIndexBytes and mostPieceBytes bound the indexes and the pieces in memory, those that are used among them: the longest
	// index and many others, that of a volume with 1,000 files has some 30 KiB; and a piece for each request for bytes, so that none waits
	// for the readers of others.
	mostIndexBytes = form.MaxIndex + indexShare
	mostPieceBytes = mostStreaming * form.MaxPiece
	// indexShare is how much of one reader's indexes are in use, if it is more than one index: so much is left for others, whatever
	// one reader does. A node writes no longer index.
	indexShare = 32 << 20
)

var (
	// errPiece: a piece is not what the index says.
	errPiece = errors.New("a piece of the archive is not what its index says")
	// errBroken: the request that has read an object for others as well has failed by a bug.
	errBroken = errors.New("another request that has read the same from the archive has failed")
)

// objects keeps objects in memory, within a bound: those that are used, and of the others those that were used last. Who needs one for
// which there is no room waits until others are used no more.
type objects struct {
	// most bounds the bytes, and share those that one reader uses in several objects. patience is how long a request waits for room.
	most, share int64
	patience    time.Duration

	mu sync.Mutex
	// taken is how many bytes are kept, or are being read.
	taken int64
	kept  map[string]*object
	// used is how many bytes each reader uses.
	used map[string]int64
	// idle are those that no request uses, the one that was used last first.
	idle *list.List
	// freed is closed and made anew when there is room.
	freed chan struct{}
}

// object is one that is kept.
type object struct {
	key     string
	size    int64
	users   int
	place   *list.Element
	content []byte
	// ready is closed once it was read, or could not be: err then says why.
	ready chan struct{}
	err   error
}

func newObjects(most, share int64) *objects {
	return &objects{
		most: most, share: share, patience: turn, kept: map[string]*object{}, used: map[string]int64{}, idle: list.New(),
		freed: make(chan struct{}),
	}
}

// get returns an object of size bytes for a reader, which read reads if it is not kept. It is kept at least until release is called.
func (o *objects) get(
	ctx context.Context, of, key string, size int64, read func(context.Context) ([]byte, error),
) (content []byte, release func(), err error) {
	waiting, cancel := context.WithTimeout(ctx, o.patience)
	defer cancel()
	for {
		x, reads, freed := o.take(of, key, size)
		if x == nil {
			select {
			case <-freed:
				continue
			case <-waiting.Done():
			}
			if err := context.Cause(ctx); err != nil {
				return nil, nil, fmt.Errorf("wait for memory to read the archive: %w", err)
			}
			return nil, nil, o.full(of)
		}
		if reads {
			o.read(ctx, of, x, read)
		} else {
			select {
			case <-x.ready:
			case <-ctx.Done():
				o.leave(of, x)
				return nil, nil, context.Cause(ctx)
			}
		}
		if x.err == nil {
			return x.content, sync.OnceFunc(func() { o.leave(of, x) }), nil
		}
		o.leave(of, x)
		// The one who read it may have gone, or may have failed by a bug; who needs it now reads it for himself.
		if !reads && ctx.Err() == nil && (errors.Is(x.err, context.Canceled) || errors.Is(x.err, errBroken)) {
			continue
		}
		return nil, nil, x.err
	}
}

// full is the answer to a request of a reader for which there is no room.
func (o *objects) full(of string) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return soon("requests to read from the archive use %d of %d bytes of memory, %d of them yours, which is the most at present; "+
		"try again when one has ended", o.taken, o.most, o.used[of])
}

// take takes an object for a reader; reads: the caller has to read it. It is nil if there is no room before freed is closed.
func (o *objects) take(of, key string, size int64) (x *object, reads bool, freed <-chan struct{}) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if used := o.used[of]; used > 0 && used+size > o.share {
		return nil, false, o.freed
	}
	if x = o.kept[key]; x == nil {
		if !o.room(size) {
			return nil, false, o.freed
		}
		x, reads = &object{key: key, size: size, ready: make(chan struct{})}, true
		o.kept[key] = x
		o.taken += size
	}
	o.used[of] += x.size
	if x.users++; x.place != nil {
		o.idle.Remove(x.place)
		x.place = nil
	}
	return x, reads, nil
}

// read reads an object. Where that panics, those who wait for the object go on, and it is kept no longer.
func (o *objects) read(ctx context.Context, of string, x *object, read func(context.Context) ([]byte, error)) {
	ended := false
	x.err = errBroken
	defer func() {
		close(x.ready)
		if !ended {
			o.leave(of, x)
		}
	}()
	x.content, x.err = read(ctx)
	ended = true
}

// leave gives an object back. One that could not be read is not kept.
func (o *objects) leave(of string, x *object) {
	o.mu.Lock()
	defer o.mu.Unlock()
	failed := false
	select {
	case <-x.ready:
		failed = x.err != nil
	default: // it is being read, by another user
	}
	if failed && o.kept[x.key] == x {
		delete(o.kept, x.key)
	}
	if o.used[of] -= x.size; o.used[of] <= 0 {
		delete(o.used, of)
	}
	if x.users--; x.users == 0 {
		if failed {
			o.taken -= x.size
		} else {
			x.place = o.idle.PushFront(x)
		}
	}
	close(o.freed)
	o.freed = make(chan struct{})
}

// room reports whether there is room for so many bytes, and drops what is not used to make some. The caller holds the lock.
func (o *objects) room(size int64) bool {
	for o.taken+size > o.most && o.idle.Len() > 0 {
		x := o.idle.Remove(o.idle.Back()).(*object)
		x.place = nil
		delete(o.kept, x.key)
		o.taken -= x.size
	}
	return o.taken+size <= o.most
}

// readAll reads an object that has to have size bytes.
func readAll(ctx context.Context, from Bucket, key string, size int64) ([]byte, error) {
	body, err := from.Get(ctx, key, size+1)
	if err != nil {
		return nil, err
	}
	defer body.Close()
	content := make([]byte, size)
	if _, err := io.ReadFull(body, content); err != nil {
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return nil, fmt.Errorf("%w: %s ends before its %d bytes", errPiece, key[len(key)-min(len(key), 80):], size)
		}
		return nil, fmt.Errorf("%w: %w", bucket.ErrAway, err)
	}
	if n, _ := io.ReadFull(body, make([]byte, 1)); n > 0 {
		return nil, fmt.Errorf("%w: %s has more than %d bytes", errPiece, key[len(key)-min(len(key), 80):], size)
	}
	return content, nil
}
