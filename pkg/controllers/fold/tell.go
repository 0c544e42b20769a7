package fold

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	berth "github.com/berth-dev/berth/pkg/api/v1alpha1"
	"github.com/berth-dev/berth/pkg/reason"
)

// Reasons of events.
const (
	eventRose      = "CapacityRose"
	eventFell      = "CapacityFell"
	eventContested = string(reason.FoldContested)
	eventFlavor    = "FlavorCreated"
	eventCohort    = "CohortCreated"
	eventStays     = "LastValueStays"
)

// listed is how many reasons and troubles are listed.
const listed = 16

// tell is one event on the fold.
type tell struct{ kind, reason, note string }

// notices says what changed: the number, and who contests it. What Live takes off while the pods of a gang succeed one by one
// is no news of the hardware.
func (d *decision) notices(f *folded) {
	was, now := f.object.Status.Shares, d.status.Shares
	number := fmt.Sprintf("%d %s of flavor %s, %d before", now, f.compiled.Resource, f.compiled.Flavor, was)
	switch {
	case d.steady:
	case now > was:
		d.tells = append(d.tells, tell{corev1.EventTypeNormal, eventRose, number})
	case now < was:
		d.tells = append(d.tells, tell{corev1.EventTypeWarning, eventFell, number + ": " + f.because()})
	}
	for _, t := range d.status.Targets {
		old := statusOf(f.object, berth.FoldTarget{Kind: t.Kind, Name: t.Name})
		if t.State == berth.TargetContested && (old == nil || old.State != berth.TargetContested) {
			d.tells = append(d.tells, tell{corev1.EventTypeWarning, eventContested, fmt.Sprintf("%s %s: %s", t.Kind, t.Name, t.Message)})
		}
	}
}

// because is why the number is not larger.
func (f *folded) because() string {
	const most = 3
	why := f.losses
	if n := f.observed.Uncharged(f.compiled.Live); n > 0 {
		why = append(why[:len(why):len(why)], fmt.Sprintf("running gangs hold %d that Kueue charges for no more", n))
	}
	if len(why) == 0 && f.compiled.Live {
		return "others hold devices, or what is free does not fit together"
	}
	if len(why) == 0 {
		return "less is published"
	}
	return some(why, most, ", ")
}
