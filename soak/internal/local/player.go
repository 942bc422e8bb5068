package local

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"

	"github.com/katbox/katbox/soak/internal/synced"
	"github.com/katbox/katbox/soak/story"
)

const (
	mebi = 1 << 20
	// variety is by how much new volumes are larger than the least, at most, and growth by how much one grows.
	variety = 24
	growth  = 8 * mebi
	// mostIdle is how many volumes of a pool wait for a pod.
	mostIdle = 3
)

// Config is what a [Player] needs. All fields but Journal are required.
type Config struct {
	Controller *Controller
	// Socket is that of the local driver, Kubelet the kubelet's directory.
	Socket, Kubelet string
	// Pools are the pools by their classes.
	Pools map[string]Backend
	// FSType is the file system on images.
	FSType string
	// Prefix begins the names of the volumes.
	Prefix string
	// Journal tells an event, and returns when that is told; nil for none.
	Journal func(story.Event) error
}

// Player lets volumes live. Its methods may be called at the same time, except [Player.Audit].
type Player struct {
	Config
	calls csi.NodeClient
	is    map[string]pool
	// settle is how long [Player.Audit] waits for what is not ready, or not gone yet.
	settle time.Duration

	mu    sync.Mutex
	book  book
	made  int
	idle  map[string][]*volume
	count map[story.Verb]int
}

// volume is a volume that one goroutine owns, or that waits for a pod.
type volume struct {
	class, name string
	size        int64
	snapshots   []string
	retained    bool
}

// told is what events call it.
func (v *volume) told() string { return nameOf(v.class, volumes, v.name) }

// NewPlayer returns a player of a node that is connected, or comes.
func NewPlayer(cfg Config) (*Player, error) {
	calls, err := dial(cfg.Socket)
	return &Player{
		Config: cfg, calls: calls, settle: callLimit, book: make(book), idle: make(map[string][]*volume), count: make(map[story.Verb]int),
	}, err
}

// Open waits for the pools. After a start of the daemon it may be called again, also while volumes are used.
func (p *Player) Open(ctx context.Context) error {
	is, err := p.Controller.pools(ctx, p.classes())
	if err == nil && p.is == nil {
		p.is = is
	}
	return err
}

func (p *Player) classes() (all []string) {
	for class := range p.Pools {
		all = append(all, class)
	}
	return all
}

// Counts returns how often what has happened so far.
func (p *Player) Counts() map[story.Verb]int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return maps.Clone(p.count)
}

// Told goes on with a volume's story, with what an earlier player has told, or what is seen.
func (p *Player) Told(e story.Event) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.count[e.What]++
	return p.book.add(e)
}

// Standing counts what the events promise.
func (p *Player) Standing() string { return p.book.standing() }

// tell notes an event, in the journal too.
func (p *Player) tell(e story.Event) error {
	e.At = time.Now()
	if err := p.Told(e); err != nil || p.Journal == nil {
		return err
	}
	return p.Journal(e)
}

// change asks the node for what the event says, and tells what comes of that. Where there is no room, a create or growth
// is refused.
func (p *Player) change(ctx context.Context, e story.Event, done story.Verb, method, path string, body any) (is found, err error) {
	if err := p.tell(e); err != nil {
		return is, err
	}
	sized := done == story.Created || done == story.Grown
	switch is, err = ask[found](ctx, p.Controller, method, path, body); {
	case sized && isNoSpace(err):
		e.What = story.Refused
	case err != nil:
		return is, err
	default:
		e.What = done
	}
	if sized {
		e.N = int(is.Size)
	}
	return is, cmp.Or(p.tell(e), err)
}

// now is a look at a volume or a snapshot.
func now(name string) story.Event {
	at := time.Now()
	return story.Event{At: at, Until: at, Volume: name}
}

// contentOf is what was synced in a volume or a snapshot.
func (p *Player) contentOf(name string) []written {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.book[name].content()
}

// verify looks whether all is there that was synced, and fails if that is not so.
func (p *Player) verify(name, dir string) error {
	e := now(name)
	e.What = story.Whole
	err := check(dir, p.contentOf(name))
	if err != nil {
		e.What, e.Text = story.Partial, err.Error()
		err = fmt.Errorf("%s: %w", name, err)
	}
	return errors.Join(p.Told(e), err)
}

func check(dir string, content []written) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	for _, w := range content {
		for k := 1; k <= w.n; k++ {
			if err := synced.Check(root, fileName(w.owner, k), w.owner, k); err != nil {
				return fmt.Errorf("marker %d of %d of %s: %w", k, w.n, w.owner, err)
			}
		}
	}
	return nil
}

func fileName(owner string, k int) string { return owner + "-" + synced.Name(k) }

// choose takes a volume that waits, or makes one.
func (p *Player) choose(ctx context.Context, class string, random *rand.Rand) (*volume, error) {
	p.mu.Lock()
	var v *volume
	if waiting := p.idle[class]; len(waiting) > 0 && (random.IntN(2) == 0 || len(waiting) > mostIdle) {
		i := random.IntN(len(waiting))
		v = waiting[i]
		p.idle[class] = append(waiting[:i:i], waiting[i+1:]...)
	}
	p.mu.Unlock()
	if v != nil {
		return v, p.restore(ctx, v)
	}
	size := leastSize[p.FSType] + random.Int64N(variety)*mebi
	if random.IntN(12) == 0 {
		size += p.is[class].Total // more than there is
	}
	return p.make(ctx, class, size, source{})
}

// leastSize is the least size of a volume with a file system of its own.
var leastSize = map[string]int64{"ext4": 16 * mebi, "xfs": 300 * mebi}

func (v *volume) as(fsType string, from source) newVolume {
	return newVolume{Name: v.name, Size: v.size, FSType: fsType, Source: from}
}

// make makes a volume. It returns nil when there is no room.
func (p *Player) make(ctx context.Context, class string, size int64, from source) (*volume, error) {
	v := &volume{class: class, name: p.newName("pvc"), size: size}
	e := story.Event{What: story.Create, Volume: v.told(), N: int(size)}
	switch {
	case from.Snapshot != "":
		e.Text = nameOf(class, snapshots, from.Snapshot)
	case from.Volume != "":
		e.Text = nameOf(class, volumes, from.Volume)
	}
	made, err := p.change(ctx, e, story.Created, http.MethodPost, "/"+p.is[class].UUID+"/volumes", v.as(p.FSType, from))
	switch {
	case isNoSpace(err):
		return nil, nil
	case err == nil && !made.Ready:
		err = fmt.Errorf("it was answered that %s is not ready", v.name)
	}
	return v, err
}

func (p *Player) newName(kind string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.made++
	return fmt.Sprintf("%s-%s-%d", kind, p.Prefix, p.made)
}

func (p *Player) pathOf(v *volume) string { return "/" + p.is[v.class].UUID + "/volumes/" + v.name }

// wait makes a volume one that waits for a pod.
func (p *Player) wait(v *volume) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.idle[v.class] = append(p.idle[v.class], v)
}

func (p *Player) retain(ctx context.Context, v *volume) error {
	v.retained = true
	return p.say(ctx, v, retained(time.Now()))
}

func (p *Player) restore(ctx context.Context, v *volume) error {
	if !v.retained {
		return nil
	}
	v.retained = false
	return p.say(ctx, v, "")
}

// say changes the comment of a volume, which says whether it is retained.
func (p *Player) say(ctx context.Context, v *volume, text string) error {
	e := story.Event{What: story.Decide, Volume: v.told(), Text: text}
	_, err := p.change(ctx, e, story.Decided, http.MethodPut, p.pathOf(v)+"/comment", newComment{text})
	return err
}

// delete deletes a volume, and its snapshots before.
func (p *Player) delete(ctx context.Context, v *volume) error {
	for len(v.snapshots) > 0 {
		if err := p.deleteSnapshot(ctx, v); err != nil {
			return err
		}
	}
	return p.remove(ctx, v.told(), p.pathOf(v))
}

func (p *Player) deleteSnapshot(ctx context.Context, v *volume) error {
	name := v.snapshots[0]
	v.snapshots = v.snapshots[1:]
	return p.remove(ctx, nameOf(v.class, snapshots, name), "/"+p.is[v.class].UUID+"/snapshots/"+name)
}

func (p *Player) remove(ctx context.Context, name, path string) error {
	_, err := p.change(ctx, story.Event{What: story.Delete, Volume: name}, story.Deleted, http.MethodDelete, path, nil)
	return err
}
