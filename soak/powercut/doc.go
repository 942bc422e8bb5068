// Powercut proves what a power cut leaves behind. It has two halves, for a
// machine that loses everything unsynced between them.
//
// "powercut run" starts the daemon and plays the kubelet of pods that come, write
// and go. After each step that the daemon or the file system acknowledged it
// prints a line, an ack: from now on that is durable. The daemon answers a first publish and
// an unpublish before their records are on the disk; their acks come once its metric
// katbox_records_durable_seconds says that they are. Before each step that ends
// an earlier promise it prints a line too, as the cut may come between the step
// and its ack. It goes on until the power is cut.
//
// "powercut check" is called after the next boot with those lines. It starts the
// daemon on the same disk, plays the kubelet on from where the lines end, and
// judges what it sees until everything has expired: a published volume has its
// data for as long as its pod is there, a retained one goes at its original
// deadline, and nothing comes back or is kept for ever.
//
// There are two daemons, each with directories of its own on the disk. One has a
// lifespan so short that volumes expire while the power is cut, the other one so
// long that deadlines lie behind the boot. After the boot both have another one,
// so that a volume whose lifespan was forgotten is found out. One that was published
// before keeps what it was promised then, if that was durable.
//
// Some retained volumes are attached by another pod, which the kubelet publishes again after the boot: until that pod
// has gone they stay, also where their deadline came while the machine was off. Some pods are said to have succeeded,
// which shortens how long their volume is kept, and then to have failed, which gives that back. What was attached or has
// such a pod is let go by a person in the end.
//
// One of the daemons also has local pools, of images and of directories with project
// quotas, whose volumes and snapshots are made, used, copied, enlarged, retained and
// deleted meanwhile. Afterwards every one that was made is there, with its size and
// with what was synced, and a pod can write as much as was promised, and no more. What
// was deleted is gone, and in the end the pools are empty.
//
// All times are the machine's wall clock, which tells the daemon how long the
// machine was off. So it does not matter that a clock which was read from the
// hardware is up to a second slow: daemon and check go by the same one, and the
// acks are older than the boot by more than that.
//
// When all volumes are over, each that had a durable record has to have a tombstone,
// and no life of one has two.
//
// What is promised of a volume is judged by package story, which is told the acks and
// all that is seen after the boot.
package main
