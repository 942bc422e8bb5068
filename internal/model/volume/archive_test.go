package volume

import (
	"testing"
	"time"
)

// TestSealOfTheSameWord: a gateway may put its seal to what was said before, and to nothing else.
func TestSealOfTheSameWord(t *testing.T) {
	is := Owner{Verdict: Confirmed, NamespaceUID: "ns", Kind: "Job", Name: "a"}
	sealed, other := is, is
	sealed.Seal, other.Seal, other.Name = "seal", "seal", "b"
	for _, tt := range []struct{ is, said, want Owner }{
		{is, sealed, sealed}, {is, other, is}, {sealed, is, sealed}, {sealed, other, sealed}, {Owner{}, sealed, sealed},
		{is, Owner{Verdict: Denied}, is}, {sealed, Owner{}, sealed},
	} {
		if got := tt.is.Learn(tt.said); got != tt.want {
			t.Errorf("%+v learns %+v: %+v, want %+v", tt.is, tt.said, got, tt.want)
		}
	}
}

// TestInArchive: until when is kept in whole hours, no later than it is, and a new publish begins without.
func TestInArchive(t *testing.T) {
	until := time.Date(2026, 12, 30, 16, 59, 59, 1, time.UTC)
	r := Record{ID: "v", Owner: Owner{Verdict: Confirmed, NamespaceUID: "ns", Seal: "seal"}, Phase: Retained}.InArchive(until)
	if want := time.Date(2026, 12, 30, 16, 0, 0, 0, time.UTC); !r.ArchivedUntil.Equal(want) || r.Owner.Seal != "" || !r.Archived() {
		t.Errorf("%+v, want %v and no seal", r, want)
	}
	if r = r.Publish(Publication{}, until); r.Archived() {
		t.Error("a volume that is published again is still archived")
	}
}

// TestLogsWaitForTheEnd: the archive takes the logs of a pod once it had time to be said how that has ended.
func TestLogsWaitForTheEnd(t *testing.T) {
	r := Record{ID: KubeletID("pod", "scratch"), Pod: "pod", VolumeName: "scratch", Outcome: Failed}
	if got := r.ArchiveAfter(); got != 0 {
		t.Errorf("a volume waits for %s", got)
	}
	logs := LogsOf(r)
	if got := logs.ArchiveAfter(); got != endWait {
		t.Errorf("the logs wait for %s", got)
	}
	if logs.Outcome = OutcomeUnknown; logs.ArchiveAfter() != outcomeWait {
		t.Errorf("without an outcome they wait for %s", logs.ArchiveAfter())
	}
}
