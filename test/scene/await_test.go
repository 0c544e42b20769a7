package scene

import (
	"context"
	"errors"
	"testing"
)

// A condition is awaited only while somebody may bring it about: a controller that lost its lease does not, and the test
// says so at once. One that the test itself stopped is replaced by another, or is not needed.
func TestAwait(t *testing.T) {
	still := errors.New("still there")
	never := func(context.Context) error { return still }
	third := func() func(context.Context) error {
		looks := 0
		return func(context.Context) error {
			if looks++; looks < 3 {
				return still
			}
			return nil
		}
	}
	controller := func() *Controller {
		return &Controller{stop: func() {}, done: make(chan error, 1), ended: make(chan struct{})}
	}
	end := func(c *Controller, err error) {
		c.done <- err
		close(c.ended)
	}
	stopped, runs := controller(), controller()
	s := &Scene{TB: t, running: []*Controller{stopped, runs}}
	if err := s.Await(t.Context(), third()); err != nil {
		t.Errorf("while both run: %v", err)
	}
	end(stopped, nil)
	if err := stopped.Stop(); err != nil {
		t.Error(err)
	}
	if err := s.Await(t.Context(), third()); err != nil {
		t.Errorf("after one was stopped: %v", err)
	}

	end(runs, errors.New("the lease is lost"))
	const want = "the controller has ended: the lease is lost; until then: still there"
	for range 2 {
		if err := s.Await(t.Context(), never); !errors.Is(err, ErrEnded) || !errors.Is(err, still) || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	if err := s.Await(t.Context(), func(context.Context) error { return nil }); err != nil {
		t.Errorf("what holds needs nobody: %v", err)
	}
	if err := runs.Stop(); err == nil || err.Error() != "the lease is lost" {
		t.Errorf("it ended with %v", err)
	}
}
