// Package controller runs csi-sanity's specs for the Identity and Controller services against the
// controller of the pools, in this process: the real services, actors and client of an array, with an API
// server in memory and an array that is not real. It has nothing but tests. It is not in the package above
// because csi-sanity can run once in a process.
package controller
