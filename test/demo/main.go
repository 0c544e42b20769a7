package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/berth-dev/berth/test/cluster"
)

// Exit codes.
const (
	exitOK          = 0
	exitWrong       = 1
	exitInterrupted = 130 // as a shell reports it
)

func main() { os.Exit(run()) }

func run() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	// Libraries complain in the middle of the story: controller-runtime of a missing logger, client-go of a watch that the end
	// of the demo cut off.
	ctrllog.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())
	// From the first interrupt on a second one ends the demo at once; its children die with it.
	context.AfterFunc(ctx, stop)

	root, err := cluster.FindRepository(".")
	if err == nil {
		err = newDemo(os.Stdout, coloured(), root).tell(ctx)
	}
	switch {
	case err == nil:
		return exitOK
	case errors.Is(err, errInterrupted):
		fmt.Fprintln(os.Stderr, "\nInterrupted; everything that was started has ended.")
		return exitInterrupted
	default:
		fmt.Fprintf(os.Stderr, "\nThe demo FAILED: %v\n", err)
		return exitWrong
	}
}

// coloured reports whether the output is for a terminal whose owner has nothing against colours; see no-color.org.
func coloured() bool {
	info, err := os.Stdout.Stat()
	terminal := err == nil && info.Mode()&os.ModeCharDevice != 0
	return terminal && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}
