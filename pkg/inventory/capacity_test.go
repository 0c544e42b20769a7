package inventory_test

import (
	"math"
	"testing"

	"github.com/berth-dev/berth/pkg/inventory"
)

func TestQuantity(t *testing.T) {
	for want, milli := range map[string]int64{
		"0": 0, "1m": 1, "1500m": 1500, "40": 40_000, "2048": 2048_000, "100000": 100_000_000, "999999": 999_999_000,
		"1M": 1_000_000_000, "1Mi": 1 << 20 * 1000, "30Gi": 30 << 30 * 1000, "100G": 1e14, "1500M": 1.5e12,
		"1025Mi": 1025 << 20 * 1000, "1234567": 1_234_567_000, "2Ti": 2 << 40 * 1000, "1Pi": 1 << 50 * 1000,
		"1234567001m": 1_234_567_001, "9223372036854775": math.MaxInt64 / 1000 * 1000, "9223372036854775807m": math.MaxInt64,
	} {
		if have := (inventory.Amount{Name: "memory", Milli: milli}).Quantity(); have != want {
			t.Errorf("%d thousandths are written %s, want %s", milli, have, want)
		}
	}
}
