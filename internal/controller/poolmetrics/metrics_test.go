package poolmetrics_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/katbox/katbox/internal/controller/poolmetrics"
	"github.com/katbox/katbox/internal/model/pools"
	"github.com/katbox/katbox/internal/model/v1alpha1"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/testing/metricstest"
)

// names are all metrics of the controller. Dashboards and alerts use them, so none may change by
// mistake.
var names = []string{
	"katbox_pools_actor_restarts_total counter",
	"katbox_pools_array_call_duration_seconds histogram",
	"katbox_pools_build_info gauge",
	"katbox_pools_csi_operation_duration_seconds histogram",
	"katbox_pools_csi_operations_in_flight gauge",
	"katbox_pools_leader gauge",
	"katbox_pools_log_lines_dropped_total counter",
	"katbox_pools_operation_duration_seconds histogram",
	"katbox_pools_parked gauge",
	"katbox_pools_pool_capacity_bytes gauge",
	"katbox_pools_pool_capacity_mode gauge",
	"katbox_pools_pool_objects gauge",
	"katbox_pools_pool_state gauge",
	"katbox_pools_retained_ended_total counter",
	"katbox_pools_unclaimed_volumes gauge",
	"katbox_pools_watch_up gauge",
}

func pool(name string, state v1alpha1.PoolState) *v1alpha1.Pool {
	return &v1alpha1.Pool{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: v1alpha1.PoolStatus{State: state,
		Capacity: v1alpha1.Capacity{Mode: "alert",
			Total: resource.MustParse("100Gi"), Available: resource.MustParse("40Gi"), Provisioned: resource.MustParse("200Gi"),
			Retained: resource.MustParse("20Gi")},
		Counters: v1alpha1.PoolCounters{Volumes: 3, Retained: 1, External: 2, Snapshots: 1, Attachments: 4}}}
}

// everything makes one event of each kind happen.
func everything(m *poolmetrics.Metrics) {
	m.Leads(false)
	m.Leads(true)
	m.Watched("PoolVolume", true)
	m.Watched("Pool", false)
	m.Pool(pool("a", v1alpha1.PoolReady))
	m.Pool(pool("a", v1alpha1.PoolUnreachable))
	m.Pool(pool("b", v1alpha1.PoolReady))
	m.Pool(pool("new", ""))
	m.PoolGone("b")
	for _, err := range []error{nil, volume.ErrUncertain, errors.Join(volume.ErrNotFound, volume.ErrUncertain), volume.ErrBusy,
		volume.ErrUnavailable, context.Canceled, volume.ErrNoSpace, volume.ErrNotFound, pools.ErrInUse, errors.New("odd")} {
		m.OperationEnded("create", time.Second, err)
	}
	m.RetainedEnded("Evicted")
	m.Unclaimed(3)
	m.Unclaimed(2)
	m.Called("POST", "volumes", "ok", 2*time.Second)
	m.ActorRestarted()
	m.VolumeParked()
	m.VolumeParked()
	m.VolumeUnparked()
	create := m.Method("CreateVolume")
	create.CallBegan()
	create.CallBegan()
	create.CallEnded("Aborted", time.Second)
	m.LogLineDropped()
}

func TestEverythingIsCountedUnderItsName(t *testing.T) {
	m := poolmetrics.New("v1.2.3", "0123abc")
	const unclaimed = "katbox_pools_unclaimed_volumes"
	if n, looked := metricstest.Of(t, m)[unclaimed]; looked {
		t.Errorf("%s is %v before anything was looked for", unclaimed, n)
	}
	everything(m)
	operation := func(outcome string) string {
		return `katbox_pools_operation_duration_seconds_count{operation="create",outcome="` + outcome + `"}`
	}
	got := metricstest.Of(t, m)
	got.Want(t, "after everything", metricstest.Values{
		`katbox_pools_leader`:                                         1,
		`katbox_pools_watch_up{kind="PoolVolume"}`:                    1,
		`katbox_pools_watch_up{kind="Pool"}`:                          0,
		`katbox_pools_pool_state{pool="a",state="Unreachable"}`:       1,
		`katbox_pools_pool_capacity_bytes{of="total",pool="a"}`:       100 << 30,
		`katbox_pools_pool_capacity_bytes{of="available",pool="a"}`:   40 << 30,
		`katbox_pools_pool_capacity_bytes{of="provisioned",pool="a"}`: 200 << 30,
		`katbox_pools_pool_objects{of="volumes",pool="a"}`:            3,
		`katbox_pools_pool_objects{of="external",pool="a"}`:           2,
		`katbox_pools_pool_objects{of="retained",pool="a"}`:           1,
		`katbox_pools_pool_capacity_bytes{of="retained",pool="a"}`:    20 << 30,
		`katbox_pools_retained_ended_total{reason="Evicted"}`:         1,
		`katbox_pools_retained_ended_total{reason="Expired"}`:         0,
		unclaimed: 2,
		`katbox_pools_pool_objects{of="snapshots",pool="a"}`:   1,
		`katbox_pools_pool_objects{of="attachments",pool="a"}`: 4,
		operation("ok"): 1, operation("uncertain"): 2, operation("busy"): 1, operation("unavailable"): 2, operation("no_room"): 1,
		operation("refused"): 2, operation("failed"): 1,
		`katbox_pools_array_call_duration_seconds_sum{method="POST",outcome="ok",path="volumes"}`: 2,
		`katbox_pools_actor_restarts_total`: 1,
		`katbox_pools_parked`:               1,
		`katbox_pools_csi_operation_duration_seconds_count{code="Aborted",method="CreateVolume"}`: 1,
		`katbox_pools_csi_operations_in_flight`:                                                   1,
		`katbox_pools_log_lines_dropped_total`:                                                    1,
	})
	for name := range got {
		if strings.Contains(name, `pool="b"`) || strings.Contains(name, `pool="a",state="Ready"`) || strings.Contains(name, `state=""`) {
			t.Errorf("%s is still there", name)
		}
	}
}

// TestNames: there are no others.
func TestNames(t *testing.T) {
	m := poolmetrics.New("v1.2.3", "0123abc")
	everything(m)
	metricstest.WantNames(t, m, names)
}

func TestReferenceNamesEveryMetric(t *testing.T) { metricstest.WantExplained(t, "../../..", names) }
