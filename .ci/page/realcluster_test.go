package page

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// TestRealCluster visits a retained volume of a real cluster: it is found by its pod, a file is opened, read
// by its lines, and downloaded, and the volume is deleted. PAGE_NAMESPACE, PAGE_POD, PAGE_FILE and PAGE_TEXT say
// which namespace, pod and file, and what stands in the file; with PAGE_KEEP the volume is not deleted.
func TestRealCluster(t *testing.T) {
	kubeconfig := os.Getenv(kubeconfigVariable)
	if kubeconfig == "" {
		t.Skip(kubeconfigVariable + " names no kubeconfig of a real cluster")
	}
	namespace, pod, file, text := os.Getenv("PAGE_NAMESPACE"), os.Getenv("PAGE_POD"), os.Getenv("PAGE_FILE"), os.Getenv("PAGE_TEXT")
	p := startPlugin(t, kubeconfig, "--namespace", namespace)
	v := newVisitor(t)
	v.do(chromedp.EmulateViewport(1280, 800))
	p.enter(v)
	v.sees(pod)
	shots := os.Getenv("PAGE_SHOTS")
	shoot := func(name string) {
		if shots != "" {
			must(t, os.MkdirAll(shots, 0o755))
			v.settle()
			v.shoot(filepath.Join(shots, name+".png"))
		}
	}
	shoot("cluster-list")
	v.click(pod)
	v.sees(strings.Split(file, "/")[0])
	shoot("cluster-volume")
	ask[bool](v, `(location.hash = location.hash.split("?")[0] + "/" + `+quote(file)+`, true)`)
	v.sees(text)
	shoot("cluster-text")
	v.click("Download")
	if _, content := v.downloaded(0); !contains(string(content), text) {
		t.Errorf("the download of %s has no %q", file, text)
	}
	if os.Getenv("PAGE_KEEP") == "" {
		ask[bool](v, `(location.hash = location.hash.split("/").slice(0, 3).join("/"), true)`)
		v.click("Delete…")
		v.confirm()
		v.wait("the list is shown, without the volume",
			`location.hash.split("?")[0].split("/").length === 2 && document.querySelector("main h1") &&
			!document.querySelector("main").innerText.includes(`+quote(pod)+`)`)
	}
	v.wantQuiet(p.host, p.raw)
}
