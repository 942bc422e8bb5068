// Package classes is the one actor that knows all PoolClasses and how their pools are. It chooses the pool of each new volume and keeps
// room there; it decides which retained volumes go, and when ([retention], without I/O); and it writes the status of the classes.
package classes
