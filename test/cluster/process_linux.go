package cluster

import (
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
)

// spawn starts cmd so that the kernel kills it when this process dies, however it dies.
//
// The kernel binds that promise to the thread that forked, not to the process, and the Go runtime ends threads as it
// likes. So one goroutine, locked to a thread it never gives back, does all the forking.
func spawn(cmd *exec.Cmd) error {
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Pdeathsig: syscall.SIGKILL,
		// A group of its own: an interrupt typed at the terminal ends the test, which then stops its children in order.
		Setpgid: true,
	}
	request := spawnRequest{cmd: cmd, result: make(chan error)}
	spawner() <- request
	return <-request.result
}

type spawnRequest struct {
	cmd    *exec.Cmd
	result chan error
}

var spawner = sync.OnceValue(func() chan<- spawnRequest {
	requests := make(chan spawnRequest)
	go func() {
		runtime.LockOSThread()
		for request := range requests {
			request.result <- request.cmd.Start()
		}
	}()
	return requests
})

// StartTime returns an opaque text that tells the process now running under pid from any other that had or will have
// that pid, or "" if there is none.
func StartTime(pid int) string {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return ""
	}
	// The second field is the program's name in parentheses and may hold spaces; count from behind it.
	_, rest, ok := strings.Cut(string(stat[strings.LastIndexByte(string(stat), ')')+1:]), " ")
	fields := strings.Fields(rest)
	const state, start = 0, 19 // fields 3 and 22 in proc(5)
	if !ok || len(fields) <= start || fields[state] == "Z" {
		return ""
	}
	return fields[start]
}

// stopped reports whether a process has been stopped by a signal, or is no more.
func stopped(pid int) bool {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return true
	}
	_, rest, _ := strings.Cut(string(stat[strings.LastIndexByte(string(stat), ')')+1:]), " ")
	return strings.HasPrefix(rest, "T") || strings.HasPrefix(rest, "Z")
}
