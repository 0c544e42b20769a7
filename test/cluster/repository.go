package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

const modulePath = "github.com/berth-dev/berth"

// FindRepository returns the root folder of the Berth checkout that dir lies in.
func FindRepository(dir string) (string, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	for at := abs; ; at = filepath.Dir(at) {
		content, err := os.ReadFile(filepath.Join(at, "go.mod"))
		// The components are modules below the root, with longer names.
		if err == nil && bytes.HasPrefix(content, []byte("module "+modulePath+"\n")) {
			return at, nil
		}
		if at == filepath.Dir(at) {
			return "", fmt.Errorf("%s is not inside a checkout of %s", abs, modulePath)
		}
	}
}

// CacheDir returns the git-ignored folder of the checkout at root that takes everything built or left behind.
func CacheDir(root string) string { return filepath.Join(root, ".cache") }

// goTool runs the go command in dir and returns what it wrote to standard output.
func goTool(ctx context.Context, dir string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = dir
	// A workspace or flags of the caller's module must not leak into the components.
	cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=readonly")
	out, err := cmd.Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			err = fmt.Errorf("%w\n%s", err, exit.Stderr)
		}
		return "", fmt.Errorf("go %s in %s: %w", strings.Join(args, " "), dir, err)
	}
	return strings.TrimSpace(string(out)), nil
}

// module is a dependency as pinned by a component's go.mod.
type module struct {
	version string // with the leading v
	dir     string // its source in the module cache
}

func pinned(ctx context.Context, componentDir, path string) (module, error) {
	out, err := goTool(ctx, componentDir, "list", "-m", "-f", "{{.Version}} {{.Dir}}", path)
	if err != nil {
		return module{}, err
	}
	version, dir, _ := strings.Cut(out, " ")
	if dir == "" {
		// Pinned, but not unpacked here yet: the binary came from elsewhere.
		if _, err := goTool(ctx, componentDir, "mod", "download", path); err != nil {
			return module{}, err
		}
		if dir, err = goTool(ctx, componentDir, "list", "-m", "-f", "{{.Dir}}", path); err != nil {
			return module{}, err
		}
	}
	return module{version: version, dir: dir}, nil
}
