package cluster

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestFindRepository(t *testing.T) {
	root, err := FindRepository("components/kueue") // a module of its own inside the repository
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(root, "test", "cluster", "parts_test.go")); err != nil {
		t.Error(err)
	}
	if root, err := FindRepository(t.TempDir()); err == nil {
		t.Errorf("found %s from outside", root)
	}
}

func TestComponentKeyFollowsItsSources(t *testing.T) {
	root := t.TempDir()
	c := component{dir: "some"}
	write := func(name, content string) {
		t.Helper()
		if err := os.MkdirAll(c.source(root), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(c.source(root), name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	key := func() string {
		t.Helper()
		key, err := c.key(root)
		if err != nil {
			t.Fatal(err)
		}
		return key
	}
	write("go.mod", "module some\nrequire other v1.0.0\n")
	before := key()
	if again := key(); again != before {
		t.Errorf("key of the same files changed from %s to %s", before, again)
	}
	write("go.mod", "module some\nrequire other v1.0.1\n")
	if key() == before {
		t.Error("another pin has the same key")
	}
}

func TestEveryComponentHasItsPin(t *testing.T) {
	for _, c := range components {
		mod, err := os.ReadFile(filepath.Join("components", c.dir, "go.mod"))
		if err != nil {
			t.Error(err)
		} else if !strings.Contains(string(mod), c.pin+" v") {
			t.Errorf("components/%s does not pin %s", c.dir, c.pin)
		}
	}
}

func TestDecode(t *testing.T) {
	objects, err := decode(strings.NewReader(`---
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}
- {apiVersion: v1, kind: ConfigMap, metadata: {name: b}}
---
---
# nothing but a comment
---
apiVersion: v1
kind: ConfigMap
metadata: {name: c}
`))
	if err != nil {
		t.Fatal(err)
	}
	var names string
	for _, object := range objects {
		names += object.GetName()
	}
	if names != "abc" {
		t.Errorf("decoded %q, want abc", names)
	}
	if _, err := decode(strings.NewReader("metadata: {name: nameless}\n")); err == nil {
		t.Error("an object without kind was accepted")
	}
}

func TestParseWrite(t *testing.T) {
	write, err := parseWrite([]byte(`{"kind":"Event","level":"Metadata","verb":"patch","userAgent":"kwok/v0",
		"user":{"username":"admin","groups":["system:masters"]},"impersonatedUser":{"username":"alice"},
		"objectRef":{"resource":"pods","namespace":"default","name":"p","apiVersion":"v1","subresource":"status"},
		"responseStatus":{"metadata":{},"code":200},"requestReceivedTimestamp":"2026-01-02T03:04:05.000006Z"}`))
	if err != nil {
		t.Fatal(err)
	}
	want := Write{
		Time: time.Date(2026, 1, 2, 3, 4, 5, 6000, time.UTC), User: "admin", As: "alice", UserAgent: "kwok/v0",
		Verb: "patch", Resource: "pods/status", Namespace: "default", Name: "p", Code: 200,
	}
	if write != want {
		t.Errorf("got %+v, want %+v", write, want)
	}
}

// The API server appends to the log while it is read.
func TestWritesOfALogThatEndsWithinALine(t *testing.T) {
	c := &Cluster{Dir: t.TempDir(), options: Options{Audit: true}}
	const first, second = `{"verb":"create","objectRef":{"resource":"pods"}}` + "\n", `{"verb":"delete","objectRef":{"resource":"pods"}}` + "\n"
	verbs := func(log string) (verbs []string, err error) {
		t.Helper()
		if err := os.WriteFile(c.AuditLog(), []byte(log), 0o600); err != nil {
			t.Fatal(err)
		}
		writes, err := c.Writes(t.Context(), nil)
		for _, w := range writes {
			verbs = append(verbs, w.Verb)
		}
		return verbs, err
	}
	for log, want := range map[string][]string{
		"":                             nil,
		first[:len(first)/2]:           nil,
		first:                          {"create"},
		first + second[:len(second)/2]: {"create"},
		first + second[:len(second)-1]: {"create"},
		first + second:                 {"create", "delete"},
		first + second + "{":           {"create", "delete"},
	} {
		if got, err := verbs(log); err != nil || !slices.Equal(got, want) {
			t.Errorf("of %q: %v and %v, want %v", log, got, err, want)
		}
	}
	if _, err := verbs(first[:len(first)/2] + "\n" + second); err == nil {
		t.Error("a broken line that has ended was accepted")
	}
}

func TestPortsAreNotSharedBetweenClusters(t *testing.T) {
	var one, two portLocks
	defer one.release()
	defer two.release()
	taken := map[int]bool{}
	for range 20 {
		for _, locks := range []*portLocks{&one, &two} {
			port, err := locks.take()
			if err != nil {
				t.Fatal(err)
			}
			if taken[port] {
				t.Fatalf("port %d was given out twice", port)
			}
			taken[port] = true
		}
	}
}

func TestAwaitKeepsTheLastErrorAndStopsAtAPermanentOne(t *testing.T) {
	refused := errors.New("refused")
	err := await(context.Background(), 20*pollEvery, func(context.Context) (bool, error) { return false, refused })
	if !errors.Is(err, refused) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want both the time-out and its reason", err)
	}
	calls := 0
	err = await(context.Background(), time.Minute, func(context.Context) (bool, error) {
		calls++
		return false, permanent{refused}
	})
	if !errors.Is(err, refused) || calls != 1 {
		t.Errorf("got %v after %d calls, want it at once", err, calls)
	}
}

func TestOptionsAreChecked(t *testing.T) {
	for name, options := range map[string]Options{
		"no such component":           {Without: []string{"kubelet"}},
		"etcd is needed":              {Without: []string{Etcd}},
		"flags for what is left out":  {Without: OnlyAPIServer, Args: map[string][]string{Kueue: {"--x"}}},
		"flags for what is not there": {Args: map[string][]string{"kubelet": {"--x"}}},
		"completion":                  {KWOK: KWOKOptions{Completion: "Sometimes"}},
	} {
		if err := options.setDefaults(); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}
