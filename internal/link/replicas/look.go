package replicas

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
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

// mostTold is how many nodes a replica may say that it has: names of one letter would fill memory.
const mostTold = 200_000

// mostHoldings is how many holdings of a namespace are told of a node. One that says it has more, of namespaces of that name that
// are long gone, is asked itself: what it says must not make the answer long.
const mostHoldings = 16

// errOlder: the replica is of a version that does not answer others.
var errOlder = errors.New("it is of an older version")

// nodesAnswer is what a replica says of its nodes. There may be 10,000: as objects they took three times as long.
type nodesAnswer struct {
	Replica string `json:"replica"`
	// Names are those of the nodes, with a space between two. A node's place is that of its name.
	Names string `json:"names"`
	// Skips has the place of each node that is skipped, and why.
	Skips map[int]string `json:"skips,omitempty"`
	// Tenants are those of whose volumes nodes have some, and Held are four varints for each holding: the place of the node, that of
	// the tenant, how many volumes, and when the newest was retained, in nanoseconds since 1970, 0 if that is not known.
	Tenants []tenant `json:"tenants,omitempty"`
	Held    []byte   `json:"held,omitempty"`
}

type tenant struct {
	Namespace string `json:"namespace"`
	UID       string `json:"uid,omitempty"`
	Verdict   string `json:"verdict,omitempty"`
}

// nodes answers another replica.
func (r *Replicas) nodes(w http.ResponseWriter, request *http.Request) {
	namespace := request.URL.Query().Get("namespace")
	answer := nodesAnswer{Replica: r.cfg.Local.ID(), Skips: map[int]string{}}
	all := r.cfg.Local.Each(namespace)
	names := make([]string, len(all))
	places := map[tenant]int{}
	for i, n := range all {
		names[i] = n.Conn.Node()
		if n.Skip != "" {
			answer.Skips[i] = n.Skip
		}
		holdings := n.Holdings
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
			for _, number := range []int64{int64(i), int64(place), int64(h.Volumes), hub.Nanoseconds(h.Newest)} {
				answer.Held = binary.AppendVarint(answer.Held, number)
			}
		}
	}
	answer.Names = strings.Join(names, " ")
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(answer) // the other replica has left
}

// said are the nodes of an answer, with what they hold.
func (a *nodesAnswer) said() (map[string]hub.Elsewhere, error) {
	if strings.Count(a.Names, " ") >= mostTold {
		return nil, fmt.Errorf("it has more than %d nodes", mostTold)
	}
	names := strings.Fields(a.Names)
	holdings := make([][]api.Holding, len(names))
	for held := a.Held; len(held) > 0; {
		var numbers [4]int64
		for i := range numbers {
			number, n := binary.Varint(held)
			if n <= 0 {
				return nil, errors.New("it ends within a holding")
			}
			numbers[i], held = number, held[n:]
		}
		node, of := numbers[0], numbers[1]
		switch {
		case node < 0 || node >= int64(len(names)) || of < 0 || of >= int64(len(a.Tenants)):
			return nil, fmt.Errorf("there is no node %d, or no tenant %d", node, of)
		case len(holdings[node]) == mostHoldings, numbers[2] < 0, numbers[2] > math.MaxInt32:
			return nil, fmt.Errorf("a node has more than %d holdings, or %d volumes", mostHoldings, numbers[2])
		}
		t := a.Tenants[of]
		h := api.Holding{Namespace: t.Namespace, NamespaceUID: t.UID, Verdict: t.Verdict, Volumes: int(numbers[2])}
		if numbers[3] != 0 {
			h.Newest = time.Unix(0, numbers[3])
		}
		holdings[node] = append(holdings[node], h)
	}
	all := make(map[string]hub.Elsewhere, len(names))
	for i, name := range names {
		all[name] = hub.Elsewhere{Holdings: holdings[i], Skip: a.Skips[i]}
	}
	return all, nil
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
			id, nodes, err := r.askNodes(ctx, a, namespace)
			if err != nil {
				return
			}
			r.note(a, id, nodes)
			if id == r.cfg.Local.ID() {
				return
			}
			mu.Lock()
			defer mu.Unlock()
			for node, one := range nodes {
				if before, twice := all[node]; twice {
					one.Holdings = hub.Union(before.Holdings, one.Holdings)
					if before.Skip == "" {
						one.Skip = "" // it answers that replica
					}
				}
				all[node] = one
			}
		})
	}
	asking.Wait()
	return all
}

// lookAtAll asks all replicas, and takes note of those that do not answer.
func (r *Replicas) lookAtAll(caller context.Context) {
	ctx, cancel := context.WithTimeout(caller, lookLimit)
	defer cancel()
	var asking sync.WaitGroup
	for _, a := range r.others() {
		asking.Go(func() {
			id, nodes, err := r.askNodes(ctx, a, hub.AnyNamespace)
			switch {
			case err == nil:
				r.note(a, id, nodes)
			case caller.Err() == nil:
				r.noteFailure(a, err)
			}
		})
	}
	asking.Wait()
}

// askNodes asks a replica which one it is, and which nodes it has.
func (r *Replicas) askNodes(ctx context.Context, a netip.AddrPort, namespace string) (string, map[string]hub.Elsewhere, error) {
	target := "https://" + a.String() + nodesPath + "?namespace=" + url.QueryEscape(namespace)
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, target, nil)
	if err != nil {
		return "", nil, err
	}
	response, err := r.transport.RoundTrip(request)
	if err != nil {
		return "", nil, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return "", nil, fmt.Errorf("it answered %s", response.Status)
	}
	return readNodes(response.Body)
}

// readNodes reads what a replica has answered.
func readNodes(body io.Reader) (id string, nodes map[string]hub.Elsewhere, err error) {
	answer := &nodesAnswer{}
	err = json.NewDecoder(io.LimitReader(body, mostNodes)).Decode(answer)
	if err == nil {
		nodes, err = answer.said()
	}
	switch {
	case err != nil:
		return "", nil, fmt.Errorf("its answer cannot be read: %w", err)
	case answer.Replica == "":
		return "", nil, errors.New("its answer does not say which replica it is")
	}
	return answer.Replica, nodes, nil
}
