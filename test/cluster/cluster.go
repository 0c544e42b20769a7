package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
)

// Cluster is a running control plane. All methods may be called from any goroutine.
type Cluster struct {
	// Dir holds the data, certificates, kubeconfigs and logs.
	Dir string

	options    Options
	temporary  bool // Dir is ours to remove
	binaries   Binaries
	pki        *pki
	identities map[string]identity
	ports      portLocks
	apiPort    int

	client  kubernetes.Interface
	dynamic dynamic.Interface
	mapper  *mapper

	mu        sync.Mutex
	processes []*Process // in the order they were started
}

// Start builds what is missing and starts a cluster. It returns when everything that was asked for serves: webhooks
// answer and the default service account exists. On failure nothing is left running, the error names the component that
// failed and quotes its log, and the folder with all logs stays unless ctx was cancelled.
//
// The cluster runs until Stop; the end of ctx only interrupts the start.
func Start(ctx context.Context, options Options) (*Cluster, error) {
	if err := options.setDefaults(); err != nil {
		return nil, err
	}
	c := &Cluster{options: options, identities: newIdentities()}
	if err := c.start(ctx); err != nil {
		err = fmt.Errorf("starting a cluster: %w", err)
		if c.Dir != "" && !errors.Is(ctx.Err(), context.Canceled) {
			c.temporary = false // keep the logs; whoever interrupts has no use for them
			err = fmt.Errorf("%w\nlogs are kept in %s", err, c.Dir)
		}
		return nil, errors.Join(err, c.Stop())
	}
	return c, nil
}

func (c *Cluster) start(ctx context.Context) error {
	var names []string
	for _, name := range []string{Etcd, APIServer, ControllerManager, Scheduler, Kueue, KWOK} {
		if c.options.has(name) {
			names = append(names, name)
		}
	}
	var err error
	if c.binaries, err = Build(ctx, c.options.Repository, c.options.Log, names...); err != nil {
		return err
	}
	began := time.Now()
	if err := c.prepareDir(); err != nil {
		return err
	}
	if err := c.startAPIServer(ctx); err != nil {
		return err
	}
	c.say("%s is ready after %s", APIServer, time.Since(began).Round(time.Millisecond))

	var jobs []func() error
	add := func(name string, job func(context.Context) error) {
		if c.options.has(name) {
			jobs = append(jobs, func() error {
				if err := job(ctx); err != nil {
					return err
				}
				c.say("%s is ready after %s", name, time.Since(began).Round(time.Millisecond))
				return nil
			})
		}
	}
	add(Kueue, c.startKueue) // first: it takes longest
	add(ControllerManager, c.startControllerManager)
	add(Scheduler, c.startScheduler)
	add(KWOK, c.startKWOK)
	return all(jobs...)
}

func (c *Cluster) prepareDir() error {
	c.Dir = c.options.Dir
	if c.Dir == "" {
		dir, err := os.MkdirTemp("", "berth-cluster-")
		if err != nil {
			return err
		}
		c.Dir, c.temporary = dir, true
	}
	for _, sub := range []string{"logs", "etcd"} {
		if err := os.MkdirAll(filepath.Join(c.Dir, sub), 0o700); err != nil {
			return err
		}
	}
	var err error
	if c.pki, err = newPKI(filepath.Join(c.Dir, "pki")); err != nil {
		return err
	}
	return c.write("tokens.csv", tokenFile(c.identities))
}

// Stop ends all processes that this cluster started, the last first, and removes its temporary folder.
func (c *Cluster) Stop() error {
	c.mu.Lock()
	processes := slices.Clone(c.processes)
	c.mu.Unlock()

	// Clients first and together; then the API server, which would otherwise wait for them; then etcd.
	var clients []func() error
	var servers []*Process
	for _, p := range processes {
		if p.Name() == Etcd || p.Name() == APIServer {
			servers = append(servers, p)
			continue
		}
		clients = append(clients, p.Stop)
	}
	err := all(clients...)
	slices.Reverse(servers)
	for _, p := range servers {
		err = errors.Join(err, p.Stop())
	}
	c.ports.release()
	if c.temporary {
		err = errors.Join(err, os.RemoveAll(c.Dir))
	}
	return err
}

// KeepDir makes Stop leave the temporary folder in place, for somebody who wants to read the logs.
func (c *Cluster) KeepDir() { c.temporary = false }

// Process returns the process registered under name, one of the component names or that of a Command given to Run.
// It is nil if the cluster has none.
func (c *Cluster) Process(name string) *Process {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range c.processes {
		if p.Name() == name {
			return p
		}
	}
	return nil
}

// Processes returns all processes in the order they were started.
func (c *Cluster) Processes() []*Process {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.processes)
}

// Run starts a further program under the cluster's care, for instance a controller under test: it has a log, is stopped
// with the cluster, and is found by Process. If it does not become ready, the returned process can be started again.
func (c *Cluster) Run(ctx context.Context, command Command) (*Process, error) {
	p := &Process{
		command: command,
		dir:     c.Dir,
		logPath: filepath.Join(c.Dir, "logs", command.Name+".log"),
	}
	if !c.register(p) {
		return nil, fmt.Errorf("the cluster already has a process %s", command.Name)
	}
	return p, p.Start(ctx)
}

// register adds p before it is started, so that Stop finds it whatever happens. It fails if the name is taken.
func (c *Cluster) register(p *Process) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if slices.ContainsFunc(c.processes, func(other *Process) bool { return other.Name() == p.Name() }) {
		return false
	}
	c.processes = append(c.processes, p)
	return true
}

// FreePort returns a port on 127.0.0.1 that stays reserved for the caller as long as the cluster runs.
func (c *Cluster) FreePort() (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ports.take()
}

// Crashed returns an error that names every process that ended without having been stopped.
func (c *Cluster) Crashed() error {
	var errs []error
	for _, p := range c.Processes() {
		errs = append(errs, p.Crashed())
	}
	return errors.Join(errs...)
}

// LogTails returns the last n lines of every process's log.
func (c *Cluster) LogTails(n int) string {
	var all string
	for _, p := range c.Processes() {
		all += p.LogTail(n) + "\n"
	}
	return all
}

// Client returns a typed client of the administrator.
func (c *Cluster) Client() kubernetes.Interface { return c.client }

// Dynamic returns a dynamic client of the administrator.
func (c *Cluster) Dynamic() dynamic.Interface { return c.dynamic }

func (c *Cluster) path(name string) string { return filepath.Join(c.Dir, name) }

func (c *Cluster) write(name string, content []byte) error {
	return os.WriteFile(c.path(name), content, 0o600)
}

func (c *Cluster) say(format string, args ...any) {
	_, _ = io.WriteString(c.options.Log, fmt.Sprintf(format+"\n", args...))
}
