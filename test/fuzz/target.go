package main

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// target is one fuzz test.
type target struct {
	// dir is its package's folder, relative to the module, with slashes.
	dir  string
	name string
}

var declaration = regexp.MustCompile(`(?m)^func (Fuzz\w+)\(\w+ \*testing\.F\)`)

// find lists the targets below a folder by package and name.
func find(root string, only *regexp.Regexp) ([]target, error) {
	var out []target
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && path != root && strings.HasPrefix(d.Name(), ".") {
			return fs.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return nil
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, m := range declaration.FindAllSubmatch(content, -1) {
			if name := string(m[1]); only.MatchString(name) {
				out = append(out, target{dir: filepath.ToSlash(filepath.Dir(path)), name: name})
			}
		}
		return nil
	})
	slices.SortFunc(out, func(a, b target) int { return strings.Compare(a.dir+" "+a.name, b.dir+" "+b.name) })
	return out, err
}

var progress = regexp.MustCompile(`execs: (\d+)`)

// run fuzzes for some time and counts the executions. Go minimises every new input for up to a minute before it goes on
// unless told otherwise; keep sees to what is kept.
func (t target) run(each time.Duration) (execs int, took time.Duration, ok bool) {
	var said bytes.Buffer
	out := io.MultiWriter(&said, os.Stderr)
	began := time.Now()
	err := command(out, "go", "test", "-run=^$", "-fuzz=^"+t.name+"$", "-fuzztime="+each.String(), "-fuzzminimizetime=20x", "-parallel=1", "./"+t.dir)
	if all := progress.FindAllSubmatch(said.Bytes(), -1); len(all) > 0 {
		execs, _ = strconv.Atoi(string(all[len(all)-1][1])) // digits, by the expression
	}
	return execs, time.Since(began), err == nil
}

func command(out io.Writer, name string, args ...string) error {
	c := exec.Command(name, args...)
	c.Stdout, c.Stderr = out, out
	if err := c.Run(); err != nil {
		return fmt.Errorf("%s %s: %w", name, strings.Join(args, " "), err)
	}
	return nil
}

// found is the folder in which Go collects what it found interesting.
func (t target) found() (string, error) {
	var out bytes.Buffer
	if err := command(&out, "go", "list", "-f", "{{.ImportPath}}", "./"+t.dir); err != nil {
		return "", err
	}
	var cache bytes.Buffer
	if err := command(&cache, "go", "env", "GOCACHE"); err != nil {
		return "", err
	}
	return filepath.Join(strings.TrimSpace(cache.String()), "fuzz", filepath.FromSlash(strings.TrimSpace(out.String())), t.name), nil
}
