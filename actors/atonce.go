package actors

import "github.com/asynkron/protoactor-go/actor"

// atOnce has an actor take a message in the goroutine that sends it, unless
// another one is at it and takes this message as well. To have a goroutine of its
// own started, and often a thread woken for that, costs more than what these
// actors do with a message. It is for those whose senders can wait that long: to
// send is no call, nobody holds a lock meanwhile, and Receive never blocks.
var atOnce = actor.WithDispatcher(actor.NewSynchronizedDispatcher(throughput))

// throughput is after how many messages in a row the goroutine lets others run.
const throughput = 300
