// Package report tells how a run of the soak goes and how it went: live on the
// terminal, then in tables and stories, and on request in a page with charts
// and in a file for machines. A [Run] collects numbers while the soak works;
// [Run.End] turns them into a [Result], and everything that is told afterwards
// is told from that alone.
//
// It promises that its numbers are exact: no call is left out of a count or a
// quantile. Only what is drawn and listed is cut short, and says so.
//
// It judges nothing and looks at nothing itself: who knows something hands it
// in, as a [Counters] field or as one of the [Sources].
package report
