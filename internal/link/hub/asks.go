package hub

import (
	"context"
	"slices"

	"github.com/katbox/katbox/internal/lib/logkeys"
	"github.com/katbox/katbox/internal/model/api"
)

const (
	// mostAsks bounds the questions of a connection that wait. The node repeats what is not answered.
	mostAsks = 1000
	// asksAtOnce is how many questions are answered together.
	asksAtOnce = 50
	// mostField bounds each name and UID in a question.
	mostField = 256
)

// ask queues questions. A goroutine answers them and ends with the last one.
func (c *connection) ask(asks []api.OwnerAsk) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, a := range asks {
		if len(c.asks) == mostAsks {
			break
		}
		if len(a.ID) <= mostField && len(a.Namespace) <= mostField && len(a.Pod) <= mostField && len(a.PodUID) <= mostField {
			c.asks = append(c.asks, a)
		}
	}
	if len(c.asks) > 0 && !c.asking {
		c.asking = true
		go c.answerAll()
	}
}

func (c *connection) answerAll() {
	for {
		c.mu.Lock()
		batch := slices.Clone(c.asks[:min(len(c.asks), asksAtOnce)])
		c.asks = c.asks[len(batch):]
		if len(batch) == 0 || c.ctx.Err() != nil {
			c.asks, c.asking = nil, false
			c.mu.Unlock()
			return
		}
		c.mu.Unlock()
		if err := c.answer(batch); err != nil {
			c.registry.Log.V(1).Info("a node did not take the owners of its volumes; it will ask again",
				logkeys.Node, c.name, logkeys.Cause, err.Error())
		}
	}
}

// answer answers questions, as far as the answers are known in time.
func (c *connection) answer(asks []api.OwnerAsk) error {
	ctx, cancel := context.WithTimeout(c.ctx, c.registry.limits.answer)
	defer cancel()
	answers := c.registry.Owners.Ask(ctx, c.name, asks)
	if len(answers) == 0 {
		return nil
	}
	return inParts(answers, func(items []api.OwnerAnswer) error {
		// The API server may have taken all the time.
		ctx, cancel := context.WithTimeout(c.ctx, c.registry.limits.answer)
		defer cancel()
		return c.post(ctx, api.OwnersPath, api.OwnerAnswers{Items: items})
	})
}
