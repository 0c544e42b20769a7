package faults

import (
	"net/http"
	"strings"
)

// target is what the path of an API request points at.
type target struct {
	group, namespace, resource, name, subresource string
}

// parsePath reads /api/v1/… and /apis/<group>/<version>/…; for any other path the target is empty.
func parsePath(path string) target {
	var to target
	parts := strings.Split(strings.Trim(path, "/"), "/")
	switch {
	case len(parts) > 2 && parts[0] == "api":
		parts = parts[2:]
	case len(parts) > 3 && parts[0] == "apis":
		to.group, parts = parts[1], parts[3:]
	default:
		return target{}
	}
	if parts[0] == "watch" && len(parts) > 1 { // the old form of a watch
		parts = parts[1:]
	}
	// "namespaces" is a resource and also the way to those inside one. Its own subresources are these two.
	if parts[0] == "namespaces" && len(parts) > 2 && parts[2] != "status" && parts[2] != "finalize" {
		to.namespace, parts = parts[1], parts[2:]
	}
	fields := []*string{&to.resource, &to.name, &to.subresource}
	for i, part := range parts[:min(len(parts), len(fields))] {
		*fields[i] = part
	}
	return to
}

// verbOf returns the verb of a write, as in Site, or "" for a request that only reads.
func verbOf(r *http.Request, to target) string {
	switch r.Method {
	case http.MethodPost:
		return VerbCreate
	case http.MethodPut:
		return VerbUpdate
	case http.MethodPatch:
		if strings.HasPrefix(r.Header.Get("Content-Type"), "application/apply-patch") {
			return VerbApply
		}
		return VerbPatch
	case http.MethodDelete:
		if to.name == "" {
			return VerbDeleteCollection
		}
		return VerbDelete
	}
	return ""
}
