package fold

import (
	"github.com/berth-dev/berth/pkg/inventory"
	"github.com/berth-dev/berth/pkg/reason"
)

// Fold is what somebody asked for: the devices of some classes in some pools as quota of one resource of one flavor.
type Fold struct {
	Name string
	// Revision is another one when something else is asked for.
	Revision string
	// Classes are names of DeviceClasses.
	Classes []string
	// In accepts the pools that count.
	In func(inventory.PoolID) bool
	// Flavor and Resource say which quota follows.
	Flavor, Resource string
	Live             bool
	// Stands is true when it has promised something: should it make no sense now, that stays promised, and its hosts its own.
	Stands bool
	// Writes names the objects whose quota it writes, each as kind and name.
	Writes []string
}

// Compiled is a fold on the hardware that exists.
type Compiled struct {
	Fold
	// Hosts that devices of the fold stand on, sound or not, and those of pools that are withheld or gone now. They are this
	// fold's alone.
	Hosts map[string]struct{}
	// Published is how many shares there would be if everything were sound.
	Published int
	// Problem is why nothing of it may be written; nil for a fold that makes sense.
	Problem *reason.Refusal
	// NotTiling says which class cannot fill what the classes fill together; nil when each can.
	NotTiling *reason.Refusal
	// Counted are the classes whose free devices a Live fold counts: all, or the smallest where they do not tile.
	Counted []string
}
