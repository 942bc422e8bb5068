// Package actors is the kit that every kind of volumes stands on. It hides the actor library's
// surprises and knows no kind itself; see [Kind].
//
//   - [Supervisor] routes each request to its volume's actor, starts, ends and restarts those, and
//     resumes the ones that are stuck.
//   - The recorder makes records durable, many with one sync. What may be answered before that, an
//     operation writes to the journal by itself ([Recorder]). A kind whose records are elsewhere
//     does without.
//   - [Subjects] are actors that change one thing each, such as a volume: one operation at a time, whose
//     outcome the same requests share, and which goes on when its callers have lost patience. What
//     they do is [Changing].
//   - [Workers] carry operations out.
//
// Three rules hold everywhere. Receive never blocks: an operation runs in a goroutine of its own
// and sends its outcome back as a message, so a sender may run Receive itself ([AtOnce]). Expected
// errors are values; only a broken invariant panics, and then the caller gets an answer before the
// actor is restarted. A restart does not undo a system call that is under way, so it keeps the
// instance of the actor, with the operation in flight. Only volume actors are restarted: when one of
// the single actors fails, the daemon ends, and its next start recovers all.
package actors
