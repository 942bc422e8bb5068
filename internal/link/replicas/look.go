package replicas

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"sync"
	"time"

	"github.com/katbox/katbox/internal/link/hub"
	"github.com/katbox/katbox/internal/model/api"
)

const (
	// nodesPath is where a replica says which nodes it has.
	nodesPath = "/v1/replica/nodes"
	// mostNodes bounds that answer: 20,000 nodes with names of 253 bytes take 6 MiB.
	mostNodes = 32 << 20
)

// mostHoldings is how many holdings of a namespace are told of a node. One that says it has more, of namespaces of that name that
// are long gone, is asked itself: what it says must not make the answer long.
const mostHoldings = 16

// errOlder: the replica is of a version that does not answer others.
var errOlder = errors.New("it is of an older version")

// nodesAnswer is what a replica says of its nodes. Many have volumes of the same tenants, which are said once.
type nodesAnswer struct {
	Replica string       `json:"replica"`
	Tenants []tenant     `json:"tenants,omitempty"`
	Nodes   []nodeAnswer `json:"nodes"`
}

type tenant struct {
	Namespace string `json:"namespace"`
	UID       string `json:"uid,omitempty"`
	Verdict   string `json:"verdict,omitempty"`
}

type nodeAnswer struct {
	Node string `json:"n"`
	// Held are pairs: the place of a tenant, and how many volumes the node has of it. Newest is when the newest of these was retained,
	// for each pair, in nanoseconds since 1970; an older replica does not say it.
	Held   []int   `json:"h,omitempty"`
	Newest []int64 `json:"w,omitempty"`
	Skip   string  `json:"s,omitempty"`
}

// nodes answers another replica.
func (r *Replicas) nodes(w http.ResponseWriter, request *http.Request) {
	namespace := request.URL.Query().Get("namespace")
	answer := nodesAnswer{Replica: r.cfg.Local.ID()}
	connected := r.cfg.Local.Connected()
	held := connected
	if namespace != hub.AnyNamespace {
		held = r.cfg.Local.With(namespace)
	}
	of := make(map[string][]api.Holding, len(held))
	for _, h := range held {
		of[h.Conn.Node()] = h.Holdings
	}
	places := map[tenant]int{}
	answer.Nodes = make([]nodeAnswer, 0, len(connected))
	for _, c := range connected {
		n := nodeAnswer{Node: c.Conn.Node(), Skip: c.Skip}
		holdings := of[n.Node]
		if len(holdings) > mostHoldings {
			holdings = hub.Unknown
		}
		for _, h := range holdings {
			t := tenant{h.Namespace, h.NamespaceUID, h.Verdict}
			place, known := places[t]
			if !known {
				place = len(answer.Tenants)
				places[t], answer.Tenants = place, append(answer.Tenants, t)
			}
			n.Held = append(n.Held, place, h.Volumes)
			if namespace != hub.AnyNamespace {
				n.Newest = append(n.Newest, hub.Nanoseconds(h.Newest))
			}
		}
		answer.Nodes = append(answer.Nodes, n)
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(answer) // the other replica has left
}

// holdings returns what a node holds.
func (a *nodesAnswer) holdings(n nodeAnswer) ([]api.Holding, error) {
	if len(n.Held)%2 != 0 {
		return nil, errors.New("a node holds half a pair")
	}
	if len(n.Newest) != 0 && len(n.Newest) != len(n.Held)/2 {
		return nil, errors.New("a node does not say of each pair when its newest volume was retained")
	}
	holdings := make([]api.Holding, 0, len(n.Held)/2)
	for i := 0; i < len(n.Held); i += 2 {
		place := n.Held[i]
		if place < 0 || place >= len(a.Tenants) {
			return nil, fmt.Errorf("there is no tenant %d", place)
		}
		t := a.Tenants[place]
		h := api.Holding{Namespace: t.Namespace, NamespaceUID: t.UID, Verdict: t.Verdict, Volumes: n.Held[i+1]}
		if len(n.Newest) > 0 {
			h.Newest = time.Unix(0, n.Newest[i/2])
		}
		holdings = append(holdings, h)
	}
	return holdings, nil
}

// Look implements [hub.Replicas]. It does not ask a replica that has not answered twice in a row, and no failure of its own counts:
// users must not make a replica one that does not answer.
func (r *Replicas) Look(caller context.Context, namespace string) map[string]hub.Elsewhere {
	ctx, cancel := context.WithTimeout(caller, lookLimit)
	defer cancel()
	var asking sync.WaitGroup
	var mu sync.Mutex
	all := map[string]hub.Elsewhere{}
	for _, a := range r.others() {
		if r.isAway(a) {
			continue
		}
		asking.Go(func() {
			answer, err := r.askNodes(ctx, a, namespace)
			if err != nil {
				return
			}
			r.note(a, answer)
			if answer.Replica == r.cfg.Local.ID() {
				return
			}
			mu.Lock()
			defer mu.Unlock()
			for _, n := range answer.Nodes {
				holdings, _ := answer.holdings(n) // askNodes has looked
				one := hub.Elsewhere{Holdings: holdings, Skip: n.Skip}
				if before, twice := all[n.Node]; !twice || better(one, before) {
					all[n.Node] = one
				}
			}
		})
	}
	asking.Wait()
	return all
}

// better reports which of two replicas is to be believed about a node: one that the node answers, then one that knows of more. One
// that has not heard the node for a while may know of nothing.
func better(a, b hub.Elsewhere) bool {
	if (a.Skip == "") != (b.Skip == "") {
		return a.Skip == ""
	}
	return len(a.Holdings) > len(b.Holdings)
}

// lookAtAll asks all replicas, and takes note of those that do not answer.
func (r *Replicas) lookAtAll(caller context.Context) {
	ctx, cancel := context.WithTimeout(caller, lookLimit)
	defer cancel()
	var asking sync.WaitGroup
	for _, a := range r.others() {
		asking.Go(func() {
			answer, err := r.askNodes(ctx, a, hub.AnyNamespace)
			switch {
			case err == nil:
				r.note(a, answer)
			case caller.Err() == nil:
				r.noteFailure(a, err)
			}
		})
	}
	asking.Wait()
}

// askNodes asks a replica which nodes it has.
func (r *Replicas) askNodes(ctx context.Context, a netip.AddrPort, namespace string) (*nodesAnswer, error) {
	target := "https://" + a.String() + nodesPath + "?namespace=" + url.QueryEscape(namespace)
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, target, nil)
	if err != nil {
		return nil, err
	}
	response, err := r.transport.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("it answered %s", response.Status)
	}
	answer := &nodesAnswer{}
	if err := json.NewDecoder(io.LimitReader(response.Body, mostNodes)).Decode(answer); err != nil {
		return nil, fmt.Errorf("its answer cannot be read: %w", err)
	}
	if answer.Replica == "" {
		return nil, errors.New("its answer does not say which replica it is")
	}
	for _, n := range answer.Nodes {
		if _, err := answer.holdings(n); err != nil {
			return nil, fmt.Errorf("its answer cannot be read: %w", err)
		}
	}
	return answer, nil
}
