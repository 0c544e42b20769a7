package cluster

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/berth-dev/berth/pkg/adapt/nodes"
	berth "github.com/berth-dev/berth/pkg/api/v1alpha1"
	"github.com/berth-dev/berth/pkg/inventory"
	"github.com/berth-dev/berth/pkg/ledger"
)

// changes are bookings to be undone and to be made. What is both, equal in everything, is neither: most updates of an
// object change nothing that is booked for it.
type changes struct {
	given       map[held][]ledger.Holding
	taken       []ledger.Holding
	left        map[place][]map[string]int64
	used        []seat
	quarantined map[share]int
}

// held tells apart holdings of different devices or for different holders.
type held struct {
	owner, reservation string
	pool               inventory.PoolID
	device             string
}

type place struct{ node, name string }

func newChanges() changes {
	return changes{given: map[held][]ledger.Holding{}, left: map[place][]map[string]int64{}, quarantined: map[share]int{}}
}

func (c *changes) give(holdings []ledger.Holding) {
	for _, h := range holdings {
		key := held{h.Owner, h.Reservation, h.Pool, h.Device}
		c.given[key] = append(c.given[key], h)
	}
}

func (c *changes) take(holdings []ledger.Holding) { c.taken = append(c.taken, holdings...) }

func (c *changes) leave(seats ...seat) {
	for _, s := range seats {
		key := place{s.node, s.name}
		c.left[key] = append(c.left[key], s.requests)
	}
}

func (c *changes) use(seats ...seat) { c.used = append(c.used, seats...) }

func (c *changes) quarantine(q berth.QuarantinedShare, times int) {
	c.quarantined[share{inventory.PoolID{Driver: q.Driver, Name: q.Pool}, q.Node}] += times
}

// apply makes the changes. It fails when something is to be undone that was not booked; what the ledger says is then
// worth nothing.
func (c *changes) apply(l *ledger.Ledger) error {
	take := slices.DeleteFunc(c.taken, func(h ledger.Holding) bool {
		return strike(c.given, held{h.Owner, h.Reservation, h.Pool, h.Device}, h.Equal)
	})
	use := slices.DeleteFunc(c.used, func(s seat) bool {
		return strike(c.left, place{s.node, s.name}, func(r map[string]int64) bool { return maps.Equal(r, s.requests) })
	})
	for _, list := range c.given {
		for _, h := range list {
			if !l.Give(h) {
				return fmt.Errorf("device %s/%s is to be given back by %s, which does not hold it", h.Pool, h.Device, h.Owner)
			}
		}
	}
	for at, list := range c.left {
		for _, requests := range list {
			if !l.Leave(at.node, at.name, requests) {
				return fmt.Errorf("%s is to leave host %s, where it does not stand", at.name, at.node)
			}
		}
	}
	for s, times := range c.quarantined {
		for range -times {
			if !l.Lift(s.pool, s.host) {
				return fmt.Errorf("a quarantine of pool %s on host %s is to be lifted, and there is none", s.pool, s.host)
			}
		}
	}
	for _, h := range take {
		l.Take(h)
	}
	for _, s := range use {
		l.Use(s.node, s.name, s.requests)
	}
	for s, times := range c.quarantined {
		for range times {
			l.Quarantine(s.pool, s.host)
		}
	}
	return nil
}

// strike takes one value out of a list, or is false when there is none.
func strike[K comparable, V any](lists map[K][]V, key K, equal func(V) bool) bool {
	list := lists[key]
	i := slices.IndexFunc(list, equal)
	if i < 0 {
		return false
	}
	lists[key] = slices.Delete(list, i, i+1)
	return true
}

// shared keeps one of each requests that it meets: the pods of a cluster ask for few different things.
type shared struct {
	known map[uint64][]map[string]int64
	// simple are the requests of pods that share one container with others and have nothing else that counts; see
	// nodes.Bare.
	simple map[*corev1.Container]map[string]int64
	size   int
}

// mostShared bounds what shared keeps; beyond it everything is forgotten, which costs memory only.
const mostShared = 1 << 16

// of is what the pod takes. The caller must not change it.
func (s *shared) of(p *corev1.Pod) map[string]int64 {
	if s.known == nil || s.size >= mostShared {
		s.known, s.simple, s.size = map[uint64][]map[string]int64{}, map[*corev1.Container]map[string]int64{}, 0
	}
	simple := len(p.Spec.Containers) == 1 && len(p.Spec.InitContainers) == 0 && p.Spec.Overhead == nil && p.Spec.Resources == nil &&
		len(p.Status.ContainerStatuses) == 0 && len(p.Status.InitContainerStatuses) == 0 && p.Status.Resources == nil
	if simple {
		if have, known := s.simple[&p.Spec.Containers[0]]; known {
			return have
		}
	}
	used := s.one(nodes.Used(p))
	if simple {
		s.simple[&p.Spec.Containers[0]] = used
		s.size++
	}
	return used
}

func (s *shared) one(requests map[string]int64) map[string]int64 {
	print := nodes.Fingerprint(requests)
	for _, have := range s.known[print] {
		if maps.Equal(have, requests) {
			return have
		}
	}
	s.known[print] = append(s.known[print], requests)
	s.size++
	return requests
}
