package matrix

import (
	"fmt"
	"slices"

	"github.com/berth-dev/berth/test/faults"
)

// story is how the slice of a gang comes to be given back.
type story string

const (
	// ends: the gang runs to its end.
	ends story = "ends"
	// evicted: its claim is deleted by hand while it runs, so it is evicted as a whole, and then runs to its end.
	evicted story = "evicted"
)

// site is one write of a story.
type site struct {
	story
	faults.Site
}

func (s site) String() string {
	if s.story == ends {
		return s.Site.String()
	}
	return string(s.story) + ": " + s.Site.String()
}

// accidents are those that can happen to a gang at the site. In the other story the claim is deleted already.
func (s site) accidents() []accident {
	if s.story == ends {
		return accidents
	}
	return slices.DeleteFunc(slices.Clone(accidents), func(a accident) bool { return a == claimDeleted })
}

// takeover is what becomes of the process that was struck.
type takeover string

const (
	// restart: it is dead, and a new one starts with empty caches.
	restart takeover = "restart"
	// laggard: it is dead, and a stand-by takes over whose watches are held back.
	laggard takeover = "laggard"
	// survives: it got an error and lives on.
	survives takeover = "survives"
)

// accident is what else happens between the fault and the takeover.
type accident string

const (
	nothing          accident = "nothing"
	workloadDeleted  accident = "Workload deleted"
	jobDeleted       accident = "Job deleted"
	namespaceDeleted accident = "namespace deleted"
	claimDeleted     accident = "claim deleted"
	queueHeld        accident = "ClusterQueue held"
)

var accidents = []accident{nothing, workloadDeleted, jobDeleted, namespaceDeleted, claimDeleted, queueHeld}

// cell is one field of the matrix.
type cell struct {
	site     site
	kind     faults.Kind
	takeover takeover
	accident accident
}

func (c cell) String() string {
	return fmt.Sprintf("%s, %s, %s, %s", c.site, c.kind, c.takeover, c.accident)
}

// kinds are the faults that a takeover is combined with. The death of a process right after a write that passed is no
// fault to one that survives.
func kinds(t takeover) []faults.Kind {
	if t == survives {
		return []faults.Kind{faults.Before, faults.NoResponse}
	}
	return []faults.Kind{faults.Before, faults.NoResponse, faults.After}
}

// fault is what strikes the process in the cell's namespace.
func (c cell) fault() faults.Fault {
	return faults.Fault{At: c.site.Site, Kind: c.kind, Transient: c.takeover == survives}
}
