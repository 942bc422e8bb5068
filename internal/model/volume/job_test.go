package volume

import "testing"

func TestGuessJob(t *testing.T) {
	for pod, want := range map[string]string{
		"nightly-29000000-x7k2p": "nightly-29000000", "train-3-abcde": "train-3", "once-12345": "once", "a.b-x7k2p": "a.b",
		"web-6f7c9d8b5-x7k2p": "", "db-0": "", "nginx": "", "": "", "-x7k2p": "", "job-x7k2": "", "job-x7k2pp": "",
	} {
		if got := GuessJob(pod); got != want {
			t.Errorf("guess from %q: %q, want %q", pod, got, want)
		}
	}
}

func TestOfJob(t *testing.T) {
	for _, tt := range []struct {
		pod   string
		owner Owner
		job   string
		want  bool
	}{
		{"nightly-29000000-x7k2p", Owner{}, "nightly-29000000", true},
		{"nightly-29000000-x7k2p", Owner{}, "nightly", true},
		{"nightly-29000000-x7k2p", Owner{}, "nightly-2900000", false},
		{"nightly-29000000-x7k2p", Owner{}, "night", false},
		{"nightly-29000000-x7k2p", Owner{}, "", false},
		{"nightly", Owner{}, "nightly", false},
		{"nightly-2-9-x7k2p", Owner{}, "nightly", false},
		{"nightly-2-9-x7k2p", Owner{}, "nightly-2", true},
		{"nightly-29000000-x7k2p", Owner{Verdict: Denied}, "nightly-29000000", false},
		{"nightly-29000000-x7k2p", Owner{Verdict: Confirmed}, "nightly-29000000", false},
		{"byhand", Owner{Verdict: Confirmed, Job: "nightly"}, "nightly", true},
		{"nightly-x7k2p", Owner{Verdict: Confirmed, Job: "nightly-1"}, "nightly", false},
	} {
		if got := (Record{PodName: tt.pod, Owner: tt.owner}).OfJob(tt.job); got != tt.want {
			t.Errorf("pod %q of %+v is of job %q: %v", tt.pod, tt.owner, tt.job, got)
		}
	}
}
