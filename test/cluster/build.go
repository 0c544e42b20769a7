package cluster

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// Names of the components, as Options.Without and Cluster.Process take them.
const (
	Etcd              = "etcd"
	APIServer         = "kube-apiserver"
	ControllerManager = "kube-controller-manager"
	Scheduler         = "kube-scheduler"
	Kueue             = "kueue"
	KWOK              = "kwok"
)

// component is a module under components/ and the programs built from it.
type component struct {
	dir string // below test/cluster/components
	// pin is the module whose version this component stands for.
	pin string
	// packages to build, by the name of the resulting program.
	packages map[string]string
	// stamp are the linker's -X flags for a version such as v1.37.2.
	stamp func(version string) []string
}

var components = []component{
	{dir: "etcd", pin: "go.etcd.io/etcd/server/v3", packages: map[string]string{Etcd: "go.etcd.io/etcd/server/v3"}},
	{dir: "kwok", pin: "sigs.k8s.io/kwok", packages: map[string]string{KWOK: "sigs.k8s.io/kwok/cmd/kwok"}},
	{
		dir: "kueue", pin: "sigs.k8s.io/kueue", packages: map[string]string{Kueue: "."},
		stamp: func(version string) []string {
			return []string{"-X", "sigs.k8s.io/kueue/pkg/version.GitVersion=" + version}
		},
	},
	{
		dir: "kubernetes", pin: "k8s.io/kubernetes",
		packages: map[string]string{
			APIServer:         "k8s.io/kubernetes/cmd/kube-apiserver",
			ControllerManager: "k8s.io/kubernetes/cmd/kube-controller-manager",
			Scheduler:         "k8s.io/kubernetes/cmd/kube-scheduler",
		},
		stamp: func(version string) []string {
			// Unstamped, the API server would call itself v0.0.0 and Kueue would refuse to use newer features.
			const pkg = "k8s.io/component-base/version."
			major, minor, _ := strings.Cut(strings.TrimPrefix(version, "v"), ".")
			minor, _, _ = strings.Cut(minor, ".")
			return []string{"-X", pkg + "gitVersion=" + version, "-X", pkg + "gitMajor=" + major, "-X", pkg + "gitMinor=" + minor}
		},
	},
}

// Binaries are the paths of built programs by component name.
type Binaries map[string]string

// Build builds those of the named components that the cache of the checkout at root lacks (all, if none is named) and
// returns where they are. A build is keyed by everything in the component's folder and the Go version, so a changed pin
// builds anew and a known one costs a few milliseconds. Concurrent callers, in other processes too, wait for each other.
// Progress goes to log.
func Build(ctx context.Context, root string, log io.Writer, names ...string) (Binaries, error) {
	built := Binaries{}
	for _, c := range components {
		wanted := len(names) == 0
		for _, name := range names {
			wanted = wanted || c.packages[name] != ""
		}
		if !wanted {
			continue
		}
		dir, err := c.build(ctx, root, log)
		if err != nil {
			return nil, fmt.Errorf("building %s: %w", c.dir, err)
		}
		for name := range c.packages {
			built[name] = filepath.Join(dir, name)
		}
	}
	return built, nil
}

func (c component) source(root string) string { return componentSource(root, c.dir) }

// componentSource is the folder with the go.mod that pins a component.
func componentSource(root, dir string) string {
	return filepath.Join(root, "test", "cluster", "components", dir)
}

// build returns the folder with the programs of c.
func (c component) build(ctx context.Context, root string, log io.Writer) (string, error) {
	key, err := c.key(root)
	if err != nil {
		return "", err
	}
	cache := filepath.Join(CacheDir(root), "components")
	target := filepath.Join(cache, c.dir+"-"+key)
	if isDir(target) {
		return target, nil
	}
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return "", err
	}
	guard, err := lock(filepath.Join(cache, c.dir+".lock"))
	if err != nil {
		return "", err
	}
	defer guard.Close()
	if isDir(target) { // by whoever held the lock
		return target, nil
	}

	started := time.Now()
	report := func(format string, args ...any) {
		fmt.Fprintf(log, "%-12s %6s  %s\n", c.dir, time.Since(started).Round(time.Second), fmt.Sprintf(format, args...))
	}
	report("building (the first time this takes minutes)")
	stop := everyHalfMinute(func() { report("still building") })
	defer stop()

	scratch, err := os.MkdirTemp(cache, "building-"+c.dir+"-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(scratch)
	if err := c.compile(ctx, root, scratch); err != nil {
		return "", err
	}
	// A folder that appears whole or not at all: readers do not take the lock.
	if err := os.Rename(scratch, target); err != nil {
		return "", err
	}
	report("built")
	return target, nil
}

func (c component) compile(ctx context.Context, root, out string) error {
	source := c.source(root)
	mod, err := pinned(ctx, source, c.pin)
	if err != nil {
		return err
	}
	flags := []string{"-s", "-w"}
	if c.stamp != nil {
		flags = append(flags, c.stamp(mod.version)...)
	}
	for name, pkg := range c.packages {
		// One at a time: packages are shared through Go's build cache, and linking several at once needs gigabytes.
		_, err := goTool(ctx, source, "build", "-trimpath", "-ldflags", strings.Join(flags, " "),
			"-o", filepath.Join(out, name), pkg)
		if err != nil {
			return err
		}
	}
	return os.Chmod(out, 0o755)
}

// key hashes what determines the programs: the files of the component's folder, and the compiler.
func (c component) key(root string) (string, error) {
	source, sum := c.source(root), sha256.New()
	fmt.Fprintln(sum, runtime.Version(), runtime.GOOS, runtime.GOARCH)
	err := filepath.WalkDir(source, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(source, path)
		fmt.Fprintf(sum, "%s %d\n%s", relative, len(content), content)
		return err
	})
	return hex.EncodeToString(sum.Sum(nil))[:12], err
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// everyHalfMinute calls tell until the returned function is called.
func everyHalfMinute(tell func()) (stop func()) {
	done := make(chan struct{})
	go func() {
		ticker := time.NewTicker(30 * time.Second)
		defer ticker.Stop()
		for {
			select {
			case <-done:
				return
			case <-ticker.C:
				tell()
			}
		}
	}()
	return func() { close(done) }
}
