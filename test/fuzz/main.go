package main

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"time"
)

func main() {
	each := flag.Duration("time", 10*time.Minute, "how long each target is fuzzed; 0 only chooses which inputs are kept")
	only := flag.String("run", ".", "regular expression on the names of the targets")
	flag.Parse()
	failed, err := fuzz(regexp.MustCompile(*only), *each)
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
	if failed {
		os.Exit(1)
	}
}

// fuzz runs and minimises all targets that match, and tells of each on one line when it is done.
func fuzz(only *regexp.Regexp, each time.Duration) (failed bool, err error) {
	targets, err := find(".", only)
	if err != nil {
		return false, err
	}
	if len(targets) == 0 {
		return false, fmt.Errorf("no target matches %s", only)
	}
	for _, t := range targets {
		line := t.name + " (" + t.dir + ")"
		if each > 0 {
			execs, took, ok := t.run(each)
			line += fmt.Sprintf(": %d executions in %s", execs, took.Round(time.Second))
			if !ok {
				failed = true
				fmt.Println(line + ", FAILED")
				continue
			}
		}
		kept, bytes, err := t.keep()
		if err != nil {
			return failed, fmt.Errorf("%s: %w", t.name, err)
		}
		fmt.Printf("%s, %d inputs of %d bytes kept\n", line, kept, bytes)
	}
	return failed, nil
}
