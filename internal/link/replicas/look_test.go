package replicas

import (
	"bytes"
	"encoding/binary"
	"strings"
	"testing"
	"time"

	"github.com/katbox/katbox/internal/link/hub"
)

// TestAnswerThatIsWrong: what another replica says is checked before it is used.
func TestAnswerThatIsWrong(t *testing.T) {
	held := func(numbers ...int64) (all []byte) {
		for _, n := range numbers {
			all = binary.AppendVarint(all, n)
		}
		return all
	}
	good := nodesAnswer{
		Names: "n1 n2", Tenants: []tenant{{Namespace: "ci", UID: "u"}}, Held: held(1, 0, 3, 7, 1, 0, 2, 0),
		Skips: map[int]string{0: hub.NotAnswering, 9: "?"},
	}
	nodes, err := good.said()
	if err != nil || len(nodes) != 2 || nodes["n1"].Skip != hub.NotAnswering || len(nodes["n1"].Holdings) != 0 ||
		len(nodes["n2"].Holdings) != 2 || !nodes["n2"].Holdings[0].Newest.Equal(time.Unix(0, 7)) || !nodes["n2"].Holdings[1].Newest.IsZero() {
		t.Errorf("%+v, %v", nodes, err)
	}
	for part, change := range map[string]func(*nodesAnswer){
		"it ends within a holding":     func(a *nodesAnswer) { a.Held = held(1, 0, 3) },
		"there is no node 2,":          func(a *nodesAnswer) { a.Held = held(2, 0, 3, 7) },
		"there is no node -1,":         func(a *nodesAnswer) { a.Held = held(-1, 0, 3, 7) },
		"or no tenant 1":               func(a *nodesAnswer) { a.Held = held(1, 1, 3, 7) },
		"more than 16 holdings":        func(a *nodesAnswer) { a.Held = bytes.Repeat(held(1, 0, 3, 7), mostHoldings+1) },
		"or -1 volumes":                func(a *nodesAnswer) { a.Held = held(1, 0, -1, 7) },
		"it has more than 200000 node": func(a *nodesAnswer) { a.Names = strings.Repeat("n ", mostTold) },
	} {
		a := good
		change(&a)
		if _, err := a.said(); err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%v, want %q", err, part)
		}
	}
}
