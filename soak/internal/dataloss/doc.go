// Package dataloss has no code but tests: each plays something by which a driver
// was once seen to delete what it should not, on a real socket, with real mounts
// and files. The daemon may lose nothing by it.
//
// What the archived driver loses data by is played on a fake driver with the same
// bug, too, and there the data has to be lost: a test that cannot see a loss proves
// nothing.
//
// That something is not deleted shows when a volume expires that was retained
// later: deadlines come in the order of unpublishing.
package dataloss
