// Package actors is where Katbox acts. The front, [Node], hides the actor
// library from the rest of the program; behind it are
//
//   - the supervisor, which routes each request to its volume's actor, starts
//     and restarts those, and has them try again what the kernel refused;
//   - one volume actor for each volume that is mounted or changing, which
//     carries out one operation at a time;
//   - the retention actor, which holds the records of the volumes that sleep
//     and has them deleted when their time is over;
//   - the eraser, which frees the space of deleted volumes, behind everything
//     else;
//   - the surveyor, which measures how much space the retained volumes take;
//   - the pressure actor, which measures the file system;
//   - the recorder, which makes records durable, many with one sync.
//
// Three rules hold everywhere. Receive never blocks: an operation runs in a
// goroutine of its own and sends its outcome back as a message. So whoever sends
// something to the supervisor or to a volume actor may as well run its Receive
// (atonce.go). Expected errors are values; only a broken invariant panics, and
// then the caller gets an answer before the actor is restarted. What an operation
// in flight needs lives outside of the actor's instance, because a restart does
// not undo a system call that is under way. Only volume actors are restarted: when
// one of the others fails, the daemon ends, and its next start recovers all.
package actors
