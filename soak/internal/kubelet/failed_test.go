package kubelet

import (
	"os"
	"path/filepath"
	"testing"

	"google.golang.org/grpc/codes"

	"github.com/katbox/katbox/soak/internal/history"
)

func TestFailedPublishOfAPodThatEnds(t *testing.T) {
	for _, row := range []struct {
		code codes.Code
		does bool // the driver mounts it all the same
		want []string
		how  Outcome
	}{
		{codes.Internal, false, []string{"publish p-data"}, NeverMounted},
		{codes.InvalidArgument, false, []string{"publish p-data"}, NeverMounted},
		{codes.Aborted, false, []string{"publish p-data", "unpublish p-data"}, Unpublished},
		{codes.Unavailable, false, []string{"publish p-data", "unpublish p-data"}, Unpublished},
		{codes.ResourceExhausted, true, []string{"publish p-data", "unpublish p-data"}, Unpublished},
	} {
		t.Run(row.code.String(), func(t *testing.T) {
			r := newRig(t, nil)
			r.driver.next("publish", "p-data", fault{code: row.code, does: row.does})
			// It ends before the kubelet can try again.
			r.onCall = func(v *Volume, c history.Call) {
				if c.Method == history.Publish {
					r.api.Finish(v.Pod)
				}
			}
			r.start()
			r.create("p", inline("data"))
			r.await("pod p gone", 1)
			r.equal(row.want...)
			r.await("volume p-data "+row.how.String(), 1)
			r.empty()
		})
	}
}

func TestFailedPublishIsRepeated(t *testing.T) {
	for _, code := range []codes.Code{codes.Internal, codes.Unavailable} {
		r := newRig(t, nil)
		r.driver.next("publish", "p-data", fault{code: code}, fault{code: code}, fault{code: code})
		r.start()
		r.create("p", inline("data"))
		r.await("pod p mounted", 1)
		r.equal("publish p-data", "publish p-data", "publish p-data", "publish p-data")
	}
}

func TestFinalErrorWithAMountIsFoundByTheNextKubelet(t *testing.T) {
	r := newRig(t, nil)
	r.driver.next("publish", "p-data", fault{code: codes.Internal, does: true})
	r.onCall = func(v *Volume, c history.Call) {
		if c.Method == history.Publish {
			r.api.Finish(v.Pod)
		}
	}
	r.start()
	r.create("p", inline("data"))
	r.await("volume p-data never mounted", 1)
	r.kubelet.Crash()
	r.equal("publish p-data")
	r.start()
	r.await("pod p gone", 1)
	r.equal("publish p-data", "unpublish p-data")
	r.empty()
}

func TestEarlyFinish(t *testing.T) {
	r := newRig(t, nil)
	p := r.create("p", inline("data"))
	r.api.Finish(p)
	r.start()
	r.await("pod p gone", 1)
	r.heardAll("volume p-data never mounted", "pod p gone")
	r.equal()
}

func TestUnpublishIsRepeated(t *testing.T) {
	r := newRig(t, nil)
	r.driver.next("unpublish", "p-data", fault{code: codes.Internal}, fault{code: codes.Aborted})
	r.start()
	p := r.create("p", inline("data"))
	r.await("pod p mounted", 1)
	r.api.Finish(p)
	r.await("pod p gone", 1)
	r.equal("publish p-data", "unpublish p-data", "unpublish p-data", "unpublish p-data")
	r.empty()
}

func TestStillMounted(t *testing.T) {
	r := newRig(t, nil)
	stays := make(chan struct{})
	r.mounted = func(path string) (bool, error) {
		if _, err := os.Lstat(path); err != nil {
			return false, err
		}
		return !closed(stays), nil
	}
	r.start()
	p := r.create("p", inline("data"))
	r.await("pod p mounted", 1)
	r.api.Finish(p)
	r.await("volume p-data "+StillMounted.String(), 1)
	if _, err := os.Lstat(filepath.Dir(p.Volumes[0].Story.Target)); err != nil {
		t.Errorf("the directory of a mounted volume is gone: %v", err)
	}
	close(stays)
	r.await("pod p gone", 1)
	// The real one does not unpublish it again either.
	r.equal("publish p-data", "unpublish p-data")
	r.empty()
}

func TestUnknownFilesAreKept(t *testing.T) {
	r := newRig(t, nil)
	r.start()
	p := r.create("p", inline("data"))
	r.await("pod p mounted", 1)
	odd := filepath.Join(p.Volumes[0].Story.Target, "odd")
	if err := os.WriteFile(odd, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	r.api.Finish(p)
	// It cannot be removed, which to the kubelet is a failed unmount.
	r.awaitCall("unpublish p-data", 3)
	if _, err := os.Lstat(odd); err != nil {
		t.Errorf("a file that the kubelet does not know is gone: %v", err)
	}
	if err := os.Remove(odd); err != nil {
		t.Fatal(err)
	}
	r.await("pod p gone", 1)
	r.empty()
}

func TestFailedQuestionChangesNothing(t *testing.T) {
	for _, answers := range [][]fault{
		{{}, {}, {code: codes.Internal}},
		{{}, {}, {}, {code: codes.Internal}},
	} {
		r := newRig(t, nil)
		// After the first try it may be mounted, and the second does not get far
		// enough to change that.
		r.driver.next("publish", "p-data", fault{code: codes.Aborted})
		r.driver.next("capabilities", "", answers...)
		r.onCall = func(v *Volume, c history.Call) {
			if c.Method == history.GetCapabilities && c.Err != nil {
				r.api.Finish(v.Pod)
			}
		}
		r.start()
		r.create("p", inline("data"))
		r.await("pod p gone", 1)
		r.equal("publish p-data", "unpublish p-data")
	}
}
