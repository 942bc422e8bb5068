// Package pool is the actor of one Pool. It asks the array, or the node, how the pool is (probe); configures it; compares what is
// there with the resources, and imports what they lack (comparison); and writes the status of the Pool, which no one else does.
package pool
