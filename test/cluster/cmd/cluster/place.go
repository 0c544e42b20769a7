package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/berth-dev/berth/test/cluster"
)

// place is the folder of the one cluster that a checkout can have up.
type place struct {
	root string // of the repository
	dir  string
}

// supervisor identifies the process that up left running. The pid alone would not do: after a reboot, or long enough,
// it is somebody else's.
type supervisor struct {
	PID       int    `json:"pid"`
	StartTime string `json:"startTime"`
}

func (s supervisor) alive() bool {
	return s.StartTime != "" && cluster.StartTime(s.PID) == s.StartTime
}

func (p place) pidFile() string   { return p.dir + ".pid" }
func (p place) readyFile() string { return filepath.Join(p.dir, "ready") }
func (p place) logFile() string   { return p.dir + ".log" }

// lock keeps two commands from changing the place at once.
func (p place) lock() (*os.File, error) {
	if err := os.MkdirAll(filepath.Dir(p.dir), 0o755); err != nil {
		return nil, err
	}
	file, err := os.OpenFile(p.dir+".lock", os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		file.Close()
		return nil, fmt.Errorf("another up or down is at work: %w", err)
	}
	return file, nil
}

// running returns the supervisor that up started, if it still lives.
func (p place) running() (supervisor, bool) {
	var s supervisor
	content, err := os.ReadFile(p.pidFile())
	if err != nil || json.Unmarshal(content, &s) != nil {
		return s, false
	}
	return s, s.alive()
}

func (p place) clear() error {
	return errors.Join(os.RemoveAll(p.dir), os.MkdirAll(p.dir, 0o755))
}

func (p place) markReady() error { return os.WriteFile(p.readyFile(), nil, 0o644) }

// detach starts this program again as supervisor, in a session of its own so that it outlives the terminal.
func (p place) detach(flags []string) (*exec.Cmd, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	log, err := os.Create(p.logFile())
	if err != nil {
		return nil, err
	}
	defer log.Close()
	child := exec.Command(self, append([]string{"supervise"}, flags...)...)
	child.Dir = p.root
	child.Stdout, child.Stderr = log, log
	child.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := child.Start(); err != nil {
		return nil, err
	}
	s := supervisor{PID: child.Process.Pid, StartTime: cluster.StartTime(child.Process.Pid)}
	content, err := json.Marshal(s)
	if err == nil {
		err = os.WriteFile(p.pidFile(), content, 0o644)
	}
	if err != nil {
		_ = child.Process.Kill() // without the file nobody could stop it later
	}
	return child, err
}

// awaitReady returns when the supervisor says so. If it ends instead, or ctx does, nothing is left running.
func (p place) awaitReady(ctx context.Context, child *exec.Cmd) error {
	ended := make(chan error, 1)
	go func() { ended <- child.Wait() }()
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	for {
		select {
		case err := <-ended:
			said, _ := os.ReadFile(p.logFile())
			return fmt.Errorf("the cluster did not start: %w\n%s", err, said)
		case <-ctx.Done():
			_ = child.Process.Signal(syscall.SIGTERM)
			return errors.Join(ctx.Err(), <-ended)
		case <-ticker.C:
			if _, err := os.Stat(p.readyFile()); err == nil {
				return nil
			}
		}
	}
}

// down stops the supervisor, which stops the rest. No supervisor is no error.
func (p place) down() error {
	guard, err := p.lock()
	if err != nil {
		return err
	}
	defer guard.Close()
	s, alive := p.running()
	if !alive {
		fmt.Fprintln(os.Stderr, "nothing is up")
		return os.RemoveAll(p.pidFile())
	}
	if err := syscall.Kill(s.PID, syscall.SIGTERM); err != nil {
		return err
	}
	deadline := time.NewTimer(time.Minute)
	defer deadline.Stop()
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	for s.alive() {
		select {
		case <-deadline.C:
			// Its children die with it.
			if err := syscall.Kill(s.PID, syscall.SIGKILL); err != nil {
				return err
			}
			return errors.New("the supervisor did not end within a minute and was killed")
		case <-ticker.C:
		}
	}
	fmt.Fprintln(os.Stderr, "stopped; logs stay in", filepath.Join(p.dir, "logs"))
	return os.Remove(p.pidFile())
}
