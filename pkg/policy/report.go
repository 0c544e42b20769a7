package policy

import (
	"errors"
	"fmt"
)

// Verdict is what a probe found out about one policy.
type Verdict string

const (
	// InForce: the policy refused what it must, or changed what it must.
	InForce Verdict = "InForce"
	// Absent: it did not. It is missing, unbound, narrowed, or has not reached the API server yet.
	Absent Verdict = "Absent"
	// Unclear: the dry run ended otherwise, so nothing is known. Treat it like Absent where safety is at stake.
	Unclear Verdict = "Unclear"
)

// Finding is what is known about one policy.
type Finding struct {
	// Policy is its name.
	Policy string
	// AcceleratorPool is the name of the AcceleratorPool whose fence was tried; empty for other policies than ClaimStatus.
	AcceleratorPool string
	Verdict         Verdict
	// Message is the sentence of the refusal if Verdict is InForce, and otherwise what happened instead.
	Message string
}

func (f Finding) String() string {
	if f.AcceleratorPool != "" {
		return fmt.Sprintf("%s for AcceleratorPool %s is %s: %s", f.Policy, f.AcceleratorPool, f.Verdict, f.Message)
	}
	return fmt.Sprintf("%s is %s: %s", f.Policy, f.Verdict, f.Message)
}

// Report is what a probe found.
type Report struct {
	// Findings has one entry for each policy and one for each fenced AcceleratorPool, in a fixed order.
	Findings []Finding
}

// Err is nil if everything is in force; otherwise it names everything that is not.
func (r Report) Err() error {
	var errs []error
	for _, f := range r.Findings {
		if f.Verdict != InForce {
			errs = append(errs, errors.New(f.String()))
		}
	}
	return errors.Join(errs...)
}

// PoliciesErr is Err without the fences of single AcceleratorPools: one of them that is not yet up must not stop the
// others. It does not count either that nothing is known of JobSetKeys. A dry run of a JobSet needs the webhooks of JobSet
// and Kueue; without those nobody creates one, and Berth gives no slice to a JobSet.
func (r Report) PoliciesErr() error {
	var policies Report
	for _, f := range r.Findings {
		if f.AcceleratorPool != "" || f.Policy == JobSetKeys && f.Verdict == Unclear {
			continue
		}
		policies.Findings = append(policies.Findings, f)
	}
	return policies.Err()
}

// Fence returns the finding for one AcceleratorPool; ok is false if its fence was not tried.
func (r Report) Fence(acceleratorPool string) (_ Finding, ok bool) {
	for _, f := range r.Findings {
		if f.AcceleratorPool == acceleratorPool && acceleratorPool != "" {
			return f, true
		}
	}
	return Finding{}, false
}
