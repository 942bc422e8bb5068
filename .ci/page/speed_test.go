package page

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/performance"
	"github.com/chromedp/cdproto/systeminfo"
	"github.com/chromedp/chromedp"

	"github.com/katbox/katbox/internal/model/volume"
)

const (
	// manyVolumes are in the namespace, and manyFiles in one directory.
	manyVolumes = 10_000
	manyFiles   = 100_000
	// mostWeight bounds what the page itself has, in bytes, and mostMemory the memory of its process.
	mostWeight = 200_000
	mostMemory = 150 << 20
	rounds     = 5
)

// watchRows notes when rows are on the screen: at the frame after the one in which they were made.
const watchRows = `(() => {
	window.shownAt = new Map();
	const look = () => {
		const key = location.hash;
		if (!shownAt.has(key) && document.querySelector("[role=grid] [data-index] a")?.checkVisibility() &&
			!document.querySelector(".loading [role=grid][hidden]"))
			requestAnimationFrame(() => shownAt.has(key) || shownAt.set(key, performance.now()));
		requestAnimationFrame(look);
	};
	requestAnimationFrame(look);
})();`

// TestSpeed measures 10,000 volumes in a list and 100,000 files in a directory, several times. Memory and
// weight have limits; times are printed.
func TestSpeed(t *testing.T) {
	var name string
	fill := map[string]func(*node){}
	for i := range 3 {
		fill[fmt.Sprintf("n%d", i+1)] = func(n *node) {
			if i == 0 {
				var path string
				name, path = n.put(func(d *volume.Description) {
					d.Record.PodName, d.Record.Unpublished = "wide-29000000-x7k2p", hoursAgo(0.1)
				})
				wide := filepath.Join(path, "wide")
				must(t, os.Mkdir(wide, 0o755))
				for f := range manyFiles {
					must(t, os.WriteFile(filepath.Join(wide, fmt.Sprintf("part-%06d.out", f)), nil, 0o644))
				}
			}
			for j := range manyVolumes / 3 {
				n.put(func(d *volume.Description) {
					d.Record.PodName = fmt.Sprintf("load-%08d-%05d", 29_000_000+j/10, i*manyVolumes/3+j)
					owned(d, "Job", fmt.Sprintf("load-%08d", 29_000_000+j/10))
					aged(d, 0.2+float64(j)/400, 12, int64(j)*1000, 10)
				})
			}
		}
	}
	s := newSite(t, fill)
	t.Logf("load: %s", load(t))
	var first, all, directory, complete []float64
	var heap, anonymous, nodes float64
	var weight struct{ sent, plain float64 }
	for round := range rounds {
		p := startPlugin(t, s.kubeconfig("token-of-alice", ""))
		v, renderer := newBrowser(t)
		_, err := chromedp.Call(v.ctx, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: watchRows})
		must(t, err)
		blank := renderer()
		must(t, v.visit(p.first))
		v.wait("the list is on the screen", `location.hash.startsWith("#/ci") && shownAt?.get(location.hash) || shownAt?.get("")`)
		first = append(first, ask[float64](v, `Math.min(...shownAt.values())`))
		v.wait("all volumes are loaded", `document.querySelector("[role=grid]").getAttribute("aria-rowcount") >= `+fmt.Sprint(manyVolumes))
		all = append(all, ask[float64](v, "performance.now()"))
		heap, anonymous, nodes = max(heap, metric(v, "JSHeapUsedSize")), max(anonymous, float64(renderer())), max(nodes, metric(v, "Nodes"))

		hash := "#/ci/" + name + "/wide"
		began := ask[float64](v, "((at) => { location.hash = "+quote(hash)+"; return at; })(performance.now())")
		v.wait("the directory is on the screen", "shownAt.get("+quote(hash)+")")
		directory = append(directory, ask[float64](v, "shownAt.get("+quote(hash)+")")-began)
		v.wait("all files are loaded", `document.querySelector("[role=grid]").getAttribute("aria-rowcount") >= `+fmt.Sprint(manyFiles))
		complete = append(complete, ask[float64](v, "performance.now()")-began)
		ask[bool](v, `(document.querySelector("[role=grid]").scrollTo(0, 1e9), new Promise((done) => setTimeout(() => done(true), 100)))`)
		heap, anonymous, nodes = max(heap, metric(v, "JSHeapUsedSize")), max(anonymous, float64(renderer())), max(nodes, metric(v, "Nodes"))
		if round == 0 {
			weight.sent, weight.plain = pageWeight(v)
			t.Logf("requests of the first round:\n%s", requestTimes(v))
			t.Logf("an empty window takes %.1f MiB", float64(blank)/(1<<20))
		}
		v.close()
		p.stop()
	}
	t.Logf("load: %s", load(t))
	for _, figures := range []struct {
		what   string
		values []float64
	}{
		{"first list on the screen, from the first URL", first}, {fmt.Sprintf("all %d volumes loaded", manyVolumes), all},
		{fmt.Sprintf("directory of %d files on the screen", manyFiles), directory}, {"all its names loaded", complete},
	} {
		slices.Sort(figures.values)
		least, median, most := figures.values[0], figures.values[rounds/2], figures.values[rounds-1]
		t.Logf("%-50s %5.0f ms (%.0f to %.0f in %d rounds)", figures.what, median, least, most, rounds)
	}
	t.Logf("heap of scripts %.1f MiB, process %.1f MiB anonymous, %.0f nodes of the document", heap/(1<<20), anonymous/(1<<20), nodes)
	t.Logf("the page has %.1f KB, of which %.1f KB were sent", weight.plain/1000, weight.sent/1000)
	if anonymous > mostMemory {
		t.Errorf("the page's process takes %.1f MiB, more than %d", anonymous/(1<<20), mostMemory>>20)
	}
	if weight.plain > mostWeight || weight.plain == 0 {
		t.Errorf("the page has %.0f bytes, more than %d", weight.plain, mostWeight)
	}
}

// newBrowser starts a browser for one window alone, so that a process is the window's own. renderer returns
// the anonymous memory of that process in bytes.
func newBrowser(t testing.TB) (v *visitor, renderer func() int64) {
	t.Helper()
	options, err := chromeOptions()
	must(t, err)
	allocator, end := chromedp.NewExecAllocator(context.Background(), options...)
	t.Cleanup(end)
	v = window(t, t.TempDir())
	v.open(allocator)
	return v, func() (largest int64) {
		processes, err := chromedp.CallBrowser(v.ctx, systeminfo.GetProcessInfo, cdp.Empty{})
		must(t, err)
		for _, process := range processes.ProcessInfo {
			if process.Type == "renderer" {
				largest = max(largest, anonymousOf(t, process.ID))
			}
		}
		return largest
	}
}

// anonymousOf returns the memory of a process that is no file's.
func anonymousOf(t testing.TB, pid int64) (bytes int64) {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0 // it has ended
	}
	for line := range strings.Lines(string(status)) {
		if _, err := fmt.Sscanf(line, "RssAnon: %d kB", &bytes); err == nil {
			return bytes << 10
		}
	}
	return 0
}

// metric returns a figure of the page, after a collection of garbage.
func metric(v *visitor, name string) float64 {
	v.t.Helper()
	_, err := chromedp.Call(v.ctx, performance.Enable, performance.EnableParams{})
	must(v.t, err)
	ask[bool](v, "(gc(), true)")
	found, err := chromedp.Call(v.ctx, performance.GetMetrics, cdp.Empty{})
	must(v.t, err)
	for _, m := range found.Metrics {
		if m.Name == name {
			return m.Value
		}
	}
	v.t.Fatalf("the browser does not measure %s", name)
	return 0
}

// pageWeight returns how many bytes the page itself has: its document, scripts, styles and pictures. sent is
// what went over the connection.
func pageWeight(v *visitor) (sent, plain float64) {
	v.t.Helper()
	for _, r := range v.asked() {
		if !contains(r.url, "/apis/") && !contains(r.url, "/session") {
			sent += r.bytes
		}
	}
	plain = ask[float64](v, `[...performance.getEntriesByType("navigation"), ...performance.getEntriesByType("resource")]
		.filter((e) => !/\/(apis|session|tickets)/.test(e.name)).reduce((sum, e) => sum + e.decodedBodySize, 0)`)
	return sent, plain
}

// requestTimes says where the time went, as the browser saw it.
func requestTimes(v *visitor) string {
	return ask[string](v, `(() => {
		const ms = (time) => time.toFixed(0).padStart(5);
		const entries = [...performance.getEntriesByType("navigation"), ...performance.getEntriesByType("resource")];
		return entries.map((e) => ms(e.startTime) + " ms, waited" + ms(e.responseStart - e.requestStart) + ", read" +
			ms(e.responseEnd - e.responseStart) + ", " + e.decodedBodySize + " bytes " +
			e.name.replace(location.origin, "").replace(/#.*/, "").slice(0, 110)).join("\n");
	})()`)
}

// load is what the machine does beside.
func load(t testing.TB) string {
	t.Helper()
	text, err := os.ReadFile("/proc/loadavg")
	must(t, err)
	return strings.TrimSpace(string(text)) + " at " + time.Now().UTC().Format(time.TimeOnly)
}
