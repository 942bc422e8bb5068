//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// testChart: the chart in place of the overlay, with the resources, volumes and definitions that there are. While
// claims are made and deleted the controller is replaced by one of another image, and back.
func (p *poolsCluster) testChart() {
	one := claim{name: "one", access: "ReadWriteMany"}
	p.apply(one.String(), podWith("one", one))
	volume := p.bound("one")
	p.kubectl("wait", "--for=condition=Ready", "--timeout=120s", "pod/one")
	p.uninstall()

	name, tag, _ := strings.Cut(p.image, ":")
	next := tag + "-next"
	p.tagImage(name+"-controller:"+tag, name+"-controller:"+next)
	p.helm("install", tag, "--create-namespace", "--take-ownership")
	p.feed(accessKey, "apply", "--server-side", "-f", "-")
	p.controllerReady()
	p.wantPool("Ready")
	p.wantKept("the chart is installed", volume)

	crowd := newCrowd(p)
	crowd.during("make", 200, crowd.make, func() {
		p.helm("upgrade", next)
		p.helm("upgrade", tag)
	})
	p.wantOneEach(201)
	crowd.during("remove", 200, crowd.remove, func() { p.helm("upgrade", next) })
	p.wantOneEach(1)
	p.wantKept("the chart is upgraded", volume)

	p.removed(func() { p.runHelm("", "uninstall", "katbox", "--wait", "--timeout", patience.String()) })
	p.kubectl("delete", "namespace", namespace, "--wait=true", "--timeout=180s")
	p.wantKept("the chart is uninstalled", volume)
	p.wantRecords()
	p.reinstall()
	p.wantPool("Ready")
	p.kubectl("delete", "pod", "one", "--wait=true")
	p.kubectl("delete", "pvc", "one", "--wait=true", "--timeout=120s")
}

// helm installs or upgrades the chart with an image of the controller, and waits until all is ready.
func (p *poolsCluster) helm(verb, tag string, more ...string) {
	p.t.Helper()
	name, own, _ := strings.Cut(p.image, ":")
	values := fmt.Sprintf(`
kubeletDir: %q
workdir: {hostPath: %q}
image: {repository: %[3]q, tag: %[4]q}
headroom: 0.01
kubeletLine: 1%%,1%%
pools:
  enabled: true
  image: {repository: "%[3]s-controller", tag: %[5]q}
  probeInterval: 2s
  syncInterval: 5s
  logLevel: debug
  sidecars:
    provisioner: {image: "localhost/realkubelet/csi-provisioner:1"}
    attacher: {image: "localhost/realkubelet/csi-attacher:1"}
    resizer: {image: "localhost/realkubelet/csi-resizer:1"}
    snapshotter: {image: "localhost/realkubelet/csi-snapshotter:1"}
`, p.kubeletDir(), p.workdir(), name, own, tag)
	args := []string{verb, "katbox", filepath.Join("..", "helm", "katbox"), "--values", "-", "--post-renderer", "./without-nodes-part",
		"--wait", "--timeout", patience.String()}
	p.runHelm(values, append(args, more...)...)
}

// runHelm runs helm, which has to succeed.
func (p *poolsCluster) runHelm(values string, args ...string) {
	p.t.Helper()
	if _, err := p.try(values, p.bin("helm"), append(args, "--namespace", namespace)...); err != nil {
		p.t.Fatalf("%v\n%s", err, p.kubectl("-n", namespace, "describe", "pods"))
	}
}

// tagImage gives an image on the node another name.
func (p *poolsCluster) tagImage(from, to string) {
	p.t.Helper()
	if _, err := p.try("", filepath.Join(p.state, "deb/usr/bin/ctr"), "--address", filepath.Join(p.state, "containerd/containerd.sock"),
		"--namespace", "k8s.io", "images", "tag", "--force", from, to); err != nil {
		p.t.Fatal(err)
	}
}

// during does something for each claim while something else happens.
func (c *crowd) during(what string, claims int, do func(context.Context, int) error, meanwhile func()) {
	c.p.t.Helper()
	ctx, cancel := context.WithTimeout(c.p.t.Context(), crowdLongest)
	defer cancel()
	began, ended := time.Now(), make(chan error, 1)
	go func() { ended <- c.each(ctx, claims, do) }()
	time.Sleep(5 * time.Second) // some claims are under way
	meanwhile()
	met := time.Since(began)
	if err := <-ended; err != nil {
		c.p.t.Fatal(err)
	}
	c.p.t.Logf("%s: %d claims in %s, the controller was replaced within the first %s", what, claims,
		time.Since(began).Round(time.Second), met.Round(time.Second))
}

// wantOneEach fails unless each PersistentVolume has one volume on the array, and there are no others.
func (p *poolsCluster) wantOneEach(want int) {
	p.t.Helper()
	p.eventually("each PersistentVolume has one volume on the array", func() error {
		var there []string
		for _, v := range p.onArray("volumes") {
			there = append(there, fmt.Sprint(v["display_name"]))
		}
		volumes := strings.Fields(p.kubectl("get", "pv", "-o", "jsonpath={.items[*].metadata.name}"))
		records := strings.Fields(p.kubectl("get", "poolvolumes", "-o", "jsonpath={.items[*].metadata.name}"))
		slices.Sort(there)
		slices.Sort(volumes)
		slices.Sort(records)
		if len(there) != want || !slices.Equal(there, volumes) || !slices.Equal(records, volumes) {
			return fmt.Errorf("%d volumes on the array, %d PoolVolumes, %d PersistentVolumes, want %d", len(there), len(records), len(volumes), want)
		}
		return nil
	})
}
