package fold

import (
	"math"
	"slices"

	"k8s.io/utils/ptr"

	berth "github.com/berth-dev/berth/pkg/api/v1alpha1"
	"github.com/berth-dev/berth/pkg/fold"
)

// The memory of a target is its entry in the status of the fold. Here is how one becomes the other.

// statusOf is the entry of a target; nil when there is none that counts: another generation of the spec begins anew.
func statusOf(f *berth.CapacityFold, t berth.FoldTarget) *berth.FoldTargetStatus {
	if f.Status.ObservedGeneration != f.Generation {
		return nil
	}
	at := slices.IndexFunc(f.Status.Targets, func(s berth.FoldTargetStatus) bool { return s.Kind == t.Kind && s.Name == t.Name })
	if at < 0 {
		return nil
	}
	return &f.Status.Targets[at]
}

// remembered is what is known of a target of the fold.
func remembered(f *folded, at int) fold.Memory {
	t := f.targets[at].FoldTarget
	s := statusOf(f.object, t)
	if s == nil {
		return fold.Forgotten
	}
	m := fold.Memory{
		Quota: int(s.Quota), Previous: int(ptr.Deref(s.Previous, -1)), Asserted: s.Asserted,
		Contested: s.State == berth.TargetContested, Paused: s.Paused,
	}
	switch {
	case s.State == berth.TargetMissing || s.State == berth.TargetNoEntry || s.State == berth.TargetPaused:
		// Nothing was decided, whatever number is told.
		m.Quota, m.Previous = -1, -1
	case s.State == berth.TargetNotReady && s.Quota == 0 && s.Previous == nil:
		// Nothing was decided yet. If 0 was, there is little to defend.
		m.Quota = -1
	case f.target(nameOf(t)).confirmed == m.Quota:
		m.Previous = -1
	}
	return m
}

// told is the entry that tells, and keeps, what becomes of a target.
func told(t target, quota int, m fold.Memory, state berth.FoldTargetState, message string) berth.FoldTargetStatus {
	s := berth.FoldTargetStatus{
		Kind: t.Kind, Name: t.Name, Quota: short(quota), Charged: short(t.charged), Asserted: m.Asserted, Paused: m.Paused,
		State: state, Message: message,
	}
	if m.Previous >= 0 && m.Previous <= math.MaxInt32 {
		s.Previous = ptr.To(int32(m.Previous))
	}
	return s
}

// short is a number that fits into a status. Larger ones are no shares, but people may fold what they like.
func short(n int) int32 { return int32(min(max(n, math.MinInt32), math.MaxInt32)) }

// alike reports that two entries remember the same.
func alike(was *berth.FoldTargetStatus, now berth.FoldTargetStatus) bool {
	return was != nil && was.Quota == now.Quota && was.Asserted == now.Asserted && was.Paused == now.Paused && was.State == now.State
}

// lasting is a status without what changes with every gang, and without the numbers before the decided ones: those are
// forgotten when they have come true, and change with the decided ones only.
func lasting(s *berth.CapacityFoldStatus) *berth.CapacityFoldStatus {
	out := *s
	out.Observed, out.Losses = berth.FoldObservation{}, nil
	out.Targets = slices.Clone(s.Targets)
	for i := range out.Targets {
		out.Targets[i].Charged, out.Targets[i].Previous = 0, nil
	}
	return &out
}

// forgetting is a status as if it had forgotten what the other, of the same targets, has.
func forgetting(s, other *berth.CapacityFoldStatus) *berth.CapacityFoldStatus {
	out := *s
	out.Targets = slices.Clone(s.Targets)
	for i := range out.Targets {
		if other.Targets[i].Previous == nil {
			out.Targets[i].Previous = nil
		}
	}
	return &out
}
