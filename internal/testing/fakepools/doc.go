// Package fakepools has a node with pools in memory: [Node] keeps the promises of [local.Pools], and does wrong what a
// test wants it to. It is for tests only.
package fakepools
