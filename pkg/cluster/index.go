package cluster

// index lists values under keys, in no order.
type index[K, V comparable] map[K]map[V]struct{}

func (x index[K, V]) add(k K, v V) {
	if x[k] == nil {
		x[k] = map[V]struct{}{}
	}
	x[k][v] = struct{}{}
}

func (x index[K, V]) remove(k K, v V) {
	delete(x[k], v)
	if len(x[k]) == 0 {
		delete(x, k)
	}
}
