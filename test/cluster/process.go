package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Command says how to run one program of a cluster.
type Command struct {
	// Name identifies the process within its cluster and names its log file.
	Name string
	// Path of the executable.
	Path string
	// Args without the program's name.
	Args []string
	// Env is added to the small environment all processes get: PATH, and HOME and TMPDIR inside the cluster's folder.
	Env []string
	// Ports that must be free again before Stop returns.
	Ports []int
	// Ready reports whether the program serves. Nil means ready as soon as it runs.
	Ready func(context.Context) (bool, error)
	// ReadyTimeout bounds the wait for Ready; default 3 min.
	ReadyTimeout time.Duration
	// StopGrace is how long the program may take to end by itself before it is killed; default 5 s.
	StopGrace time.Duration
}

// stopGrace is the default of Command.StopGrace.
const stopGrace = 5 * time.Second

// Process is one program of a cluster. It may be stopped and started any number of times; ports, data and log file stay
// the same. Its methods may be called from any goroutine; one call runs at a time.
type Process struct {
	command Command
	dir     string
	logPath string

	mu      sync.Mutex
	cmd     *exec.Cmd     // nil unless started and not yet stopped
	exited  chan struct{} // closed when cmd has ended and waitErr is set
	waitErr error
}

// Name returns the name the process was registered under.
func (p *Process) Name() string { return p.command.Name }

// LogPath returns the file that collects standard output and error of all runs of this process.
func (p *Process) LogPath() string { return p.logPath }

// PID returns the process ID, or 0 if the process is not started.
func (p *Process) PID() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cmd == nil {
		return 0
	}
	return p.cmd.Process.Pid
}

// Start runs the program and returns when it is ready. If it exits, or is not ready in time, the error names it and
// quotes the end of its log, and nothing is left running. Starting a running process is an error.
func (p *Process) Start(ctx context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cmd != nil {
		return fmt.Errorf("%s: already started", p.command.Name)
	}
	if err := p.launch(); err != nil {
		return fmt.Errorf("%s: %w", p.command.Name, err)
	}
	if err := p.awaitReady(ctx); err != nil {
		err = fmt.Errorf("%s: %w\n%s", p.command.Name, err, p.LogTail(30))
		return errors.Join(err, p.stop())
	}
	return nil
}

// collect lets the garbage of components, which live for a minute or so, grow larger before it is collected: that took a
// quarter of the processor time of a test.
const collect = "GOGC=400"

func (p *Process) launch() error {
	log, err := os.OpenFile(p.logPath, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer log.Close() // the child has its own descriptor
	cmd := exec.Command(p.command.Path, p.command.Args...)
	cmd.Dir = p.dir
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + p.dir, "TMPDIR=" + p.dir, collect}, p.command.Env...)
	cmd.Stdout, cmd.Stderr = log, log
	fmt.Fprintf(log, "# %s %s %s\n", time.Now().Format(time.RFC3339Nano), p.command.Path, strings.Join(p.command.Args, " "))
	if err := spawn(cmd); err != nil {
		return err
	}
	exited := make(chan struct{})
	p.cmd, p.exited, p.waitErr = cmd, exited, nil
	go func() {
		err := cmd.Wait()
		// Written before the close, read only after it.
		p.waitErr = err
		close(exited)
	}()
	return nil
}

func (p *Process) awaitReady(ctx context.Context) error {
	if p.command.Ready == nil {
		return nil
	}
	limit := p.command.ReadyTimeout
	if limit == 0 {
		limit = readyLimit
	}
	err := await(ctx, limit, func(ctx context.Context) (bool, error) {
		select {
		case <-p.exited:
			return false, permanent{fmt.Errorf("exited before it was ready: %w", exitReason(p.waitErr))}
		default:
			return p.command.Ready(ctx)
		}
	})
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("not ready: %w", err)
	}
	return err
}

// Stop ends the process, politely first, and returns once its ports are free again. A paused process is resumed to hear
// of it. Stopping a process that is not started does nothing.
func (p *Process) Stop() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.stop()
}

// Kill is Stop without the politeness: the process gets no chance to finish or release anything.
func (p *Process) Kill() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cmd == nil {
		return nil
	}
	_ = p.cmd.Process.Kill()
	return p.stop()
}

func (p *Process) stop() error {
	if p.cmd == nil {
		return nil
	}
	// Process.Signal refuses once Wait has reaped the child, so a recycled pid cannot be hit.
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	_ = p.cmd.Process.Signal(syscall.SIGCONT)
	timer := time.NewTimer(cmp.Or(p.command.StopGrace, stopGrace))
	defer timer.Stop()
	select {
	case <-p.exited:
	case <-timer.C:
		_ = p.cmd.Process.Kill()
		<-p.exited
	}
	p.cmd = nil
	if err := awaitPortsFree(context.Background(), p.command.Ports); err != nil {
		return fmt.Errorf("%s: %w", p.command.Name, err)
	}
	return nil
}

// Restart is Stop and Start.
func (p *Process) Restart(ctx context.Context) error {
	if err := p.Stop(); err != nil {
		return err
	}
	return p.Start(ctx)
}

// Pause freezes the process: its connections stay open and its ports taken, but it does nothing until Resume. On a busy
// machine it takes a moment until the signal has reached all threads, so that is awaited.
func (p *Process) Pause() error {
	if err := p.signal(syscall.SIGSTOP); err != nil {
		return err
	}
	for end := time.Now().Add(pausePatience); !stopped(p.PID()); {
		if time.Now().After(end) {
			return fmt.Errorf("%s: it goes on after a SIGSTOP", p.command.Name)
		}
		time.Sleep(time.Millisecond) // nothing tells when another process has stopped
	}
	return nil
}

const pausePatience = 10 * time.Second

// Resume lets a paused process go on.
func (p *Process) Resume() error { return p.signal(syscall.SIGCONT) }

func (p *Process) signal(sig syscall.Signal) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cmd == nil {
		return fmt.Errorf("%s: not started", p.command.Name)
	}
	if err := p.cmd.Process.Signal(sig); err != nil {
		return fmt.Errorf("%s: %w", p.command.Name, err)
	}
	return nil
}

// Crashed returns an error if the process was started, was not stopped, and has ended all the same.
func (p *Process) Crashed() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cmd == nil {
		return nil
	}
	select {
	case <-p.exited:
		return fmt.Errorf("%s: ended by itself: %w", p.command.Name, exitReason(p.waitErr))
	default:
		return nil
	}
}

// Ready asks the process once whether it serves.
func (p *Process) Ready(ctx context.Context) (bool, error) {
	if p.PID() == 0 {
		return false, nil
	}
	if p.command.Ready == nil {
		return true, nil
	}
	return p.command.Ready(ctx)
}

// LogTail returns up to n last lines of the log under a heading with the file's path.
func (p *Process) LogTail(n int) string {
	const enough = 64 << 10
	f, err := os.Open(p.logPath)
	if err != nil {
		return fmt.Sprintf("--- no log of %s: %v", p.command.Name, err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return fmt.Sprintf("--- no log of %s: %v", p.command.Name, err)
	}
	buf := make([]byte, min(info.Size(), enough))
	read, _ := f.ReadAt(buf, info.Size()-int64(len(buf)))
	lines := strings.Split(strings.TrimRight(string(buf[:read]), "\n"), "\n")
	lines = lines[max(0, len(lines)-n):]
	for i, line := range lines {
		// Flag tables and stack dumps come in single lines of many kilobytes.
		lines[i] = line[:min(len(line), 1000)]
	}
	return fmt.Sprintf("--- last %d lines of %s\n%s", len(lines), filepath.Base(p.logPath), strings.Join(lines, "\n"))
}

func exitReason(err error) error {
	if err == nil {
		return errors.New("exit status 0")
	}
	return err
}
