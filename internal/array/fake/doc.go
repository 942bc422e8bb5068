// Package fake is an array as a Zadara VPSA is one, for tests: its REST API, without the data. It is
// made from what is public of that API, so that internal/array/vpsa and its users can be tried without
// an array, and against faults that a real one shows rarely.
//
// [Start] starts an array that listens on 127.0.0.1; [New] makes one that is an http.Handler, and
// [Array.Transport] is a way to it without a network. The program fakearray starts any number of them.
// The state is in memory, or in one JSON file that is replaced with each change.
//
// # What it keeps to
//
//   - Bodies are JSON or forms, with any method; volume_name[] is volume_name. Lists take start and
//     limit; limit 0 is all.
//   - Errors are answers with HTTP 200 and a status that is not 0: 5 for a wrong token, 10081 for a
//     volume that is missing, 10086 for a server that is missing or not attached. All other numbers of an
//     array are not public: here they are 10000, and a client must not need more.
//   - Display names are unique among volumes and among server records, and among the snapshots of a
//     volume. A deleted volume in the recycle bin does not keep its name.
//   - Sizes are whole GB, which means GiB. Expanding adds. A clone is as large as its source.
//   - A volume is not deleted while a server is attached or snapshots exist, whatever force says; nor a
//     server record to which volumes are attached.
//   - Attaching twice is no error and changes nothing. A block volume gets the lowest LUN that is free
//     for that server. All servers of one request are attached or detached, or none.
//   - What is available in a pool falls by what its volumes use, what is provisioned rises by their
//     sizes; the recycle bin counts for a week. A pool in protected or emergency mode takes nothing new.
//   - A volume whose status is neither Available nor In-use is not expanded, deleted, cloned, nor
//     snapshotted.
package fake
