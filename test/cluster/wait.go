package cluster

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// pollEvery is short against every start-up time here and long against the cost of a request on loopback.
const pollEvery = 50 * time.Millisecond

// readyLimit is how long what the cluster makes by itself may take: long, because on a busy machine everything comes late.
const readyLimit = 3 * time.Minute

// await calls check until it reports true, at most for limit. An error of check is not final: it is kept and returned
// if time runs out, because "connection refused" is how most things here begin. permanent makes one final.
func await(ctx context.Context, limit time.Duration, check func(context.Context) (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	ticker := time.NewTicker(pollEvery)
	defer ticker.Stop()
	var last error
	for {
		done, err := check(ctx)
		var final permanent
		switch {
		case done && err == nil:
			return nil
		case errors.As(err, &final):
			return final.error
		case err != nil && ctx.Err() == nil:
			last = err
		case err == nil:
			last = nil
		}
		select {
		case <-ctx.Done():
			if last != nil {
				return fmt.Errorf("%w; last: %w", context.Cause(ctx), last)
			}
			return context.Cause(ctx)
		case <-ticker.C:
		}
	}
}

// permanent marks an error that waiting cannot cure.
type permanent struct{ error }

func (p permanent) Unwrap() error { return p.error }

// all runs jobs at once and returns their errors joined.
func all(jobs ...func() error) error {
	errs := make(chan error, len(jobs))
	for _, job := range jobs {
		go func() { errs <- job() }()
	}
	var joined []error
	for range jobs {
		joined = append(joined, <-errs)
	}
	return errors.Join(joined...)
}
