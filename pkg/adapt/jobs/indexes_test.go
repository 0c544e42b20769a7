package jobs_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/utils/ptr"

	"github.com/berth-dev/berth/pkg/adapt/jobs"
	"github.com/berth-dev/berth/pkg/adapt/kueue/kueuetest"
	berth "github.com/berth-dev/berth/pkg/api/v1alpha1"
)

// over are the ranks of the Job train that are over, by its status.
func over(completed string, failed *string) jobs.Indexes {
	job := kueuetest.NewJob("train", "tpu-4x4", 8)
	job.Status.CompletedIndexes, job.Status.FailedIndexes = completed, failed
	return jobs.Over(berth.OwnerReference{Name: job.Name, UID: job.UID}, job)
}

func TestOver(t *testing.T) {
	for _, row := range []struct {
		name, completed string
		failed          *string
		want            []int
	}{
		{"none", "", nil, nil},
		{"none failed", "", ptr.To(""), nil},
		{"one succeeded", "3", nil, []int{3}},
		{"several succeeded", "0-2,5", nil, []int{0, 1, 2, 5}},
		{"some failed", "", ptr.To("1,6-7"), []int{1, 6, 7}},
		{"some succeeded and some failed", "0,1,4-5", ptr.To("3,6"), []int{0, 1, 3, 4, 5, 6}},
		{"who is said to have done both counts once", "1-3", ptr.To("2-4"), []int{1, 2, 3, 4}},
		{"all", "0-7", nil, []int{0, 1, 2, 3, 4, 5, 6, 7}},
		{"more than there are", "6-9223372036854775807", nil, []int{6, 7}},
		{"what is no index", "x,3-1,-2,1-,,2,99999999999999999999", ptr.To("0--1"), []int{2}},
	} {
		t.Run(row.name, func(t *testing.T) {
			x := over(row.completed, row.failed)
			var got []int
			for i := range 8 {
				if x.Has(i) {
					got = append(got, i)
				}
			}
			if diff := cmp.Diff(row.want, got); diff != "" {
				t.Error(diff)
			}
			if n := x.Below(8); n != len(row.want) {
				t.Errorf("%d are counted", n)
			}
		})
	}
}

// What another Job of the owner's name has done says nothing.
func TestOverOfAnotherJob(t *testing.T) {
	if got := jobs.Over(berth.OwnerReference{Name: "train", UID: "train"}, nil); len(got) > 0 {
		t.Errorf("without a Job there are %v", got)
	}
	successor := kueuetest.NewJob("train", "tpu-4x4", 8)
	successor.UID, successor.Status = "successor", batchv1.JobStatus{CompletedIndexes: "0-7"}
	if got := jobs.Over(berth.OwnerReference{Name: "train", UID: "train"}, successor); len(got) > 0 {
		t.Errorf("of another Job there are %v", got)
	}
}

// FuzzOver reads any status. An index counts as often as it is in the set: once or never.
func FuzzOver(f *testing.F) {
	f.Add("", "")
	f.Add("0-2,5", "3")
	f.Add("0,1,40-63", "1-4")
	f.Add("5,3-2,x,-1,99999999999999999999", "0--1,7-9223372036854775807")
	f.Fuzz(func(t *testing.T, completed, failed string) {
		x := over(completed, &failed)
		count := 0
		for i := range 70 {
			if got := x.Below(i); got != count {
				t.Errorf("%d are counted below %d, and %d are there", got, i, count)
			}
			if x.Has(i) {
				count++
			}
		}
	})
}
