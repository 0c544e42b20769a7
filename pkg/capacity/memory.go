package capacity

// generations keeps what was asked for since the sweep before the last.
type generations[K comparable, V any] struct{ old, now map[K]V }

func (g *generations[K, V]) get(k K) (V, bool) {
	v, ok := g.now[k]
	if !ok {
		if v, ok = g.old[k]; ok {
			g.put(k, v)
		}
	}
	return v, ok
}

func (g *generations[K, V]) put(k K, v V) {
	if g.now == nil {
		g.now = map[K]V{}
	}
	g.now[k] = v
}

func (g *generations[K, V]) sweep() { g.old, g.now = g.now, nil }
