package release

import (
	"cmp"
	"runtime/debug"
)

// version is set by the linker: -X github.com/berth-dev/berth/cmd/internal/release.version=v1.2.3.
var version string

// Version is the release, or what the Go toolchain knows of the build.
func Version() string {
	if version != "" {
		return version
	}
	build, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	name := cmp.Or(build.Main.Version, "(devel)")
	for _, setting := range build.Settings {
		if setting.Key == "vcs.revision" && name == "(devel)" {
			name += " " + setting.Value
		}
	}
	return name
}
