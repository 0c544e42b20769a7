// Package config holds the manifests that a cluster needs before berth-controller starts, for kubectl and for programs
// alike: custom resource definitions, admission policies and access rights.
package config
