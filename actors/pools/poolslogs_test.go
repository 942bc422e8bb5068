package pools

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/katbox/katbox/internal/model/v1alpha1"
)

// eventLog keeps all Events.
type eventLog struct {
	mu  sync.Mutex
	all []string
	// at is how many there were at each time.
	at map[time.Time]int
}

func (l *eventLog) Event(o runtime.Object, kind, reason, message string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.at == nil {
		l.at = map[time.Time]int{}
	}
	l.at[time.Now()]++
	l.all = append(l.all, fmt.Sprintf("%s %s %s: %s", o.(client.Object).GetName(), kind, reason, message))
}

func (l *eventLog) Eventf(o runtime.Object, kind, reason, format string, args ...any) {
	l.Event(o, kind, reason, fmt.Sprintf(format, args...))
}

func (l *eventLog) AnnotatedEventf(o runtime.Object, _ map[string]string, kind, reason, format string, args ...any) {
	l.Eventf(o, kind, reason, format, args...)
}

func (l *eventLog) list() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.all)
}

// count returns how many Events have a text.
func (l *eventLog) count(text string) (n int) {
	for _, e := range l.list() {
		if strings.Contains(e, text) {
			n++
		}
	}
	return n
}

func (h *testPools) wantEvents(text string, want int) {
	h.Helper()
	if got := h.events.count(text); got != want {
		h.Errorf("%d events with %q, want %d, in %q", got, text, want, h.events.list())
	}
}

// stateLog keeps the states of Pools in the order in which they were written.
type stateLog struct {
	mu sync.Mutex
	of map[string][]string
}

// all returns the states of a Pool.
func (l *stateLog) all(pool string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return fmt.Sprint(l.of[pool])
}

type loggingWatcher struct {
	*Controller
	states *stateLog
}

func (w *loggingWatcher) Seen(kind string, o client.Object) {
	if p, ok := o.(*v1alpha1.Pool); ok && p.Status.State != "" {
		w.states.mu.Lock()
		if all := w.states.of[p.Name]; len(all) == 0 || all[len(all)-1] != string(p.Status.State) {
			w.states.of[p.Name] = append(all, string(p.Status.State))
		}
		w.states.mu.Unlock()
	}
	w.Controller.Seen(kind, o)
}
