package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/berth-dev/berth/test/cluster"
)

const usage = `usage: cluster build | up [flags] | down

flags of up:
`

func main() {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "cluster:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("cluster", flag.ContinueOnError)
	without := flags.String("without", "", "comma-separated components to leave out")
	audit := flags.Bool("audit", false, "record all writes in audit.log")
	completion := flags.String("completion", string(cluster.CompleteOnRequest),
		"when pods of Jobs succeed: AtOnce, or OnRequest (annotation kwok.berth.dev/complete)")
	flags.Usage = func() {
		fmt.Fprint(flags.Output(), usage)
		flags.PrintDefaults()
	}
	if len(args) == 0 {
		flags.Usage()
		return fmt.Errorf("no command")
	}
	if err := flags.Parse(args[1:]); err != nil {
		return err
	}
	root, err := cluster.FindRepository(".")
	if err != nil {
		return err
	}
	at := place{root: root, dir: filepath.Join(cluster.CacheDir(root), "cluster")}

	options := cluster.Options{
		Repository: root,
		Dir:        at.dir,
		Audit:      *audit,
		KWOK:       cluster.KWOKOptions{Completion: cluster.Completion(*completion)},
		Log:        os.Stderr,
	}
	if *without != "" {
		options.Without = strings.Split(*without, ",")
	}
	switch args[0] {
	case "build":
		_, err := cluster.Build(ctx, root, os.Stderr)
		return err
	case "up":
		return at.up(ctx, args[1:])
	case "down":
		return at.down()
	case "supervise": // what up starts in the background; not for people
		return at.supervise(ctx, options)
	}
	flags.Usage()
	return fmt.Errorf("unknown command %q", args[0])
}

// up starts a supervisor and returns when its cluster is ready.
func (p place) up(ctx context.Context, flags []string) error {
	// Built here, so that progress and an interrupt reach the person at the terminal.
	if _, err := cluster.Build(ctx, p.root, os.Stderr); err != nil {
		return err
	}
	guard, err := p.lock()
	if err != nil {
		return err
	}
	defer guard.Close()
	if old, ok := p.running(); ok {
		return fmt.Errorf("already up (supervisor %d); %s", old.PID, p.howTo())
	}
	if err := p.clear(); err != nil {
		return err
	}
	began := time.Now()
	child, err := p.detach(flags)
	if err != nil {
		return err
	}
	if err := p.awaitReady(ctx, child); err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "ready after %s; stop with: make cluster-down\n", time.Since(began).Round(time.Millisecond))
	fmt.Println(p.howTo())
	return nil
}

func (p place) howTo() string { return "export KUBECONFIG=" + filepath.Join(p.dir, "kubeconfig") }

// supervise runs a cluster until it is told to end or a component does so by itself.
func (p place) supervise(ctx context.Context, options cluster.Options) error {
	c, err := cluster.Start(ctx, options)
	if err != nil {
		return err
	}
	if err := p.markReady(); err != nil {
		return err
	}
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	reported := ""
	for {
		select {
		case <-ctx.Done():
			return c.Stop()
		case <-ticker.C:
			// The rest stays up: whoever works with the cluster may be after just this.
			if err := c.Crashed(); err != nil && err.Error() != reported {
				reported = err.Error()
				fmt.Fprintln(os.Stderr, err)
			}
		}
	}
}
