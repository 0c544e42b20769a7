//go:build !unix

package faults

import "errors"

var errNoSignals = errors.New("this system cannot stop and continue a process")

func freeze(int) error { return errNoSignals }

func thaw(int) error { return errNoSignals }
