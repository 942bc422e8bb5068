package quota

import (
	"errors"
	"iter"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/node/metrics"
	"github.com/katbox/katbox/internal/testing/metricstest"
)

// fakeKernel counts projects in a map.
type fakeKernel struct {
	mu     sync.Mutex
	state  State
	inside uint32
	quotas map[uint32]Quota
	// off: another program has turned quotas off; stuck is why they cannot be turned on.
	off   bool
	stuck error
	// projects are those of open directories.
	projects map[int]uint32
	err      error
	reads    int
	// onSet is called with each limit that is set, and may call back.
	onSet func()
}

func (k *fakeKernel) State() (State, error) {
	if k.state == None {
		return None, errors.New("no quotas here")
	}
	return k.state, nil
}

func (k *fakeKernel) Inside() uint32 { return k.inside }

func (k *fakeKernel) SetProject(int, uint32) error { return k.err }

func (k *fakeKernel) Enforce() (already bool, err error) {
	already, k.off = !k.off, k.off && k.stuck != nil
	if k.off {
		return false, k.stuck
	}
	return already, nil
}

func (k *fakeKernel) Project(fd int) (uint32, error) { return k.projects[fd], k.err }

func (k *fakeKernel) SetLimit(id uint32, limit volume.Size) error {
	k.mu.Lock()
	q := k.quotas[id]
	q.ID, q.Limit, q.Soft = id, limit, volume.Size{}
	k.quotas[id] = q
	k.mu.Unlock()
	if k.onSet != nil {
		k.onSet()
	}
	return k.err
}

func (k *fakeKernel) use(id uint32, used volume.Size) {
	k.mu.Lock()
	defer k.mu.Unlock()
	q := k.quotas[id]
	q.ID, q.Used = id, used
	k.quotas[id] = q
}

func (k *fakeKernel) Read(id uint32) (Quota, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.reads++
	q := k.quotas[id]
	q.ID = id
	return q, k.err
}

// readsSince returns how many reads there were since the last call.
func (k *fakeKernel) readsSince() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	n := k.reads
	k.reads = 0
	return n
}

func (k *fakeKernel) From(id uint32) iter.Seq2[Quota, error] {
	k.mu.Lock()
	all := slices.Sorted(maps.Keys(k.quotas))
	k.mu.Unlock()
	return func(yield func(Quota, error) bool) {
		for _, have := range all {
			if have >= id && !yield(k.quotas[have], nil) {
				return
			}
		}
	}
}

const first = 1000

var (
	someUse  = volume.Size{Bytes: 4096, Inodes: 1}
	someSize = volume.Size{Bytes: 1 << 20}
)

func newFake() *fakeKernel { return &fakeKernel{state: Enforced, quotas: map[uint32]Quota{}} }

func newProjects(t *testing.T, k *fakeKernel, change func(*Config)) *Projects {
	t.Helper()
	cfg := Config{Kernel: k, Mode: Auto, IDs: Range{First: first, Size: 8}, Metrics: metrics.New("test", ""), Log: logr.Discard(),
		Draw: func(uint32) uint32 { return 0 }} // so the smallest free one is next
	if change != nil {
		change(&cfg)
	}
	p := New(cfg)
	t.Cleanup(p.Close)
	return p
}

// take takes an ID, as a volume does that uses it at once.
func take(t *testing.T, p *Projects, want uint32) {
	t.Helper()
	id, err := p.Take(someSize)
	if err != nil || id != want {
		t.Fatalf("took project %d, %v, want %d", id, err, want)
	}
	if id == 0 {
		return
	}
	if set, err := p.Set(0, id, someSize); !set || err != nil {
		t.Fatalf("set project %d: %t, %v", id, set, err)
	}
	p.Kernel.(*fakeKernel).use(id, someUse)
}

func (k *fakeKernel) wantNoLimit(t *testing.T, id uint32) {
	t.Helper()
	if q, _ := k.Read(id); q.Limit != (volume.Size{}) {
		t.Errorf("project %d has the limit %+v", id, q.Limit)
	}
}

func wantMetric(t *testing.T, p *Projects, name string, want float64) {
	t.Helper()
	if got := metricstest.Of(t, p.Metrics)[name]; got != want {
		t.Errorf("%s is %v, want %v", name, got, want)
	}
}

func TestIDsAreGivenAgain(t *testing.T) {
	k := newFake()
	p := newProjects(t, k, nil)
	for id := uint32(first); id < first+4; id++ {
		take(t, p, id)
	}
	for _, id := range []uint32{first + 2, first + 1} {
		end(k, p, id)
		k.wantNoLimit(t, id)
	}
	take(t, p, first+1)
	take(t, p, first+2)
	take(t, p, first+4)
}

// end is the end of a volume whose data is erased before its record is gone.
func end(k *fakeKernel, p *Projects, id uint32) {
	p.Discarded(id)
	k.use(id, volume.Size{})
	p.Erased(id)
	p.Unlimit(id)
	p.Forgotten(id)
}

// TestIDWaitsForRecordAndData, whichever goes first.
func TestIDWaitsForRecordAndData(t *testing.T) {
	for name, steps := range map[string][]func(*Projects, uint32){
		"record last": {(*Projects).Erased, (*Projects).Forgotten},
		"data last":   {(*Projects).Forgotten, (*Projects).Erased},
	} {
		t.Run(name, func(t *testing.T) {
			k := newFake()
			p := newProjects(t, k, func(c *Config) { c.IDs.Size = 1 })
			take(t, p, first)
			p.Discarded(first)
			p.Unlimit(first)
			k.use(first, volume.Size{})
			for _, step := range steps {
				if id, _ := p.Take(volume.Size{}); id != 0 {
					t.Fatalf("project %d was given while its volume ends", id)
				}
				step(p, first)
			}
			take(t, p, first)
		})
	}
}

// TestForeignProjects are neither given to a volume nor touched, and are given once they are free.
func TestForeignProjects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newFake()
		k.use(first, someUse)
		limit := volume.Size{Bytes: 7}
		if err := k.SetLimit(first+1, limit); err != nil {
			t.Fatal(err)
		}
		k.use(first+100, someUse)
		p := newProjects(t, k, func(c *Config) { c.Reserved = []uint32{1, first + 2, first + 100} })
		p.FindForeign(func() bool { return true })
		wantMetric(t, p, "katbox_quota_foreign_projects", 2)
		wantMetric(t, p, "katbox_quota_projects", 3)
		take(t, p, first+3)
		k.use(first+4, someUse) // since FindForeign
		take(t, p, first+5)
		wantMetric(t, p, "katbox_quota_foreign_projects", 3)

		k.use(first, volume.Size{})
		k.use(first+4, volume.Size{})
		time.Sleep(foreignInterval + time.Second)
		synctest.Wait()
		wantMetric(t, p, "katbox_quota_foreign_projects", 1)
		take(t, p, first)
		take(t, p, first+4)
		take(t, p, first+6)
		if q, _ := k.Read(first + 1); q.Limit != limit {
			t.Errorf("somebody else's limit is %+v now, want %+v", q.Limit, limit)
		}
		p.Close()
	})
}

// TestNoneIsLeft: what is set aside is looked at again at once, and not a few a minute.
func TestNoneIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const many = 10 * foreignBatch
		k := newFake()
		for id := range uint32(many) {
			k.use(first+id, someUse)
		}
		p := newProjects(t, k, func(c *Config) { c.IDs.Size, c.Mode = many, Required })
		p.FindForeign(func() bool { return true })
		if id, err := p.Take(someSize); !errors.Is(err, ErrNotEnforced) {
			t.Errorf("project %d, %v", id, err)
		}
		wantMetric(t, p, "katbox_quota_foreign_projects", many)
		k.use(first+7, volume.Size{})
		take(t, p, first+7)
		for id := range uint32(many) {
			k.use(first+id, volume.Size{})
		}
		time.Sleep(foreignInterval)
		synctest.Wait()
		wantMetric(t, p, "katbox_quota_foreign_projects", 0)
		p.Close()
	})
}

// TestChangedLimit is set again, whatever another program has made of it.
func TestChangedLimit(t *testing.T) {
	small := volume.Size{Bytes: 1 << 20, Inodes: 10}
	block := volume.Size{Bytes: 4096}
	for _, tt := range []struct {
		name    string
		limit   volume.Size
		has     Quota
		want    volume.Size
		changes int
	}{
		{"taken away", small, Quota{}, small, 1},
		{"raised", small, Quota{Limit: volume.Size{Bytes: 1 << 40, Inodes: 10}}, small, 1},
		{"lowered", small, Quota{Limit: volume.Size{Bytes: 1 << 10, Inodes: 10}}, small, 1},
		{"inodes alone", small, Quota{Limit: someSize}, small, 1},
		{"a soft limit", small, Quota{Limit: small, Soft: volume.Size{Bytes: 1}}, small, 1},
		{"a limit where there was none", volume.Size{}, Quota{Limit: volume.Size{Bytes: 1}}, volume.Size{}, 1},
		{"the same", small, Quota{Limit: small}, small, 0},
		{"rounded up to a block", volume.Size{Bytes: 1000}, Quota{Limit: block}, block, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			k, changes, log := newFake(), 0, ""
			p := newProjects(t, k, func(c *Config) {
				c.LimitChanged = func() { changes++ }
				c.Log = funcr.New(func(_, line string) { log += line }, funcr.Options{})
			})
			id, err := p.Take(tt.limit)
			if err != nil {
				t.Fatal(err)
			}
			log = ""
			tt.has.ID, tt.has.Used = id, someUse
			k.quotas[id] = tt.has
			q, ok := p.Held(id, tt.limit, "volume", "scratch")
			now, _ := k.Read(id)
			if !ok || q.Limit != tt.want || q.Used != someUse || now.Limit != tt.want || now.Soft != (volume.Size{}) {
				t.Errorf("%+v, %t; the kernel has %+v now", q, ok, now)
			}
			if named := strings.Contains(log, "scratch"); changes != tt.changes || named != (tt.changes > 0) {
				t.Errorf("%d changes are counted, want %d; the log has %q", changes, tt.changes, log)
			}
		})
	}
}

// TestQuotasThatAreTurnedOff are turned on again. While that is refused nothing looks enforced, and the log says so once.
func TestQuotasThatAreTurnedOff(t *testing.T) {
	k, changes, log := newFake(), 0, ""
	p := newProjects(t, k, func(c *Config) {
		c.LimitChanged = func() { changes++ }
		c.Log = funcr.New(func(_, line string) { log += line + "\n" }, funcr.Options{})
	})
	take(t, p, first)
	hold := func(enforced bool, counted int, lines string) {
		t.Helper()
		log = ""
		for range 2 {
			p.Held(first, someSize)
		}
		if p.Enforces(first) != enforced || changes != counted || strings.Count(log, "\n") > 1 || !strings.Contains(log, lines) ||
			lines == "" && log != "" {
			t.Errorf("enforced %t, %d changes, log %q; want %t, %d, %q", p.Enforces(first), changes, log, enforced, counted, lines)
		}
	}
	hold(true, 0, "")
	k.off = true
	hold(true, 1, "another program had turned project quotas off")
	k.off, k.stuck = true, unix.EPERM
	hold(false, 1, "no limit holds")
	k.stuck = nil
	hold(true, 2, "they are on again")
}

// TestLimitCannotBeSetAgain: the log says so once until it works.
func TestLimitCannotBeSetAgain(t *testing.T) {
	k, changes, lines := newFake(), 0, 0
	p := newProjects(t, k, func(c *Config) {
		c.LimitChanged = func() { changes++ }
		c.Log = funcr.New(func(string, string) { lines++ }, funcr.Options{})
	})
	take(t, p, first)
	before := lines
	changed := volume.Size{Bytes: 1 << 40}
	k.onSet = func() { k.quotas[first] = Quota{ID: first, Used: someUse, Limit: changed} }
	k.onSet()
	for range 3 {
		if q, ok := p.Held(first, someSize); !ok || q.Limit != changed {
			t.Errorf("%+v, %t", q, ok)
		}
	}
	if changes != 0 || lines != before+1 {
		t.Errorf("%d changes, %d lines", changes, lines-before)
	}
	k.onSet = nil
	if q, _ := p.Held(first, someSize); q.Limit != someSize || changes != 1 {
		t.Errorf("%+v, %d changes", q, changes)
	}
}

// TestNoLimitForTheGone: a volume that goes while its limit is set again leaves none, and its ID is not free before.
func TestNoLimitForTheGone(t *testing.T) {
	k := newFake()
	p := newProjects(t, k, func(c *Config) { c.IDs.Size = 1 })
	take(t, p, first)
	k.quotas[first] = Quota{ID: first}
	k.onSet = func() {
		k.onSet = nil
		p.Unlimit(first)
		p.Forgotten(first)
		if id, _ := p.Take(volume.Size{}); id != 0 {
			t.Error("the ID was given while its limit was set")
		}
	}
	p.Held(first, someSize)
	k.wantNoLimit(t, first)
	p.lookForFree(true)
	take(t, p, first)

	// One that is not known gets none.
	end(k, p, first)
	p.Held(first, someSize)
	k.wantNoLimit(t, first)
}

// TestStray: of a volume whose files have another project nothing is enforced. The log says so once, until there is
// none any more.
func TestStray(t *testing.T) {
	k, lines := newFake(), 0
	k.projects = map[int]uint32{7: first, 8: 0}
	p := newProjects(t, k, func(c *Config) { c.Log = funcr.New(func(string, string) { lines++ }, funcr.Options{}) })
	take(t, p, first)
	take(t, p, first+1)
	if !p.Has(7, first) || p.Has(8, first) || p.Has(7, first+1) {
		t.Error("it cannot tell which project a directory has")
	}
	k.err = unix.EIO
	if !p.Has(8, first) {
		t.Error("a directory that cannot be looked at has another project")
	}
	k.err = nil
	before := lines
	for _, id := range []uint32{first, first + 1, first, first + 5, 5} { // the last two are of no record
		p.Stray(id, true)
	}
	wantMetric(t, p, "katbox_quota_stray_volumes", 2)
	if p.Enforces(first) || p.Enforces(first+1) || lines != before+1 {
		t.Errorf("enforced: %t, %t, %d lines", p.Enforces(first), p.Enforces(first+1), lines-before)
	}
	p.Stray(first, false)
	p.Forgotten(first + 1)
	wantMetric(t, p, "katbox_quota_stray_volumes", 0)
	if !p.Enforces(first) || p.Enforces(0) {
		t.Error("a limit that holds is not enforced, or that of no project is")
	}
	p.Stray(first, true)
	if lines != before+2 {
		t.Errorf("%d lines", lines-before)
	}
}

// TestUseThatStays sets an ID aside after a minute, and frees it when the use is gone.
func TestUseThatStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newFake()
		p := newProjects(t, k, nil)
		take(t, p, first)
		take(t, p, first+1)
		for _, id := range []uint32{first, first + 1} {
			p.Discarded(id)
			p.Unlimit(id)
			p.Forgotten(id)
			p.Erased(id) // and the kernel still counts its files
		}
		take(t, p, first+2)
		time.Sleep(3 * checkInterval)
		k.use(first+1, volume.Size{}) // it was late
		time.Sleep(2 * checkInterval)
		synctest.Wait()
		take(t, p, first+1)
		wantMetric(t, p, "katbox_quota_foreign_projects", 0)
		time.Sleep(foreignAfter)
		synctest.Wait()
		wantMetric(t, p, "katbox_quota_foreign_projects", 1)
		time.Sleep(time.Hour)
		take(t, p, first+3)
		k.use(first, volume.Size{})
		time.Sleep(2 * foreignInterval)
		synctest.Wait()
		wantMetric(t, p, "katbox_quota_foreign_projects", 0)
		take(t, p, first)
		p.Close()
	})
}

// TestManyForeignProjects are looked at in batches: a pod may make any number of them.
func TestManyForeignProjects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const many = 10 * foreignBatch
		k := newFake()
		for id := range uint32(many) {
			k.use(first+id, someUse)
		}
		p := newProjects(t, k, func(c *Config) { c.IDs.Size = 2 * many })
		p.FindForeign(func() bool { return true })
		k.readsSince()
		time.Sleep(foreignInterval + foreignInterval/2)
		synctest.Wait()
		if reads := k.readsSince(); reads != foreignBatch {
			t.Errorf("%d were looked at at once, want %d", reads, foreignBatch)
		}
		for id := range uint32(many) {
			k.use(first+id, volume.Size{})
		}
		time.Sleep(11 * foreignInterval)
		synctest.Wait()
		wantMetric(t, p, "katbox_quota_projects", 0)
		p.Close()
	})
}

// TestStart takes over the IDs of records and of the trash.
func TestStart(t *testing.T) {
	k := newFake()
	for id := range uint32(4) {
		k.use(first+id, someUse)
	}
	p := newProjects(t, k, nil)
	for _, id := range []uint32{0, first, first + 1, first + 1, 5, math.MaxUint32} {
		p.Known(id)
	}
	p.InTrash(first + 1) // what it had has left it, and a record has it now
	p.InTrash(first + 2)
	p.FindForeign(func() bool { return true })
	wantMetric(t, p, "katbox_quota_foreign_projects", 1)
	take(t, p, first+4)

	// The first of two records with an ID takes nothing away from the second.
	if err := k.SetLimit(first+1, someSize); err != nil {
		t.Fatal(err)
	}
	p.Unlimit(first + 1)
	p.Erased(first + 1)
	p.Forgotten(first + 1)
	if q, _ := k.Read(first + 1); q.Limit != someSize {
		t.Error("the limit of a volume with the same project is gone")
	}
	k.use(first+1, volume.Size{})
	take(t, p, first+5)
	p.Unlimit(first + 1)
	p.Forgotten(first + 1)
	take(t, p, first+1)

	k.use(first+2, volume.Size{})
	take(t, p, first+6)
	p.Erased(first + 2)
	take(t, p, first+2)
}

// TestLimitThatStayed is taken away before the ID is free.
func TestLimitThatStayed(t *testing.T) {
	k := newFake()
	p := newProjects(t, k, nil)
	take(t, p, first)
	k.use(first, volume.Size{})
	p.Forgotten(first) // and nobody has taken the limit away
	k.wantNoLimit(t, first)
	take(t, p, first)
}

func TestModes(t *testing.T) {
	noID := func(c *Config) { c.IDs.Size = 1; c.Reserved = []uint32{first} }
	inside := func(c *Config) { c.Kernel.(*fakeKernel).inside = 7 }
	for _, tt := range []struct {
		name   string
		mode   Mode
		state  State
		change func(*Config)
		limit  volume.Size
		want   uint32
		err    string
		missed float64
	}{
		{name: "enforced", mode: Auto, state: Enforced, limit: someSize, want: first},
		{name: "enforced, no limit", mode: Auto, state: Enforced, want: first},
		{name: "accounted", mode: Auto, state: Accounted, limit: someSize, want: first, missed: 1},
		{name: "accounted, no limit", mode: Auto, state: Accounted, want: first},
		{name: "none", mode: Auto, state: None, limit: someSize, missed: 1},
		{name: "none, no limit", mode: Auto, state: None},
		{name: "no ID", mode: Auto, state: Enforced, change: noID, limit: someSize, missed: 1},
		{name: "no ID, no limit", mode: Auto, state: Enforced, change: noID},
		{name: "inside a project", mode: Auto, state: Enforced, change: inside, limit: someSize, missed: 1},
		{name: "off", mode: Off, state: Enforced, limit: someSize, missed: 1},
		{name: "required", mode: Required, state: Enforced, limit: someSize, want: first},
		{name: "required inside a project", mode: Required, state: Enforced, change: inside, limit: someSize, want: first},
		{name: "required, accounted", mode: Required, state: Accounted, limit: someSize, err: "enforces no limit"},
		{name: "required, accounted, no limit", mode: Required, state: Accounted, want: first},
		{name: "required, none", mode: Required, state: None, limit: someSize, err: "no quotas here"},
		{name: "required, none, no limit", mode: Required, state: None},
		{name: "required, no ID", mode: Required, state: Enforced, change: noID, limit: someSize, err: "--project-ids"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			k := newFake()
			k.state = tt.state
			p := newProjects(t, k, func(c *Config) {
				c.Mode = tt.mode
				if tt.change != nil {
					tt.change(c)
				}
			})
			id, err := p.Take(tt.limit)
			asWanted := err == nil
			if tt.err != "" {
				asWanted = errors.Is(err, ErrNotEnforced) && strings.Contains(err.Error(), tt.err)
			}
			if id != tt.want || !asWanted {
				t.Errorf("project %d, %v, want %d, %q", id, err, tt.want, tt.err)
			}
			wantMetric(t, p, "katbox_quota_not_enforced_total", tt.missed)
			if tt.err != "" {
				if left := p.ids.count - len(p.Reserved); left != 0 {
					t.Errorf("%d IDs are taken after a refusal", left)
				}
			}
		})
	}
}

// TestSetRefused: want of room is an error in any mode, another refusal costs only the limit.
func TestSetRefused(t *testing.T) {
	for _, tt := range []struct {
		mode Mode
		err  error
		want error
	}{
		{Auto, unix.ENOSPC, unix.ENOSPC}, {Auto, unix.EDQUOT, unix.EDQUOT}, {Auto, unix.EOPNOTSUPP, nil},
		{Required, unix.EOPNOTSUPP, ErrNotEnforced},
	} {
		k := newFake()
		p := newProjects(t, k, func(c *Config) { c.Mode = tt.mode })
		id, err := p.Take(someSize)
		if err != nil {
			t.Fatal(err)
		}
		k.err = tt.err
		if set, err := p.Set(0, id, someSize); set || !errors.Is(err, tt.want) || tt.want == nil && err != nil {
			t.Errorf("%s, %v: set %t, %v", tt.mode, tt.err, set, err)
		}
		k.err = nil
	}
}

// TestKernelThatFails gives no ID that it could not look at, and keeps none.
func TestKernelThatFails(t *testing.T) {
	k := newFake()
	p := newProjects(t, k, nil)
	k.err = unix.EIO
	take0, err := p.Take(someSize)
	if take0 != 0 || err != nil {
		t.Errorf("project %d, %v", take0, err)
	}
	if _, ok := p.Of(first); ok {
		t.Error("a use is known that could not be read")
	}
	k.err = nil
	take(t, p, first)
	if q, ok := p.Of(first); !ok || q.Used != someUse || q.Limit != someSize {
		t.Errorf("%+v, %t", q, ok)
	}
}

// TestNothingIsCounted: the file system was mounted without project quotas after volumes had got
// projects. Their IDs are free when they are gone.
func TestNothingIsCounted(t *testing.T) {
	k := newFake()
	k.state, k.err = None, unix.ESRCH
	lines := 0
	p := newProjects(t, k, func(c *Config) {
		c.Log = funcr.New(func(string, string) { lines++ }, funcr.Options{})
	})
	for _, id := range []uint32{first, first + 1, first + 1} {
		p.Known(id)
	}
	started := lines
	for _, id := range []uint32{first, first + 1} {
		p.Discarded(id)
		p.Unlimit(id)
		p.Forgotten(id)
		p.Erased(id)
	}
	wantMetric(t, p, "katbox_quota_projects", 1) // a second record has it
	p.Forgotten(first + 1)
	wantMetric(t, p, "katbox_quota_projects", 0)
	if len(p.waiting.leaving) > 0 || lines != started {
		t.Errorf("%d IDs wait, %d lines", len(p.waiting.leaving), lines-started)
	}
}

// TestNoProjects is the nil Projects.
func TestNoProjects(t *testing.T) {
	var p *Projects
	if id, err := p.Take(someSize); id != 0 || err != nil {
		t.Errorf("project %d, %v", id, err)
	}
	if _, ok := p.Of(first); ok {
		t.Error("a use is known")
	}
	for _, call := range []func(*Projects, uint32){
		(*Projects).Known, (*Projects).InTrash, (*Projects).Discarded, (*Projects).Unlimit, (*Projects).Forgotten, (*Projects).Erased,
	} {
		call(p, first)
	}
	p.FindForeign(nil)
	p.Close()
}
