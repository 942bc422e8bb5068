// Package reader plays the people who look at what pods left behind: it lists
// retained volumes, reads and removes them through the driver's admin socket,
// while the churn goes on, and compares what it gets with what the pods wrote.
//
// One reader in three is slow: it begins to read a long file and stops, until the
// volume is gone or published again. The others read as fast as they get it.
//
// What is wrong with the bytes it reports itself. Whether a list is right, and
// whether a request may fail, the checker says: it knows what has to be retained.
package reader
