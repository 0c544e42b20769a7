package line_test

import (
	"testing"
)

func TestSmallGangsKeepOutOfATarget(t *testing.T) {
	s := kep()
	s.comes("a", "tpu-4x4")
	s.passes(t, "a on tpu-4x4-0")
	s.minute = 1
	s.comes("big", "tpu-8x8")
	s.passes(t, "big waits for pod/tpu-8x8-0: drains when ml/a ends")
	s.minute = 2
	s.comes("b", "tpu-4x4")
	s.passes(t, "big waits for pod/tpu-8x8-0: drains when ml/a ends")
	if got, want := s.refused("b"), "WaitingTurn: what is free is kept for ml/big"; got != want {
		t.Errorf("\n got %s\nwant %s", got, want)
	}
	s.ends("a")
	s.passes(t, "big on tpu-8x8-0; b waits for pod/tpu-4x4-0: drains when ml/big ends")
	s.ends("big")
	s.passes(t, "b on tpu-4x4-0")
}

func TestWhoEndsInTimeIsLetIn(t *testing.T) {
	s := kep()
	s.comes("a", "tpu-4x4", runs(60))
	s.passes(t, "a on tpu-4x4-0")
	s.comes("big", "tpu-8x8")
	s.comes("late", "tpu-4x4", runs(61))
	s.comes("unknown", "tpu-4x4")
	s.comes("early", "tpu-4x4", runs(60))
	s.passes(t, "early on tpu-4x4-4; big waits for pod/tpu-8x8-0: drains when ml/a, ml/early end by 09:00")
	s.minute = 1
	s.comes("second", "tpu-4x4", runs(60))
	s.comes("third", "tpu-4x4", runs(59))
	s.passes(t, "third on tpu-4x4-8; big waits for pod/tpu-8x8-0: drains when ml/a, ml/early, ml/third end by 09:00")
}
