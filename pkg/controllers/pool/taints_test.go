package pool

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	berth "github.com/berth-dev/berth/pkg/api/v1alpha1"
	"github.com/berth-dev/berth/pkg/policy"
)

// A rule that comes back from the API server bears a time that nobody asked for. Taken for a difference, every look would
// write the rule, and every write would bring the next look.
func TestTimeAddedIsNoDifference(t *testing.T) {
	pool := &berth.AcceleratorPool{ObjectMeta: metav1.ObjectMeta{Name: "tpus"}, Spec: berth.AcceleratorPoolSpec{Driver: "tpu.example.com"}}
	want := policy.FenceRules(pool, nil)[0].Spec
	have := *want.DeepCopy()
	have.Taint.TimeAdded = ptr.To(metav1.NewTime(time.Now()))
	if !same(want, have) {
		t.Error("a rule with a time is taken for another one")
	}
	if want.Taint.TimeAdded != nil {
		t.Error("the wanted rule was changed")
	}
	have.Taint.Value = "another"
	if same(want, have) {
		t.Error("another value is not noticed")
	}
}
