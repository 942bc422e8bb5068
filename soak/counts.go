package main

import (
	"maps"
	"sync"

	"github.com/katbox/katbox/soak/internal/workload"
)

// counts counts the faults of volumes that were done. The zero value is ready.
type counts struct {
	mu     sync.Mutex
	number map[workload.FaultKind]int
}

func (c *counts) add(kind workload.FaultKind) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.number == nil {
		c.number = make(map[workload.FaultKind]int)
	}
	c.number[kind]++
}

func (c *counts) all() map[workload.FaultKind]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.number)
}
