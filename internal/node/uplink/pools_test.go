package uplink

import (
	"bufio"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	poolwire "github.com/katbox/katbox/internal/link/wire"
	"github.com/katbox/katbox/internal/model/api"
	"github.com/katbox/katbox/internal/model/local"
	"github.com/katbox/katbox/internal/testing/fakepools"
	"github.com/katbox/katbox/internal/testing/metricstest"
	"github.com/katbox/katbox/internal/testing/uplinktest"
)

const poolUUID = "0f8a4a52-1111-4222-8333-444444444444"

// TestController: a controller is told of the node's pools, asks about them, and reaches nothing else.
func TestController(t *testing.T) {
	ca := uplinktest.NewAuthority(t)
	behave, nodes := good(t, ca.Leaf(t, gatewayName))
	g := startGateway(t, "127.0.0.1:0", behave)
	s := newScene(t, ca)
	n := &fakepools.Node{}
	n.Add(fakepools.NewDisk(local.Pool{UUID: poolUUID, Class: "fast"}))
	s.cfg.Pools, s.cfg.Controller = n, gatewayName+":"+g.port()
	s.cfg.Volumes, s.cfg.Handler = nil, nil
	s.pace.quiet = 20 * time.Millisecond
	u := s.startIt()
	taken := next(t, "node", nodes)
	if got := taken.Request.Host; got != s.cfg.Controller {
		t.Errorf("the node asks %s", got)
	}
	// good reads a summary as a gateway does; a newer question replaces that.
	response, err := taken.Ask(http.MethodGet, api.SummaryPath, nil)
	must(t, err)
	defer response.Body.Close()
	lines := bufio.NewScanner(response.Body)
	line := func() (told poolwire.Summary) {
		t.Helper()
		if !lines.Scan() {
			t.Fatal(lines.Err())
		}
		must(t, json.Unmarshal(lines.Bytes(), &told))
		return told
	}
	if got := line(); !got.Full || len(got.Pools) != 1 || got.Pools[0].UUID != poolUUID {
		t.Errorf("the first line is %+v", got)
	}
	n.Change(poolUUID, func(p *local.Pool) { p.Free-- })
	if got := line(); got.Full || got.Pools != nil || got.Time.IsZero() {
		t.Errorf("how full the disk is, is news: %+v, want a sign of life", got)
	}
	n.Fail(fakepools.Method(errors.New("the disk hangs"), "Pools"))
	if got := line(); got.Full {
		t.Errorf("while the pools are not known: %+v, want a sign of life", got)
	}
	n.Fail(nil)
	n.Change(poolUUID, func(p *local.Pool) { p.Failed = "gone" })
	for got := line(); !got.Full; got = line() {
		if got.Pools != nil {
			t.Errorf("a sign of life is %+v", got)
		}
	}

	c := poolwire.NewClient("n1", taken.Client)
	if all, err := c.Pools(t.Context()); err != nil || len(all) != 1 || all[0].Failed != "gone" {
		t.Errorf("%+v, %v", all, err)
	}
	for _, path := range []string{
		"/v1/volumes", "/v1/volumes/csi-1", api.GonePath, api.GrepPath, api.OwnersPath, api.OutcomesPath, "/v1/usage", "/v1/poolsx", "/",
	} {
		if got := taken.wantAnswer(t, 404, http.MethodGet, path, ""); !strings.Contains(got, "nothing for a controller") {
			t.Errorf("%s: %s", path, got)
		}
	}
	taken.wantAnswer(t, 405, http.MethodPost, api.SummaryPath, "{}")
	metricstest.Of(t, s.cfg.Metrics).Want(t, "connected", metricstest.Values{
		"katbox_controller_connected": 1, `katbox_controller_connects_total{outcome="connected"}`: 1,
		"katbox_gateway_connected": 0, `katbox_gateway_connects_total{outcome="connected"}`: 0, "katbox_gateway_asked_total": 0,
	})
	if s.logged("connected to the controller") != 1 || s.logged("the gateway") != 0 {
		t.Errorf("the log is\n%s", s.logText())
	}
	must(t, u.Stop(t.Context()))
}

// TestGatewayReachesNoPools: their routes are not there.
func TestGatewayReachesNoPools(t *testing.T) {
	ca := uplinktest.NewAuthority(t)
	behave, nodes := good(t, ca.Leaf(t, gatewayName))
	g := startGateway(t, "127.0.0.1:0", behave)
	s := newScene(t, ca)
	n := &fakepools.Node{}
	s.cfg.Pools = n
	s.start(g.port())
	taken := next(t, "node", nodes)
	for _, path := range []string{poolwire.Path, poolwire.Path + "/" + poolUUID + "/volumes?limit=1"} {
		taken.wantAnswer(t, 404, http.MethodGet, path, "")
	}
	taken.wantAnswer(t, 404, http.MethodDelete, poolwire.Path+"/"+poolUUID+"/volumes/pvc-1", "")
	if n.Called("Pools")+n.Called("DeleteVolume")+n.Called("Volumes") > 0 {
		t.Error("a gateway reaches the pools")
	}
}

// TestControllerAdvice: what is wrong is said in the words of the controller's flags.
func TestControllerAdvice(t *testing.T) {
	p := controllers(&fakepools.Node{})
	_, err := p.readToken("/nonexistent/token")
	_, err2 := p.readCA("/nonexistent/ca.crt")
	for _, want := range []string{
		"audience katbox-controller", "--controller-token", "katbox-controller-ca", "--controller-ca", "the token for the controller",
	} {
		if !strings.Contains(errors.Join(err, err2).Error(), want) {
			t.Errorf("%v; %v: they do not say %q", err, err2, want)
		}
	}
}
