package invariants

import (
	"sort"
	"strconv"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// keepFor is how long superseded versions are kept: long against the time that confirming a suspicion may take.
const keepFor = 2 * time.Minute

// version is an object as it was from one revision on.
type version struct {
	// rv is the revision of this version. since is the earliest revision at which the object can have become like this;
	// it differs from rv only after a watch had a gap.
	since, rv uint64
	// seen is when the watcher learnt of it.
	seen time.Time
	// gone versions carry the object's last content.
	gone bool
	// initial versions were there when the watcher came.
	initial bool
	obj     client.Object
}

// exact reports whether the change to this version was seen as an event.
func (v version) exact() bool { return !v.initial && v.since == v.rv }

// history is what happened to one name, oldest first.
type history []version

func (h history) last() (version, bool) {
	if len(h) == 0 {
		return version{}, false
	}
	return h[len(h)-1], true
}

// at returns the object at a revision; nil if there was none.
func (h history) at(rv uint64) client.Object {
	i := sort.Search(len(h), func(i int) bool { return h[i].rv > rv })
	if i == 0 || h[i-1].gone {
		return nil
	}
	return h[i-1].obj
}

// add appends a version and forgets those that have been superseded for long.
func (h history) add(v version) history {
	drop := 0
	for drop+1 < len(h) && v.seen.Sub(h[drop+1].seen) > keepFor {
		drop++
	}
	return append(h[drop:], v)
}

// revisionsFrom appends the revisions in h that are later than from.
func (h history) revisionsFrom(from uint64, to []uint64) []uint64 {
	for i := len(h) - 1; i >= 0 && h[i].rv > from; i-- {
		to = append(to, h[i].rv)
	}
	return to
}

// revision reads a resourceVersion; 0 if it is none.
func revision(resourceVersion string) uint64 {
	rv, err := strconv.ParseUint(resourceVersion, 10, 64)
	if err != nil {
		return 0
	}
	return rv
}
