//go:build unix && !linux

package cluster

import (
	"os/exec"
	"strconv"
	"strings"
	"syscall"
)

// spawn starts cmd. There is no way here to have the kernel end a child with its parent.
func spawn(cmd *exec.Cmd) error {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return cmd.Start()
}

// StartTime returns an opaque text that tells the process now running under pid from any other that had or will have
// that pid, or "" if there is none.
func StartTime(pid int) string {
	out, err := exec.Command("ps", "-o", "lstart=", "-p", strconv.Itoa(pid)).Output()
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(out))
}

// stopped reports whether a process has been stopped by a signal, or is no more.
func stopped(pid int) bool {
	out, err := exec.Command("ps", "-o", "state=", "-p", strconv.Itoa(pid)).Output()
	return err != nil || strings.HasPrefix(string(out), "T") || strings.HasPrefix(string(out), "Z")
}
