// Poolscale measures the controller of the pools with many arrays: 20 with 10,000 volumes each, all of
// which are Katbox's. It starts the real controller beside them, as after a restart, and looks how long
// it takes until all pools are Ready, how much memory it has then, what the health checks cost, and how
// fast volumes are made and deleted through CSI. It ends with an error when a bound is broken.
//
// The arrays are fake ones, in a process of their own. The API server is in this process: it keeps
// objects as a real one does, but makes up the PoolVolumes of the arrays while they are listed, because
// nothing changes them.
//
//   - main.go and options.go are the command line.
//   - story.go is what happens, in order, and what has to come out; claims.go its last part.
//   - api.go is the API server; arrays.go starts the arrays, controller.go the controller.
package main
