package main

import (
	"context"
	"fmt"
	"time"

	"github.com/katbox/katbox/soak/internal/history"
	"github.com/katbox/katbox/soak/internal/misuse"
	"github.com/katbox/katbox/soak/internal/workload"
	"github.com/katbox/katbox/soak/testbed"
)

// badCallLimit is how long a bad call may take: there is nothing to do for it.
const badCallLimit = 10 * time.Second

// sendBadCalls makes a pod's calls with bad input, and judges what comes of them.
func (l *life) sendBadCalls(ctx context.Context) {
	for _, pick := range l.planned.Bad {
		if err := l.churn.sendBadCall(ctx, pick); err != nil {
			l.environment.findings.Add(history.Completed, nil, "call with bad input: "+err.Error())
		}
	}
}

func (c *churn) sendBadCall(ctx context.Context, pick workload.BadCall) error {
	conn, err := testbed.Dial(c.environment.layout.Socket)
	if err != nil {
		return err
	}
	defer conn.Close()
	limited, cancel := context.WithTimeout(ctx, badCallLimit)
	defer cancel()
	answer := misuse.Send(limited, conn, uint64(pick), c.site)
	if ctx.Err() != nil {
		return nil
	}
	c.environment.report.Called(answer.Call)
	if answer.Unanswered() && c.environment.timeline.During(answer.Call.From, answer.Call.To, workload.DaemonKill) {
		return nil
	}
	if answer.Objection != "" {
		c.environment.checker.BadAnswer(answer.Objection)
	}
	if err := c.site.Traces(); err != nil {
		c.environment.checker.BadAnswer(fmt.Sprintf("after %s: %v", answer.What, err))
	}
	return nil
}
