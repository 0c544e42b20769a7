package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/berth-dev/berth/test/demo/witness"
)

// The Jobs, in the order in which they are submitted.
const first, large, second, last = "train-a", "train-b", "train-c", "train-d"

// part is one part of the story.
type part struct {
	title string
	tell  func(context.Context) error
}

func (d *demo) parts() []part {
	return []part{
		{"Start etcd, Kubernetes, Kueue and KWOK", d.startCluster},
		{"Install Berth, then declare the hardware and a queue", d.installBerth},
		{first + " asks for a 4x4: it gets one as a whole", d.firstRuns},
		{large + " asks for the 8x8: it waits and reads why", d.largeWaits},
		{second + " asks for a 4x4 until " + first + " is over: it runs meanwhile", d.secondRuns},
		{last + " asks for a 4x4 without an end: what is free is kept for " + large, d.lastWaits},
		{"Somebody tries to take a free host around Berth: refused", d.goAround},
		{first + " and " + second + " finish: " + large + " starts whole, before " + last, d.largeRuns},
		{large + " finishes: " + last + " has its turn", d.lastRuns},
		{last + " finishes: nothing is left", d.nothingLeft},
		{"Stop everything", d.stop},
	}
}

// tell is the whole demo. What it started has ended when it returns.
func (d *demo) tell(ctx context.Context) error {
	began := time.Now()
	fmt.Fprintln(d.out, "Four Jobs on one pool of 16 hosts, on a real control plane. The nodes are played by KWOK.")
	for _, p := range d.parts() {
		if err := d.phase(ctx, p); err != nil {
			return d.fail(ctx, err)
		}
	}
	d.summarise(time.Since(began))
	return nil
}

// errInterrupted is the error of a demo whose context ended and that has stopped everything.
var errInterrupted = errors.New("interrupted")

// fail stops everything. Unless the demo was interrupted, the error gets what helps to understand it.
func (d *demo) fail(ctx context.Context, err error) error {
	interrupted := ctx.Err() != nil
	if d.cluster != nil {
		if !interrupted {
			d.cluster.KeepDir()
			if p := d.cluster.Process(controllerName); p != nil {
				err = fmt.Errorf("%w\n%s", err, p.LogTail(30))
			}
			err = fmt.Errorf("%w\nall logs are kept in %s", err, d.cluster.Dir)
		}
		if stop := d.cluster.Stop(); stop != nil {
			return errors.Join(err, stop)
		}
	}
	if interrupted {
		return errInterrupted
	}
	return err
}

func (d *demo) firstRuns(ctx context.Context) error {
	if err := d.prepareTeam(ctx); err != nil {
		return err
	}
	return d.submitAndRun(ctx, within(time.Hour, gang(first, "tpu-4x4", 4)))
}

func (d *demo) secondRuns(ctx context.Context) error {
	d.say("It ends within ten minutes, before %s has to: %s loses nothing by it.", first, large)
	return d.submitAndRun(ctx, within(10*time.Minute, gang(second, "tpu-4x4", 4)))
}

func (d *demo) lastWaits(ctx context.Context) error {
	if err := d.admin.Create(ctx, gang(last, "tpu-4x4", 4)); err != nil {
		return err
	}
	d.say("Two 4x4 are free. If whoever fits went first, %s might wait for ever.", large)
	err := d.await(ctx, last+" waits for "+large, func(o *witness.Observation) error {
		wl := o.WorkloadOf(o.Job(large))
		if wl == nil {
			return fmt.Errorf("Job %s has no Workload", large)
		}
		return waits(o, last, "WaitingTurn", "what is free is kept for "+wl.Namespace+"/"+wl.Name)
	})
	if err != nil {
		return err
	}
	return d.showWorkload(ctx, last)
}

func (d *demo) submitAndRun(ctx context.Context, job *batchv1.Job) error {
	if err := d.admin.Create(ctx, job); err != nil {
		return err
	}
	if err := d.runsWhole(ctx, job.Name); err != nil {
		return err
	}
	return d.showWorkload(ctx, job.Name)
}

// runsWhole waits until the API server shows every pod of a Job on the host of its rank, and keeps where that was.
func (d *demo) runsWhole(ctx context.Context, name string) error {
	var seating witness.Seating
	err := d.await(ctx, name+" runs whole", func(o *witness.Observation) (err error) {
		seating, err = o.Whole(name)
		return err
	})
	if err != nil {
		return err
	}
	d.seatings = append(d.seatings, seating)
	d.say("Each of the %d pods is on the host of its rank: %s", len(seating.Nodes), strings.Join(seating.Nodes, ", "))
	return nil
}

func (d *demo) largeWaits(ctx context.Context) error {
	if err := d.admin.Create(ctx, gang(large, "tpu-8x8", 16)); err != nil {
		return err
	}
	if err := d.waitsFor(ctx, first); err != nil {
		return err
	}
	d.say("Kueue has reserved quota for it; what lacks is hardware.")
	return d.showWorkload(ctx, large)
}

// waitsFor waits until the large Job is told that the given Job holds what it needs, and that it is kept for it.
func (d *demo) waitsFor(ctx context.Context, holder string) error {
	return d.await(ctx, fmt.Sprintf("%s waits for %s", large, holder), func(o *witness.Observation) error {
		return waits(o, large, "NoFreeSlice", drains(o, holder))
	})
}

// drains is what the large Job is told while one Job holds what it needs.
func drains(o *witness.Observation, holder string) string {
	var name string
	for _, r := range o.Reservations {
		if r.Holds() && r.Spec.Owner.Name == holder {
			name = r.Namespace + "/" + r.Name
		}
	}
	return fmt.Sprintf("no tpu-8x8 is free: 1 of 1 is held by %[1]s; waits for pod-a/tpu-8x8: drains when %[1]s ends", name)
}

// waits returns nil when a Job has quota and no pod, and its Workload's check and condition say the sentence.
func waits(o *witness.Observation, name, reason, sentence string) error {
	job := o.Job(name)
	if job == nil {
		return fmt.Errorf("Job %s does not exist", name)
	}
	if pods := o.PodsOf(job); len(pods) > 0 {
		return fmt.Errorf("Job %s has %d pods although it waits", name, len(pods))
	}
	wl := o.WorkloadOf(job)
	if wl == nil {
		return fmt.Errorf("Job %s has no Workload", name)
	}
	if !apimeta.IsStatusConditionTrue(wl.Status.Conditions, kueue.WorkloadQuotaReserved) {
		return fmt.Errorf("Workload %s has no quota: %s", wl.Name, witness.Told(wl))
	}
	if told := "False " + reason + ": " + sentence; witness.Told(wl) != told {
		return fmt.Errorf("GangReserved of Workload %s reads\n  %s\nand should read\n  %s", wl.Name, witness.Told(wl), told)
	}
	for _, c := range wl.Status.AdmissionChecks {
		if c.Name == checkName && c.State == kueue.CheckStatePending && c.Message == sentence {
			return nil
		}
	}
	return fmt.Errorf("check %s of Workload %s should be Pending with the same sentence: %+v", checkName, wl.Name, wl.Status.AdmissionChecks)
}

func (d *demo) largeRuns(ctx context.Context) error {
	d.say("%s finishes. Twelve hosts are not sixteen: %s waits on.", first, large)
	if err := d.finish(ctx, first); err != nil {
		return err
	}
	if err := d.waitsFor(ctx, second); err != nil {
		return err
	}
	d.say("%s finishes.", second)
	if err := d.finish(ctx, second); err != nil {
		return err
	}
	if err := d.runsWhole(ctx, large); err != nil {
		return err
	}
	return d.showWorkload(ctx, large)
}

func (d *demo) lastRuns(ctx context.Context) error {
	if err := d.finish(ctx, large); err != nil {
		return err
	}
	if err := d.runsWhole(ctx, last); err != nil {
		return err
	}
	return d.showWorkload(ctx, last)
}

// finish lets the pods of a Job succeed.
func (d *demo) finish(ctx context.Context, name string) error {
	_, err := d.cluster.CompletePods(ctx, namespace, batchv1.JobNameLabel+"="+name)
	return err
}

func (d *demo) nothingLeft(ctx context.Context) error {
	if err := d.finish(ctx, last); err != nil {
		return err
	}
	err := d.await(ctx, "all Jobs are complete and no trace of them is left", func(o *witness.Observation) error {
		return finished(o, d.seatings)
	})
	if err != nil {
		return err
	}
	// A fresh reading, so that the last word is about what is and not about what was awaited.
	o, err := witness.Observe(ctx, d.admin)
	if err != nil {
		return err
	}
	if err := finished(o, d.seatings); err != nil {
		return err
	}
	pods := 0
	for _, s := range d.seatings {
		pods += len(s.Nodes)
	}
	d.say("The API server shows: %d Jobs complete, %d pods on the hosts of their ranks,", len(d.seatings), pods)
	d.say("no GangReservation, no pinned ResourceClaim, and nothing in the hands of %s.", intruder)
	return nil
}

// stop ends the controller before the rest, to see that it ends in order and not at the end of a grace period.
func (d *demo) stop(context.Context) error {
	controller := d.cluster.Process(controllerName)
	if err := controller.Stop(); err != nil {
		return err
	}
	// It is its last word but for a remark of controller-runtime's that may come after.
	if last := controller.LogTail(30); !strings.Contains(last, `"msg":"Stopped"`) {
		return fmt.Errorf("%s was told to stop and did not end in order", controllerName)
	}
	return d.cluster.Stop()
}

// finished returns nil when the story has ended as it should.
func finished(o *witness.Observation, seatings []witness.Seating) error {
	var wrong []error
	for _, name := range []string{first, large, second, last} {
		if !slices.ContainsFunc(seatings, func(s witness.Seating) bool { return s.Job == name }) {
			wrong = append(wrong, fmt.Errorf("Job %s was never seen to run whole", name))
		}
	}
	for _, s := range seatings {
		wrong = append(wrong, o.Finished(s))
	}
	wrong = append(wrong, o.NoTrace(berthNamespace), o.Nothing(namespace, intruder, intruder))
	return errors.Join(wrong...)
}
