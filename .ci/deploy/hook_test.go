package deploy

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/pod-security-admission/api"
)

// TestHookTriesAVolume of the release, in a pod that needs no rights. "helm test --logs" can read its log.
func TestHookTriesAVolume(t *testing.T) {
	objects := helm(t, "--set", "driverName=scratch.example.com,imageRegistry=mirror.example.com,tests.image.pullPolicy=Always")
	pod := one[*corev1.Pod](t, objects)
	for key, want := range map[string]string{"helm.sh/hook": "test", "helm.sh/hook-delete-policy": "before-hook-creation"} {
		if got := pod.Annotations[key]; got != want {
			t.Errorf("%s is %q, want %q", key, got, want)
		}
	}
	if refused := evaluate(t, api.LevelRestricted, &pod.ObjectMeta, &pod.Spec); refused != "" {
		t.Error(refused)
	}
	container, volume := pod.Spec.Containers[0], pod.Spec.Volumes[0].CSI
	if volume.Driver != "scratch.example.com" || volume.VolumeAttributes["retain"] != "Never" ||
		container.Image != "mirror.example.com/library/busybox:1.37" || container.ImagePullPolicy != corev1.PullAlways {
		t.Errorf("it has the volume %+v and the image %s", volume, container.Image)
	}
	set := one[*appsv1.DaemonSet](t, objects)
	if labels.SelectorFromSet(set.Spec.Selector.MatchLabels).Matches(labels.Set(pod.Labels)) {
		t.Errorf("the DaemonSet selects the pod %v", pod.Labels)
	}
	for _, s := range one[*corev1.Pod](t, helm(t, "--api-versions", "security.openshift.io/v1")).Spec.Containers {
		if s.SecurityContext.RunAsUser != nil {
			t.Error("on OpenShift it chooses its user")
		}
	}
}

// TestHookIsWhereDaemonsAre: a pod for each set of nodes, or one on any node with a daemon.
func TestHookIsWhereDaemonsAre(t *testing.T) {
	node := func(text string) *corev1.Node {
		set, err := labels.ConvertSelectorToLabelsMap(text + ",kubernetes.io/os=linux")
		if err != nil {
			t.Fatal(err)
		}
		return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node", Labels: set}}
	}
	pods := all[*corev1.Pod](t, withNodeSets(t))
	for text, want := range map[string]string{
		"tier=batch,kubernetes.io/arch=amd64,disk=nvme":       "katbox-test-nvme",
		"tier=batch,kubernetes.io/arch=s390x,disk=nvme":       "",
		"tier=batch,kubernetes.io/arch=amd64,disk=hdd,zone=a": "katbox-test-zone-a",
		"tier=web,kubernetes.io/arch=s390x,disk=hdd,zone=b":   "katbox-test-other",
	} {
		var runs []string
		for _, pod := range pods {
			matches, err := nodeaffinity.GetRequiredNodeAffinity(pod).Match(node(text))
			if err != nil {
				t.Fatal(err)
			}
			if matches {
				runs = append(runs, pod.Name)
			}
		}
		if got := strings.Join(runs, " and "); got != want {
			t.Errorf("on a node with %s run %q, want %q", text, got, want)
		}
	}
	if len(pods) != 3 {
		t.Errorf("there are %d pods, want one for each set", len(pods))
	}
}

// TestHookFindsWhatIsWrong runs the script of the pod: with a directory that is mounted, with one that is not, and
// with one that takes no files.
func TestHookFindsWhatIsWrong(t *testing.T) {
	container := one[*corev1.Pod](t, helm(t)).Spec.Containers[0]
	script := container.Command[len(container.Command)-1]
	for name, test := range map[string]struct {
		mounted, full bool
		want          string
	}{
		"good":        {true, false, "was written and read"},
		"not mounted": {false, false, "nothing mounted"},
		"full":        {true, true, "takes no file"},
	} {
		dir := t.TempDir()
		mounts := filepath.Join(dir, "mounts")
		line := "/dev/sda1 / ext4 rw 0 0\n"
		if test.mounted {
			line += "/dev/sda1 " + dir + "/scratch ext4 rw 0 0\n"
		}
		writeFile(t, mounts, line)
		if err := os.Mkdir(filepath.Join(dir, "scratch"), 0o700); err != nil {
			t.Fatal(err)
		}
		if test.full { // to root no directory is read-only
			if err := os.Symlink("/dev/full", filepath.Join(dir, "scratch/file")); err != nil {
				t.Fatal(err)
			}
		}
		paths := strings.NewReplacer("/scratch", dir+"/scratch", "/proc/mounts", mounts)
		args := append(slices.Clone(container.Command[1:len(container.Command)-1]), paths.Replace(script))
		cmd := exec.Command(container.Command[0], args...)
		out, err := cmd.CombinedOutput()
		if (err == nil) != (name == "good") || !strings.Contains(string(out), test.want) {
			t.Errorf("%s: %v: %s", name, err, out)
		}
	}
}
