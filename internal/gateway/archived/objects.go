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
	// most bounds the bytes, and share those that one reader uses in several objects. patience is how long a request waits for room: for
	// the first half of it smaller ones may overtake it.
	most, share int64
	patience    time.Duration

	mu sync.Mutex
	// taken is how many bytes are kept, or are being read.
	taken int64
	kept  map[string]*object
	// used is what each reader uses.
	used map[string]*use
	// idle are those that no request uses, the one that was used last first, and idleBytes is how long they are.
	idle      *list.List
	idleBytes int64
	// waits is when each request came for which there is no room, in this order.
	waits *list.List
	// freed is closed and made anew when there is room, or one waits less.
	freed chan struct{}
}

// use is what one reader uses: each object takes its bytes once, however many requests use it.
type use struct {
	bytes int64
	times map[*object]int
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
		most: most, share: share, patience: turn, kept: map[string]*object{}, used: map[string]*use{}, idle: list.New(),
		waits: list.New(), freed: make(chan struct{}),
	}
}

// get returns an object of size bytes for a reader, which read reads if it is not kept. It is kept at least until release is called.
func (o *objects) get(
	ctx context.Context, of, key string, size int64, read func(context.Context) ([]byte, error),
) (content []byte, release func(), err error) {
	waiting, cancel := context.WithTimeout(ctx, o.patience)
	defer cancel()
	var waits *list.Element
	defer func() { o.waitsNot(waits) }()
	for {
		x, reads, freed := o.take(of, key, size, &waits)
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
		o.waitsNot(waits)
		waits = nil
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
		"try again when one has ended", o.taken, o.most, o.usedBy(of).bytes)
}

// usedBy returns what a reader uses. The caller holds the lock.
func (o *objects) usedBy(of string) *use {
	if used := o.used[of]; used != nil {
		return used
	}
	return &use{times: map[*object]int{}}
}

// take takes an object for a reader; reads: the caller has to read it. It is nil if there is no room before freed is closed: waits is then
// the place of the request among those that wait, unless it waits for the reader's own.
func (o *objects) take(of, key string, size int64, waits **list.Element) (x *object, reads bool, freed <-chan struct{}) {
	o.mu.Lock()
	defer o.mu.Unlock()
	x = o.kept[key]
	used := o.usedBy(of)
	if used.bytes > 0 && used.times[x] == 0 && used.bytes+size > o.share {
		return nil, false, o.freed
	}
	if x == nil {
		if !o.turn(*waits) || !o.room(size) {
			if *waits == nil {
				*waits = o.waits.PushBack(time.Now())
			}
			return nil, false, o.freed
		}
		x, reads = &object{key: key, size: size, ready: make(chan struct{})}, true
		o.kept[key] = x
		o.taken += size
	}
	if used.times[x]++; used.times[x] == 1 {
		used.bytes += x.size
	}
	o.used[of] = used
	if x.users++; x.place != nil {
		o.unidle(x)
	}
	return x, reads, nil
}

// turn reports whether a request may take room now: not before one that has waited for half of the patience. The caller holds the lock.
func (o *objects) turn(waits *list.Element) bool {
	first := o.waits.Front()
	return first == nil || first == waits || time.Since(first.Value.(time.Time)) < o.patience/2
}

// waitsNot says that a request waits no longer.
func (o *objects) waitsNot(waits *list.Element) {
	if waits == nil {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.waits.Remove(waits)
	o.wake()
}

// wake lets those that wait look again. The caller holds the lock.
func (o *objects) wake() {
	close(o.freed)
	o.freed = make(chan struct{})
}

// unidle takes an object from those that no request uses. The caller holds the lock.
func (o *objects) unidle(x *object) {
	o.idle.Remove(x.place)
	o.idleBytes -= x.size
	x.place = nil
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
	used := o.used[of]
	if used.times[x]--; used.times[x] == 0 {
		delete(used.times, x)
		used.bytes -= x.size
	}
	if len(used.times) == 0 {
		delete(o.used, of)
	}
	if x.users--; x.users == 0 {
		if failed {
			o.taken -= x.size
		} else {
			x.place = o.idle.PushFront(x)
			o.idleBytes += x.size
		}
	}
	o.wake()
}

// room reports whether there is room for that number of bytes, and drops what is not used to make some, if that is enough. The caller
// holds the lock.
func (o *objects) room(size int64) bool {
	if o.taken-o.idleBytes+size > o.most {
		return false
	}
	for o.taken+size > o.most {
		x := o.idle.Back().Value.(*object)
		o.unidle(x)
		delete(o.kept, x.key)
		o.taken -= x.size
	}
	return true
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
