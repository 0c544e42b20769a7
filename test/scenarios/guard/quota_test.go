package guard

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	configv1alpha1 "github.com/berth-dev/berth/pkg/api/config/v1alpha1"
	berth "github.com/berth-dev/berth/pkg/api/v1alpha1"
	"github.com/berth-dev/berth/test/invariants"
	"github.com/berth-dev/berth/test/scene"
)

// limit sets a ResourceQuota of one resource in the namespace and waits until it is enforced.
func (s *stage) limit(name corev1.ResourceName, most string) {
	s.Helper()
	quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: "few"}}
	hard := corev1.ResourceList{name: resource.MustParse(most)}
	s.Eventually(fmt.Sprintf("limiting %s to %s", name, most), func(ctx context.Context) error {
		err := s.Client.Get(ctx, client.ObjectKeyFromObject(quota), quota)
		if client.IgnoreNotFound(err) != nil {
			return err
		}
		if err != nil {
			quota.Spec.Hard = hard
			return errors.Join(s.Client.Create(ctx, quota), errors.New("just created"))
		}
		if now := quota.Spec.Hard[name]; now.Cmp(hard[name]) != 0 {
			quota.Spec.Hard = hard
			return errors.Join(s.Client.Update(ctx, quota), errors.New("just changed"))
		}
		if now := quota.Status.Hard[name]; now.Cmp(hard[name]) != 0 {
			return fmt.Errorf("its status has %s", now.String())
		}
		return nil
	})
}

// hastyQueue is a queue of the test's own whose gangs must be complete within seconds.
func (s *stage) hastyQueue(seconds int32) string {
	s.Helper()
	config := &berth.GangReservationConfig{
		ObjectMeta: metav1.ObjectMeta{Name: "hasty-" + s.Namespace},
		Spec:       berth.GangReservationConfigSpec{Seating: berth.SeatingPolicy{TimeoutSeconds: ptr.To(seconds)}},
	}
	s.Create(config)
	check := &kueue.AdmissionCheck{
		ObjectMeta: metav1.ObjectMeta{Name: config.Name},
		Spec: kueue.AdmissionCheckSpec{ControllerName: berth.ControllerName, Parameters: &kueue.AdmissionCheckParametersReference{
			APIGroup: berth.GroupVersion.Group, Kind: "GangReservationConfig", Name: config.Name,
		}},
	}
	s.Create(check)
	s.Cleanup(func() {
		_ = s.Client.Delete(context.Background(), check)
		_ = s.Client.Delete(context.Background(), config)
	})
	return s.queueOf(kueue.AdmissionCheckReference(check.Name))
}

// TestScenario38_TooFewPods: a ResourceQuota lets 12 of 16 pods be created. The gang says so and is sent back as a whole;
// the gang that waits for the same slice has its turn; with the quota raised the first one runs as well.
func TestScenario38_TooFewPods(t *testing.T) {
	s, other := begin(t), begin(t, invariants.Without(1, 2, 3, 4, 6, 7, 11)) // one watcher is enough
	s.run(scene.RunOptions{Configure: func(config *configv1alpha1.BerthConfiguration) {
		config.Reservation.RetryBackoffBase = metav1.Duration{Duration: 5 * time.Second}
		config.Reservation.RetryBackoffMax = metav1.Duration{Duration: 10 * time.Second}
	}})
	other.tidy()
	seats, story := s.watchSeats(), s.Follow()
	queue := s.hastyQueue(45) // time enough for all that happens while the slice is held
	s.limit(corev1.ResourcePods, "12")

	first := s.Submit(scene.Gang("first", "tpu-8x8", 16, inQueue(queue)))
	s.awaitReservedTrue(first)
	res := s.reservation(first)
	second := other.Submit(scene.Gang("second", "tpu-8x8", 16))
	other.AwaitReserved(second, "False NoFreeSlice: no tpu-8x8 is free: 1 of 1 is held by "+s.Namespace+"/"+res.Name)
	const missing = "NotSeated: 12 of 16 pods exist, FailedCreate: Error creating: pods is forbidden: exceeded quota: few," +
		" requested: pods=1, used: pods=12, limited: pods=12"
	s.eventSaid(s.workload(first), missing)

	// The first gang is the older one. All the same it lets others go before it tries again.
	s.gone(res)
	story.Await(first, "GangReserved False "+missing)
	other.AwaitSeated(second)
	s.AwaitReserved(first, "False NoFreeSlice: no tpu-8x8 is free: 1 of 1 is held by "+other.Namespace+"/"+other.reservation(second).Name)
	if pods := seats.count(); pods != 0 {
		t.Errorf("%d pods of the incomplete gang were seated", pods)
	}
	other.Finish(second)
	other.AwaitNoTrace()

	s.limit(corev1.ResourcePods, "16")
	s.AwaitSeated(first)
	s.Finish(first)
	s.AwaitNoTrace()
}

// awaitReservedTrue waits until a Job's gang has a slice, whichever.
func (s *stage) awaitReservedTrue(job *batchv1.Job) {
	s.Helper()
	s.awaitWorkload(job, "reserving for "+job.Name, func(wl *kueue.Workload) bool {
		return apimeta.IsStatusConditionTrue(wl.Status.Conditions, berth.ConditionGangReserved)
	})
}

// TestScenario38_QuotaOnClaims: the namespace may not have as many ResourceClaims as the gang needs. Nothing is held while
// it waits, not even the claims that the quota lets pass, and with the quota raised it runs.
func TestScenario38_QuotaOnClaims(t *testing.T) {
	const claims = corev1.ResourceName("count/resourceclaims.resource.k8s.io")
	for _, tc := range []struct {
		name, class string
		pods        int32
		less, more  string
		refusal     string // after the name of the claim
	}{
		{"none", "tpu-4x4", 4, "0", "1",
			"exceeded quota: few, requested: count/resourceclaims.resource.k8s.io=1, used: count/resourceclaims.resource.k8s.io=0," +
				" limited: count/resourceclaims.resource.k8s.io=0"},
		{"some", "tpu-2x2", 4, "2", "4",
			"exceeded quota: few, requested: count/resourceclaims.resource.k8s.io=1, used: count/resourceclaims.resource.k8s.io=2," +
				" limited: count/resourceclaims.resource.k8s.io=2"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := begin(t)
			// The tries are far enough apart for the looks between them.
			s.run(scene.RunOptions{Configure: func(config *configv1alpha1.BerthConfiguration) {
				config.Reservation.RetryBackoffBase = metav1.Duration{Duration: 5 * time.Second}
				config.Reservation.RetryBackoffMax = metav1.Duration{Duration: 5 * time.Second}
			}})
			s.limit(claims, tc.less)
			job := s.Submit(scene.Gang("train", tc.class, tc.pods))
			// How many pass depends on how soon the quota has counted those of the last try out.
			want := regexp.MustCompile(`^False ReservationFailed: the API server refused ResourceClaim (berth\.\S+\.main\.tpu-\d): ` +
				`resourceclaims\.resource\.k8s\.io "(berth\.\S+\.main\.tpu-\d)" is forbidden: ` + regexp.QuoteMeta(tc.refusal) + `$`)
			s.Eventually("the refusal", func(ctx context.Context) error {
				said, err := s.Reserved(ctx, job)
				if err != nil {
					return err
				}
				if names := want.FindStringSubmatch(said); names == nil || names[1] != names[2] {
					return fmt.Errorf("it reads\n  %s\nand should match\n  %s", said, want)
				}
				return nil
			})
			s.AwaitNoTrace()
			s.awaitCounts(16, 16, 0, 0)

			s.limit(claims, tc.more)
			s.AwaitSeated(job)
			s.Finish(job)
			s.AwaitNoTrace()
		})
	}
}
