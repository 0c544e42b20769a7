package main

import (
	"cmp"
	"runtime/debug"
)

// release is set by the linker: -X main.release=v1.2.3.
var release string

// version is the release, or what the Go toolchain knows of the build.
func version() string {
	if release != "" {
		return release
	}
	build, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	version := cmp.Or(build.Main.Version, "(devel)")
	for _, setting := range build.Settings {
		if setting.Key == "vcs.revision" && version == "(devel)" {
			version += " " + setting.Value
		}
	}
	return version
}
