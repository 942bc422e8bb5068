// Package fakevpsa is an array as a Zadara VPSA is one, for tests: its REST API, without the data. It is
// made from what is public of that API, so that internal/controller/vpsa and its users can be tried without
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
//     volume or a snapshot that is missing, 10086 for a server that is missing or not attached. All other
//     numbers of an array are not public: here they are 10000, and a client must not need more.
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
//
// # Data
//
// With a data plane (Options.Plane, package dataplane) the volumes have real data: what changes the state,
// a request or an order below, is done to the data before the answer. Attached is exported, expanded is
// larger, detached is cut off. An error of the data plane is the answer 10000; what failed is tried again
// with the next change. The addresses of the portals are the machine's then: only the active controller's
// answers, unless bothPortals is set.
//
// # Faults, and what others do to the array
//
// Each can be ordered by a method, and by HTTP without a token, with JSON bodies. An error is an answer
// with HTTP 400 and {"error": "..."}.
//
//	by HTTP                         by method            what it does
//	POST   /fake/faults             Fail                 adds a fault; the body is a Fault, the answer has its id
//	GET    /fake/faults             Faults               shows them, and how many requests have met each
//	DELETE /fake/faults[/ID]        Heal                 removes all, or one
//	POST   /fake/settle             Settle               does what was submitted
//	GET    /fake/counts             Counts               how often each call came
//	DELETE /fake/counts             ResetCounts          counts from 0 again, and forgets the changes
//	GET    /fake/changes[?call=C]   Changes              what requests changed, in order
//	GET    /fake/attachments        Attachments          where volumes are attached
//	GET    /fake/state                                   the whole state
//	GET    /fake/settings           Settings             what the array is, and how it answers
//	PATCH  /fake/settings           Change               another token, version, active controller, spelling of numbers
//	POST   /fake/switch             SwitchController     makes the other controller the active one, with its portal
//	POST   /fake/away               Leave                answers no more; {"how"} is network (silence) or down
//	POST   /fake/back               Return               answers again
//	POST   /fake/ca                 RenewCA              another CA, which no client trusts
//	POST   /fake/seed               Seed                 adds volumes; {"prefix", "count", "size", "block"}
//	POST   /fake/volumes            AddVolume            adds a volume of another client
//	POST   /fake/servers            AddServer            adds a server record
//	POST   /fake/snapshots          AddSnapshot          adds a snapshot; {"volume", "name"}
//	POST   /fake/pools              AddPool              adds a pool; {"capacity"}
//	PATCH  /fake/volumes/ID         ChangeVolume         changes a volume, as what is allocated
//	PATCH  /fake/pools/ID           ChangePool           changes a pool, as its mode
//	POST   /fake/status             SetStatus            volume or snapshot; {"id", "status", "requests"}
//	DELETE /fake/volumes/ID         Remove               makes a volume vanish, with its snapshots and attachments
//	DELETE /fake/snapshots/ID       Remove               makes a snapshot vanish
//	DELETE /fake/servers/ID         Remove               makes a server record vanish, with its attachments
//
// A fault says which requests meet it (method, path, skip, times), and its kind:
//
//	kind          what a client sees                                     fields
//	delay         the array begins later                                 delay
//	delay-after   the change is made, the answer comes later             delay
//	lose-request  the connection breaks, nothing was done
//	lose-answer   the connection breaks, what was asked was done
//	hang          no answer, nothing was done
//	hang-after    no answer, what was asked was done
//	cut           the answer ends in its middle, what was asked was done bytes
//	http          an HTTP error, nothing was done                        status, text
//	html          a page of HTML, nothing was done                       status, text
//	refuse        an error of the array, nothing was done                status, text
//	submit        "The request has been submitted", done later           delay or requests
//
// For example, the second volume is made, and its answer gets lost:
//
//	{"kind": "lose-answer", "method": "POST", "path": "/api/volumes.json", "skip": 1, "times": 1}
package fakevpsa
