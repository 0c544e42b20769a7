package fuzztest

import (
	"math"
	"strings"
)

// chooser turns bytes into choices. When they have run out every choice is the first.
type chooser struct {
	data  []byte
	texts []string
}

func (c *chooser) next() byte {
	if len(c.data) == 0 {
		return 0
	}
	b := c.data[0]
	c.data = c.data[1:]
	return b
}

// below chooses a number from 0 to n-1; n is at least 1.
func (c *chooser) below(n int) int {
	i := int(c.next())
	if n > 256 {
		i = i<<8 | int(c.next())
	}
	return i % n
}

// seldom is true once in eight times, and never when the bytes have run out.
func (c *chooser) seldom() bool { return c.next()%8 == 7 }

func pick[T any](c *chooser, from []T) T { return from[c.below(len(from))] }

func (c *chooser) integer(was int64) int64 {
	switch c.below(8) {
	case 0:
		return was + 1
	case 1:
		return was - 1
	case 2:
		return -was
	case 3:
		return int64(c.next())
	case 4:
		return pick(c, []int64{0, 1, 255, 256, 1 << 15, 1 << 20, math.MaxInt32, math.MinInt32, math.MaxInt64, math.MinInt64})
	default:
		return int64(c.next()) % 6
	}
}

// text is a text of the world, one that is known to be awkward, the one that was there with a change, or plain bytes.
func (c *chooser) text(was string) string {
	switch c.below(8) {
	case 0:
		return pick(c, awkward)
	case 1:
		return was + pick(c, awkward)
	case 2:
		return was[:len(was)/2]
	case 3:
		return strings.ToUpper(was)
	case 4:
		n := min(c.below(32), len(c.data))
		raw := string(c.data[:n])
		c.data = c.data[n:]
		return strings.ToValidUTF8(raw, "?") // the API server stores no other
	default:
		if len(c.texts) == 0 {
			return ""
		}
		return pick(c, c.texts)
	}
}

var awkward = []string{
	"", "x", "-", "/", ",", ",,", "a/b/c", "0", "1", "-1", "+1", "007", "1e9", "18446744073709551616", " ", "\n", "\x00", "é", "\u202e",
	"berth.", "berth.dev/", "claim.berth.dev/", "[]", "{}", "null", `[{"hosts":["node-0",""],"instance":-1}]`,
	"In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "NoSchedule", "NoExecute", "PreferNoSchedule", "Equal",
	"true", "false", "device.driver", "device.attributes['x'].y == 1", "device.capacity['x'].y.compareTo(quantity('1')) >= 0", "has(", "1",
	"[1,2].all(x, [1,2].all(y, [1,2].all(z, x+y+z > 0)))", "'" + strings.Repeat("a", 300) + "' == ''",
	"kubernetes.io/hostname", "metadata.name", strings.Repeat("a", 300),
}
