// Package wallclock starts programs under a wall clock that can be stepped at
// will, forwards and backwards, while they run. Neither the machine's clock nor
// the program's monotonic clock is touched, so its timers and the durations it
// measures stay right: the program sees what it would see if somebody had set
// the machine's clock.
//
// It works by two means. A seccomp filter sends the program's questions for the
// time here, where they are answered ([Clock.Start]). And as nobody asks the
// kernel for the time as long as there is the vDSO, which answers inside the
// program, the program is kept from finding it.
//
// It promises:
//
//   - The program's process is the one that cmd.Process stands for, a child of
//     this one, and it is not traced any more when Start returns.
//   - This process keeps the machine's clock.
//   - Nothing is left over when the program has ended and was waited for: no
//     descriptor, no goroutine, no thread. A failed Start leaves no process.
//
// It needs Linux 5.9, CAP_SYS_ADMIN in its user namespace (root of an
// unprivileged one will do), and a program for 64 bits. That the program is
// written in Go is not necessary.
//
// What it does not do:
//
//   - The time stamps of files are the kernel's, so they show the machine's
//     time, and a timer set for an absolute time of the wall clock follows the
//     machine's clock. Go's timers are not of that kind.
//   - A program that the program executes finds the vDSO, and with it the
//     machine's time. It works otherwise. A mere fork stays under the clock.
//   - The answers come from here: when this process ends first, the program's
//     questions fail, and Go takes no notice of that. Set Pdeathsig.
//
// An answer takes two context switches, some microseconds instead of some
// nanoseconds. It costs both processes CPU time.
package wallclock
