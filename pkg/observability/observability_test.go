package observability

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta/testrestmapper"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	configv1alpha1 "github.com/berth-dev/berth/pkg/api/config/v1alpha1"
)

func TestGauges(t *testing.T) {
	registry := prometheus.NewPedanticRegistry()
	m, err := NewMetrics(registry)
	if err != nil {
		t.Fatal(err)
	}
	m.SetWaiting(map[string]int{"NoFreeSlice": 3, "HostsBusy": 1})
	m.SetWaiting(map[string]int{"NoFreeSlice": 2})
	m.SetReservations(map[string]int{"Planned": 1, "Reserved": 4})
	m.ObservePass(3 * time.Millisecond)
	m.SetFolds(map[string]int{"gone": 3, "tpus": 4}, map[string]int{"NotReady": 3})
	m.SetFolds(map[string]int{"tpus": 16}, map[string]int{"Following": 2, "FoldContested": 1})
	m.QuotaWritten("Cohort")
	m.QuotaWritten("ClusterQueue")
	m.QuotaWritten("Cohort")
	want := `
# HELP berth_fold_quota_writes_total Quotas that were written for CapacityFolds, by the kind of their target.
# TYPE berth_fold_quota_writes_total counter
berth_fold_quota_writes_total{kind="ClusterQueue"} 1
berth_fold_quota_writes_total{kind="Cohort"} 2
# HELP berth_fold_shares The number that a CapacityFold's targets divide among them.
# TYPE berth_fold_shares gauge
berth_fold_shares{fold="tpus"} 16
# HELP berth_fold_targets Targets of CapacityFolds by state: all but Following do not hold the number that they should.
# TYPE berth_fold_targets gauge
berth_fold_targets{state="FoldContested"} 1
berth_fold_targets{state="Following"} 2
# HELP berth_gangs_waiting Gangs that wait for devices, by the reason that their Workload shows.
# TYPE berth_gangs_waiting gauge
berth_gangs_waiting{reason="NoFreeSlice"} 2
# HELP berth_reservations GangReservations by phase.
# TYPE berth_reservations gauge
berth_reservations{phase="Planned"} 1
berth_reservations{phase="Reserved"} 4
`
	if err := testutil.GatherAndCompare(registry, strings.NewReader(want),
		"berth_gangs_waiting", "berth_reservations", "berth_fold_shares", "berth_fold_targets", "berth_fold_quota_writes_total"); err != nil {
		t.Error(err)
	}
	if n := testutil.CollectAndCount(m.passes); n != 1 {
		t.Errorf("%d histograms", n)
	}
	if _, err := NewMetrics(registry); err == nil {
		t.Error("a second set was registered")
	}
}

func TestWritesAreCounted(t *testing.T) {
	registry := prometheus.NewPedanticRegistry()
	m, err := NewMetrics(registry)
	if err != nil {
		t.Fatal(err)
	}
	var answer error
	inner := fake.NewClientBuilder().WithRESTMapper(testrestmapper.TestOnlyStaticRESTMapper(scheme.Scheme)).
		WithStatusSubresource(&resourcev1.ResourceClaim{}).WithInterceptorFuncs(interceptor.Funcs{
		Update: func(context.Context, client.WithWatch, client.Object, ...client.UpdateOption) error { return answer },
	}).Build()
	c := m.CountWrites(inner)
	ctx := t.Context()

	claim := &resourcev1.ResourceClaim{}
	claim.Namespace, claim.Name = "ns", "c"
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	check(c.Create(ctx, claim))
	check(c.Get(ctx, client.ObjectKeyFromObject(claim), claim))
	check(c.Status().Update(ctx, claim))
	check(c.Patch(ctx, claim, client.RawPatch("application/merge-patch+json", []byte(`{}`))))
	check(c.Status().Patch(ctx, claim, client.RawPatch("application/merge-patch+json", []byte(`{}`))))
	check(c.Apply(ctx, corev1ac.ConfigMap("m", "ns"), client.FieldOwner("test")))
	claims := schema.GroupResource{Group: "resource.k8s.io", Resource: "resourceclaims"}
	for _, answer = range []error{
		apierrors.NewConflict(claims, "c", errors.New("changed")),
		apierrors.NewConflict(claims, "c", errors.New("changed")),
		errors.New("connection lost"),
		&apierrors.StatusError{ErrStatus: metav1.Status{Code: 400, Reason: "SomethingOfAPlugin"}},
	} {
		if err := c.Update(ctx, claim); !errors.Is(err, answer) {
			t.Errorf("got %v", err)
		}
	}
	check(c.Delete(ctx, claim))
	check(c.DeleteAllOf(ctx, &corev1.Pod{}, client.InNamespace("ns")))

	want := `
# HELP berth_api_writes_total Writes sent to the API server by verb, resource (with subresource) and result: OK, the reason of the refusal, Unanswered, or Other for a reason that only some plug-in has.
# TYPE berth_api_writes_total counter
berth_api_writes_total{resource="configmaps",result="OK",verb="apply"} 1
berth_api_writes_total{resource="pods",result="OK",verb="deletecollection"} 1
berth_api_writes_total{resource="resourceclaims",result="Conflict",verb="update"} 2
berth_api_writes_total{resource="resourceclaims",result="OK",verb="create"} 1
berth_api_writes_total{resource="resourceclaims",result="OK",verb="delete"} 1
berth_api_writes_total{resource="resourceclaims",result="OK",verb="patch"} 1
berth_api_writes_total{resource="resourceclaims",result="Other",verb="update"} 1
berth_api_writes_total{resource="resourceclaims",result="Unanswered",verb="update"} 1
berth_api_writes_total{resource="resourceclaims/status",result="OK",verb="patch"} 1
berth_api_writes_total{resource="resourceclaims/status",result="OK",verb="update"} 1
`
	if err := testutil.GatherAndCompare(registry, strings.NewReader(want), "berth_api_writes_total"); err != nil {
		t.Error(err)
	}
}

func TestLevels(t *testing.T) {
	for level, want := range map[string]string{
		"error": "error",
		"info":  "error info",
		"debug": "error info debug",
		"1":     "error info debug",
		"4":     "error info debug v4",
		"10":    "error info debug v4 v10",
	} {
		var out bytes.Buffer
		log, err := NewLogger(configv1alpha1.Logging{Level: level, Format: configv1alpha1.LogJSON}, &out)
		if err != nil {
			t.Fatal(err)
		}
		log.Error(errors.New("x"), "m")
		for _, v := range []int{0, 1, 4, 10} {
			log.V(v).Info("m", "took", time.Second)
		}
		var got []string
		for line := range strings.Lines(out.String()) {
			var entry struct{ Level, Msg, TS, Caller string }
			if err := json.Unmarshal([]byte(line), &entry); err != nil || entry.Msg != "m" || !strings.Contains(entry.Caller, "observability_test.go") {
				t.Errorf("%s: %v", line, err)
			}
			if _, err := time.Parse(time.RFC3339Nano, entry.TS); err != nil {
				t.Error(err)
			}
			got = append(got, entry.Level)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("level %s: got %v, want %s", level, got, want)
		}
	}
	for _, bad := range []configv1alpha1.Logging{{Level: "loud", Format: configv1alpha1.LogJSON}, {Level: "info"}} {
		if _, err := NewLogger(bad, &bytes.Buffer{}); err == nil {
			t.Errorf("%v was accepted", bad)
		}
	}
}

func TestInstall(t *testing.T) {
	var out bytes.Buffer
	config := configv1alpha1.Logging{Level: "2", Format: configv1alpha1.LogConsole}
	log, err := NewLogger(config, &out)
	if err != nil {
		t.Fatal(err)
	}
	if err := Install(log, config); err != nil {
		t.Fatal(err)
	}
	defer klog.ClearLogger()
	klog.V(2).Info("shown")
	klog.V(3).Info("hidden")
	klog.Flush()
	if got := out.String(); !strings.Contains(got, "shown") || strings.Contains(got, "hidden") {
		t.Error(got)
	}
}
