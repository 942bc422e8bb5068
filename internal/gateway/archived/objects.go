package archived

import (
	"container/list"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/katbox/katbox/internal/gateway/bucket"
	form "github.com/katbox/katbox/internal/model/archived"
)

const (
	// mostIndexBytes and mostPieceBytes bound the indexes and the pieces in memory, those that are used among them: the longest
	// index and many others, that of a volume with 1,000 files has some 30 KiB; and a piece for each request for bytes, so that none waits
	// for the readers of others.
	mostIndexBytes = form.MaxIndex + 32<<20
	mostPieceBytes = mostStreaming * form.MaxPiece
)

// errPiece: a piece is not what the index says.
var errPiece = errors.New("a piece of the archive is not what its index says")

// objects keeps objects in memory, within a bound: those that are used, and of the others those that were used last. Who needs one for
// which there is no room waits until others are used no more.
type objects struct {
	most int64

	mu sync.Mutex
	// taken is how many bytes are kept, or are being read.
	taken int64
	kept  map[string]*object
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

func newObjects(most int64) *objects {
	return &objects{most: most, kept: map[string]*object{}, idle: list.New(), freed: make(chan struct{})}
}

// get returns an object of size bytes, which read reads if it is not kept. It is kept at least until release is called.
func (o *objects) get(
	ctx context.Context, key string, size int64, read func(context.Context) ([]byte, error),
) (content []byte, release func(), err error) {
	for {
		o.mu.Lock()
		if x := o.kept[key]; x != nil {
			o.use(x)
			o.mu.Unlock()
			select {
			case <-x.ready:
			case <-ctx.Done():
				o.leave(x)
				return nil, nil, context.Cause(ctx)
			}
			if x.err == nil {
				return x.content, sync.OnceFunc(func() { o.leave(x) }), nil
			}
			o.leave(x)
			// The one who read it may have gone; who needs it now reads it for himself.
			if ctx.Err() == nil && errors.Is(x.err, context.Canceled) {
				continue
			}
			return nil, nil, x.err
		}
		if o.room(size) {
			x := &object{key: key, size: size, users: 1, ready: make(chan struct{})}
			o.kept[key] = x
			o.taken += size
			o.mu.Unlock()
			x.content, x.err = read(ctx)
			close(x.ready)
			if x.err != nil {
				o.leave(x)
				return nil, nil, x.err
			}
			return x.content, sync.OnceFunc(func() { o.leave(x) }), nil
		}
		freed := o.freed
		o.mu.Unlock()
		select {
		case <-freed:
		case <-ctx.Done():
			return nil, nil, fmt.Errorf("wait for memory to read the archive: %w", context.Cause(ctx))
		}
	}
}

// use takes an object that is kept. The caller holds the lock.
func (o *objects) use(x *object) {
	if x.users++; x.place != nil {
		o.idle.Remove(x.place)
		x.place = nil
	}
}

// leave gives an object back. One that could not be read is not kept.
func (o *objects) leave(x *object) {
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
	if x.users--; x.users > 0 {
		return
	}
	if failed {
		o.taken -= x.size
	} else {
		x.place = o.idle.PushFront(x)
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
