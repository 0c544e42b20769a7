package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/berth-dev/berth/test/cluster"
	"github.com/berth-dev/berth/test/demo/witness"
)

const (
	// patience is how long one thing may take; on an idle machine with two cores nothing takes a tenth of it.
	patience = time.Minute
	// look is how often the API server is asked.
	look = 100 * time.Millisecond
)

// demo is one telling of the story.
type demo struct {
	out        io.Writer
	colour     bool
	repository string

	cluster *cluster.Cluster
	// admin is the administrator's connection, straight to the API server.
	admin client.Client

	seen, drawn string // the picture of the last look, and the last one that was drawn
	// told are the parts of the story so far, took how long each took.
	told []part
	took []time.Duration
	// seatings are where the Jobs ran, as they were seen to run whole.
	seatings []witness.Seating
}

func newDemo(out io.Writer, colour bool, repository string) *demo {
	return &demo{out: out, colour: colour, repository: repository}
}

// say prints one line or several, indented.
func (d *demo) say(format string, args ...any) {
	text := strings.TrimRight(fmt.Sprintf(format, args...), "\n")
	for line := range strings.SplitSeq(text, "\n") {
		fmt.Fprint(d.out, wrap("   "+line))
	}
}

// wrap breaks a line at spaces so that it fits a terminal. What follows is indented further; a word that is too long
// stays whole.
func wrap(line string) string {
	const width = 110
	indent := line[:len(line)-len(strings.TrimLeft(line, " "))] + "    "
	var b strings.Builder
	for len(line) > width {
		at := strings.LastIndexByte(line[:width], ' ')
		if at < len(indent) {
			break
		}
		b.WriteString(strings.TrimRight(line[:at], " ") + "\n")
		line = indent + strings.TrimLeft(line[at:], " ")
	}
	b.WriteString(strings.TrimRight(line, " ") + "\n")
	return b.String()
}

// phase tells one part of the story and takes its time.
func (d *demo) phase(ctx context.Context, p part) error {
	fmt.Fprintf(d.out, "\n%d. %s\n", len(d.told)+1, p.title)
	began := time.Now()
	err := p.tell(ctx)
	took := time.Since(began)
	d.told, d.took = append(d.told, p), append(d.took, took)
	if err != nil {
		return fmt.Errorf("%s: %w", p.title, err)
	}
	d.say("(%s)", seconds(took))
	return nil
}

// await draws what changes until check returns nil. It fails with what check says when patience or ctx ends, and at once
// when a program of the cluster has ended by itself.
func (d *demo) await(ctx context.Context, what string, check func(*witness.Observation) error) error {
	timed, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	tick := time.NewTicker(look)
	defer tick.Stop()
	last := errors.New("nothing could be read")
	for {
		o, err := witness.Observe(timed, d.admin)
		if err == nil {
			err = check(o)
			d.draw(o, err == nil)
		}
		if err == nil {
			return nil
		}
		if timed.Err() == nil {
			last = err
		}
		if err := d.cluster.Crashed(); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-timed.Done():
			return fmt.Errorf("after %s it is still not so that %s:\n%w", patience, what, last)
		case <-tick.C:
		}
	}
}

// draw prints the picture if it differs from the last one. Unless it must be now, it waits until two looks in a row see
// the same and every Job has an answer: of a quick series of changes only the last is drawn.
func (d *demo) draw(o *witness.Observation, now bool) {
	text := picture(o).Text(d.colour)
	calm := text == d.seen && !strings.Contains(text, undecided)
	if text != d.drawn && (now || calm) {
		d.say("\n%s", text)
		d.drawn = text
	}
	d.seen = text
}

func seconds(t time.Duration) string { return fmt.Sprintf("%.1f s", t.Seconds()) }
