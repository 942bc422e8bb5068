package local

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/katbox/katbox/soak/internal/synced"
)

const (
	mebi = 1 << 20
	// variety is by how much new volumes are larger than the least, at most, and growth by how much one grows.
	variety = 24
	growth  = 8 * mebi
	// mostIdle is how many volumes of a pool wait for a pod, mostSnapshots how many snapshots one has.
	mostIdle      = 3
	mostSnapshots = 2
)

// Config is what a [Player] needs. All fields are required.
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
	// Journal tells an event. It returns when that is told.
	Journal func(Event) error
}

// Player lets volumes live. Its methods may be called at the same time, except [Player.Audit].
type Player struct {
	Config
	*node
	is map[string]pool

	mu    sync.Mutex
	book  Book
	made  int
	idle  map[string][]*volume
	moved Counts
}

// Counts says what was done.
type Counts struct{ Volumes, Uses, Snapshots, Clones, Grown, Retained, Restored, Refused, Deleted int }

// volume is a volume that one goroutine owns, or that waits for a pod.
type volume struct {
	class, name string
	size        int64
	snapshots   []string
	retained    bool
}

// NewPlayer returns a player of a node that is connected, or comes.
func NewPlayer(cfg Config) (*Player, error) {
	n, err := dial(cfg.Socket, cfg.Kubelet)
	return &Player{Config: cfg, node: n, idle: make(map[string][]*volume)}, err
}

// Open waits for the pools.
func (p *Player) Open(ctx context.Context) (err error) {
	p.is, err = p.Controller.pools(ctx, p.classes())
	return err
}

func (p *Player) classes() (all []string) {
	for class := range p.Pools {
		all = append(all, class)
	}
	return all
}

// Counts returns what was done so far.
func (p *Player) Counts() Counts {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.moved
}

// Told lets the player know what an earlier one has told.
func (p *Player) Told(e Event) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.book.Add(e)
}

// Standing counts what the events promise.
func (p *Player) Standing() string { return p.book.Standing() }

// tell notes an event, in the journal too.
func (p *Player) tell(e Event, count func(*Counts)) error {
	e.At = time.Now()
	p.mu.Lock()
	if count != nil {
		count(&p.moved)
	}
	err := p.book.Add(e)
	p.mu.Unlock()
	if err != nil {
		return err
	}
	return p.Journal(e)
}

// contentOf is what was synced in a volume or a snapshot.
func (p *Player) contentOf(name string) []written {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.book.entries[name].content()
}

// Use is a volume that a pod has.
type Use struct {
	*Player
	*volume
	pod, target string
	random      *rand.Rand
}

// Begin gives a volume to a pod: a new one, or one that another pod had. It returns nil when there is no room.
func (p *Player) Begin(ctx context.Context, pod string, random *rand.Rand) (*Use, error) {
	classes := p.classes()
	v, err := p.choose(ctx, classes[random.IntN(len(classes))], random)
	if err != nil || v == nil {
		return nil, err
	}
	u := &Use{Player: p, volume: v, pod: pod, random: random}
	if u.target, err = p.give(ctx, v, pod); err != nil {
		return nil, err
	}
	return u, p.verify(v.name, u.target)
}

// give stages and publishes a volume.
func (p *Player) give(ctx context.Context, v *volume, pod string) (target string, err error) {
	if err := p.stage(ctx, p.is[v.class].UUID, v.name); err != nil {
		return "", err
	}
	return p.publish(ctx, p.is[v.class].UUID, v.name, pod)
}

// verify fails if something is not there that was synced.
func (p *Player) verify(name, dir string) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	for _, w := range p.contentOf(name) {
		for k := 1; k <= w.n; k++ {
			if err := synced.Check(root, fileName(w.owner, k), w.owner, k); err != nil {
				return fmt.Errorf("%s: marker %d of %d of %s: %w", name, k, w.n, w.owner, err)
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
	p.moved.Uses++
	p.mu.Unlock()
	if v != nil {
		return v, p.restore(ctx, v)
	}
	size := leastSize[p.FSType] + random.Int64N(variety)*mebi
	if random.IntN(12) == 0 {
		size += p.is[class].Total // nobody has so much
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
	e := Event{What: Make, Pool: class, Name: v.name, Size: size, From: from.Snapshot + from.Volume}
	if err := p.tell(e, nil); err != nil {
		return nil, err
	}
	made, err := ask[found](ctx, p.Controller, http.MethodPost, "/"+p.is[class].UUID+"/volumes", v.as(p.FSType, from))
	if isNoSpace(err) {
		e.What = Refused
		return nil, p.tell(e, func(c *Counts) { c.Refused++ })
	}
	if err == nil && (made.Size != size || !made.Ready) {
		err = fmt.Errorf("it was answered that %s has %d bytes and ready=%t", v.name, made.Size, made.Ready)
	}
	if err != nil {
		return nil, err
	}
	e.What = Made
	return v, p.tell(e, func(c *Counts) {
		c.Volumes++
		if e.From != "" {
			c.Clones++
		}
	})
}

func (p *Player) newName(kind string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.made++
	return fmt.Sprintf("%s-%s-%d", kind, p.Prefix, p.made)
}

// Work is what a pod does with its volume, and its user meanwhile.
func (u *Use) Work(ctx context.Context) error {
	for range 1 + u.random.IntN(3) {
		if err := u.write(); err != nil {
			return err
		}
	}
	switch u.random.IntN(4) {
	case 0:
		return u.grow(ctx)
	case 1:
		if u.is[u.class].Copies {
			return u.copy(ctx)
		}
	}
	return nil
}

// Verify fails if something is not there that was synced.
func (u *Use) Verify() error { return u.verify(u.name, u.target) }

func (u *Use) write() error {
	content := u.contentOf(u.name)
	k := content[len(content)-1].n + 1
	if err := synced.Write(u.target, fileName(u.name, k), u.name, k); err != nil {
		return err
	}
	return u.tell(Event{What: Wrote, Pool: u.class, Name: u.name, N: k}, nil)
}

// grow makes the volume larger.
func (u *Use) grow(ctx context.Context) error {
	e := Event{What: Grow, Pool: u.class, Name: u.name, Size: u.size + growth}
	if err := u.tell(e, nil); err != nil {
		return err
	}
	grown, err := ask[found](ctx, u.Controller, http.MethodPut, u.pathOf(u.volume)+"/size", newSize{e.Size})
	if isNoSpace(err) {
		e.What = Kept
		return u.tell(e, func(c *Counts) { c.Refused++ })
	}
	if err != nil {
		return err
	}
	e.What, e.Size, u.size = Grown, grown.Size, grown.Size
	if err := u.tell(e, func(c *Counts) { c.Grown++ }); err != nil {
		return err
	}
	size, err := u.expand(ctx, u.name, u.target, u.size)
	if err == nil && size < u.size {
		err = fmt.Errorf("%s was expanded to %d bytes, and has %d", u.name, u.size, size)
	}
	return err
}

func (p *Player) pathOf(v *volume) string { return "/" + p.is[v.class].UUID + "/volumes/" + v.name }

// copy takes a snapshot, and mostly makes a volume from that or from this one.
func (u *Use) copy(ctx context.Context) error {
	name := u.newName("snap")
	e := Event{What: Make, Pool: u.class, Name: name, Snapshot: true, From: u.name, Size: u.size}
	if err := u.tell(e, nil); err != nil {
		return err
	}
	_, err := ask[found](ctx, u.Controller, http.MethodPost, "/"+u.is[u.class].UUID+"/snapshots", newSnapshot{name, u.name})
	if isNoSpace(err) {
		e.What = Refused
		return u.tell(e, func(c *Counts) { c.Refused++ })
	}
	if err != nil {
		return err
	}
	e.What = Made
	if err := u.tell(e, func(c *Counts) { c.Snapshots++ }); err != nil {
		return err
	}
	u.snapshots = append(u.snapshots, name)
	from := source{Snapshot: name}
	switch u.random.IntN(3) {
	case 0:
		return nil
	case 1:
		from = source{Volume: u.name}
	}
	clone, err := u.make(ctx, u.class, u.size+int64(u.random.IntN(2)*growth), from)
	if err != nil || clone == nil {
		return err
	}
	u.wait(clone)
	return nil
}

// End takes the volume from the pod. It is kept for another one, retained, or deleted.
func (u *Use) End(ctx context.Context) error {
	if err := u.leave(ctx, u.name, u.pod); err != nil {
		return err
	}
	u.mu.Lock()
	full := len(u.idle[u.class]) >= mostIdle
	u.mu.Unlock()
	for len(u.snapshots) > mostSnapshots {
		if err := u.deleteSnapshot(ctx, u.volume); err != nil {
			return err
		}
	}
	switch choice := u.random.IntN(4); {
	case choice < 2 || full:
		return u.delete(ctx, u.volume)
	case choice == 2:
		if err := u.retain(ctx, u.volume); err != nil {
			return err
		}
	}
	u.wait(u.volume)
	return nil
}

// wait makes a volume one that waits for a pod.
func (p *Player) wait(v *volume) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.idle[v.class] = append(p.idle[v.class], v)
}

func (p *Player) retain(ctx context.Context, v *volume) error {
	v.retained = true
	return p.say(ctx, v, retained(time.Now()), func(c *Counts) { c.Retained++ })
}

func (p *Player) restore(ctx context.Context, v *volume) error {
	if !v.retained {
		return nil
	}
	v.retained = false
	return p.say(ctx, v, "", func(c *Counts) { c.Restored++ })
}

// say changes the comment of a volume, which says whether it is retained.
func (p *Player) say(ctx context.Context, v *volume, text string, count func(*Counts)) error {
	e := Event{What: Say, Pool: v.class, Name: v.name, Text: text}
	if err := p.tell(e, nil); err != nil {
		return err
	}
	if _, err := ask[found](ctx, p.Controller, http.MethodPut, p.pathOf(v)+"/comment", newComment{text}); err != nil {
		return err
	}
	e.What = Said
	return p.tell(e, count)
}

// delete deletes a volume, and its snapshots before.
func (p *Player) delete(ctx context.Context, v *volume) error {
	for len(v.snapshots) > 0 {
		if err := p.deleteSnapshot(ctx, v); err != nil {
			return err
		}
	}
	return p.remove(ctx, Event{Pool: v.class, Name: v.name}, p.pathOf(v))
}

func (p *Player) deleteSnapshot(ctx context.Context, v *volume) error {
	name := v.snapshots[0]
	v.snapshots = v.snapshots[1:]
	return p.remove(ctx, Event{Pool: v.class, Name: name}, "/"+p.is[v.class].UUID+"/snapshots/"+name)
}

func (p *Player) remove(ctx context.Context, e Event, path string) error {
	e.What = Delete
	if err := p.tell(e, nil); err != nil {
		return err
	}
	if _, err := ask[struct{}](ctx, p.Controller, http.MethodDelete, path, nil); err != nil {
		return err
	}
	e.What = Deleted
	return p.tell(e, func(c *Counts) { c.Deleted++ })
}
