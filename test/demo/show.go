package main

import (
	"context"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"

	berth "github.com/berth-dev/berth/pkg/api/v1alpha1"
	"github.com/berth-dev/berth/test/demo/witness"
)

// showWorkload prints what the owner of a Job reads: check and condition of the Workload, and the GangReservations.
func (d *demo) showWorkload(ctx context.Context, job string) error {
	o, err := witness.Observe(ctx, d.admin)
	if err != nil {
		return err
	}
	text, err := userView(o, job)
	if err != nil {
		return err
	}
	d.say("\n%s", text)
	return nil
}

// userView is what kubectl shows of a Job's Workload and of all reservations.
func userView(o *witness.Observation, name string) (string, error) {
	job := o.Job(name)
	if job == nil {
		return "", fmt.Errorf("Job %s does not exist", name)
	}
	wl := o.WorkloadOf(job)
	if wl == nil {
		return "", fmt.Errorf("Job %s has no Workload", name)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "Workload %s\n", wl.Name)
	for _, c := range wl.Status.AdmissionChecks {
		fmt.Fprintf(&b, "  check %s is %s: %s\n", c.Name, c.State, c.Message)
	}
	if c := apimeta.FindStatusCondition(wl.Status.Conditions, berth.ConditionGangReserved); c != nil {
		fmt.Fprintf(&b, "  condition %s is %s, reason %s, with the same sentence\n", c.Type, c.Status, c.Reason)
	}
	table := tabwriter.NewWriter(&b, 0, 0, 3, ' ', 0)
	fmt.Fprintln(table, "GANGRESERVATION\tWORKLOAD\tPHASE\tDEVICES")
	for _, r := range o.Reservations {
		var devices []string
		for _, set := range r.Spec.PodSets {
			for _, c := range set.Claims {
				for _, d := range c.Devices {
					devices = append(devices, d.Device)
				}
			}
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", r.Name, r.Spec.WorkloadRef.Name, r.Status.Phase, strings.Join(devices, ","))
	}
	if err := table.Flush(); err != nil {
		return "", err
	}
	return b.String(), nil
}

// summarise prints the time of each phase.
func (d *demo) summarise(total time.Duration) {
	fmt.Fprintln(d.out, "\nThe demo has shown what it promised.")
	for i, p := range d.told {
		fmt.Fprintf(d.out, "%8s  %d. %s\n", seconds(d.took[i]), i+1, p.title)
	}
	fmt.Fprintf(d.out, "%8s  in all\n", seconds(total))
}
