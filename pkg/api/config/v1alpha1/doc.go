// Package v1alpha1 is the controller's one configuration file: kind BerthConfiguration, apiVersion
// config.berth.dev/v1alpha1.
//
//	config, err := v1alpha1.Load("/etc/berth/config.yaml")
//
// A file states only what differs from Default. Reading it is strict: unknown and repeated fields, values of the wrong
// type and values that make no sense are faults, and all of them are reported at once, each with file, line and field.
//
// The types hold plain values only, so that a copy of a BerthConfiguration is independent of the original.
package v1alpha1
