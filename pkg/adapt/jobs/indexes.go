package jobs

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/utils/ptr"

	berth "github.com/berth-dev/berth/pkg/api/v1alpha1"
)

// Indexes is a set of completion indexes: intervals in rising order that do not overlap.
type Indexes []interval

type interval struct{ first, last int }

// Over are the indexes, and so the ranks, for which the owner makes no pods any more: they succeeded, or failed for good.
// Empty when job, which may be nil, is not the owner.
func Over(owner berth.OwnerReference, job *batchv1.Job) Indexes {
	if job == nil || job.UID != owner.UID {
		return nil
	}
	all := append(intervals(job.Status.CompletedIndexes), intervals(ptr.Deref(job.Status.FailedIndexes, ""))...)
	slices.SortFunc(all, func(a, b interval) int { return cmp.Compare(a.first, b.first) })
	var over Indexes
	for _, i := range all {
		if n := len(over); n > 0 && i.first <= over[n-1].last {
			over[n-1].last = max(over[n-1].last, i.last)
		} else {
			over = append(over, i)
		}
	}
	return over
}

// intervals reads what the Job controller writes, such as "0-2,5". What cannot be read is left out, as it does itself.
func intervals(text string) []interval {
	if text == "" {
		return nil
	}
	var all []interval
	for part := range strings.SplitSeq(text, ",") {
		from, to, several := strings.Cut(part, "-")
		if !several {
			to = from
		}
		first, err := strconv.Atoi(from)
		if err != nil {
			continue
		}
		last, err := strconv.Atoi(to)
		if err != nil || first < 0 || last < first {
			continue
		}
		all = append(all, interval{first, last})
	}
	return all
}

// Has reports whether the index is in the set.
func (x Indexes) Has(index int) bool {
	_, found := slices.BinarySearchFunc(x, index, func(i interval, index int) int {
		switch {
		case i.last < index:
			return -1
		case i.first > index:
			return 1
		default:
			return 0
		}
	})
	return found
}

// Below counts the indexes that are smaller than n.
func (x Indexes) Below(n int) int {
	count := 0
	for _, i := range x {
		count += max(0, min(i.last, n-1)-i.first+1)
	}
	return count
}
