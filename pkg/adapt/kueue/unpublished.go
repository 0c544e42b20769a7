package kueue

import (
	"github.com/berth-dev/berth/pkg/gang"
	"github.com/berth-dev/berth/pkg/inventory"
	"github.com/berth-dev/berth/pkg/reason"
)

// certain is the refusal itself where one of the classes that are asked for is known to be managed; elsewhere the gang waits
// until that is known. A driver that restarts, or whose last node is gone, publishes nothing for a while, and a gang that is
// none of Berth's business must not be refused meanwhile for what only Berth's gangs may not do. What does not exist is
// missing whoever manages the devices.
func certain(refusal *reason.Refusal, classes []string, inv *inventory.Inventory) *reason.Refusal {
	if refusal == nil || refusal.Code == reason.ClaimMissing {
		return refusal
	}
	if why := unpublished(classes, inv); why != nil {
		return why
	}
	return refusal
}

// Unpublished is why nobody knows yet whether a gang asks for managed devices: nothing that it asks for is published now. It
// is nil when that is known.
func Unpublished(g gang.Gang, inv *inventory.Inventory) *reason.Refusal {
	var classes []string
	for _, ps := range g.PodSets {
		classes = append(classes, classesOf(ps.Claims)...)
	}
	return unpublished(classes, inv)
}

// unpublished is why nobody knows whether one of the classes is managed; nil when that is known.
func unpublished(classes []string, inv *inventory.Inventory) *reason.Refusal {
	message := ""
	for _, name := range classes {
		c := inv.Class(name)
		if c.State == inventory.ClassManaged {
			return nil
		}
		if message == "" {
			message = c.Unseen()
		}
	}
	if message == "" {
		return nil
	}
	return &reason.Refusal{Code: reason.ShapeUnknown, Message: message}
}

// classesOf are the DeviceClasses of claims.
func classesOf(claims []gang.Claim) []string {
	var names []string
	for _, c := range claims {
		for _, r := range c.Requests {
			names = append(names, r.Class)
		}
	}
	return names
}
