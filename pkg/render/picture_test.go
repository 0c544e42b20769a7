package render_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/berth-dev/berth/pkg/render"
)

var update = flag.Bool("update", false, "write testdata anew from what the code does")

// hosts is a row-by-row grid of n hosts with the given shares.
func hosts(n int, shares map[int][]render.Share) []render.PictureHost {
	all := make([]render.PictureHost, n)
	for i := range all {
		all[i] = render.PictureHost{Name: fmt.Sprintf("node-%d", i), Shares: shares[i]}
	}
	return all
}

func held(job, rank int) []render.Share { return []render.Share{{Line: job, Rank: rank, Held: true}} }

func TestPictures(t *testing.T) {
	a := render.PictureLine{Letter: "a", Name: "train-a", Wants: "4 pods on a tpu-4x4", Story: "4 of 4 pods run on tpu-4x4-00"}
	b := render.PictureLine{Letter: "b", Name: "b", Wants: "16 pods on a tpu-8x8", Story: "waits: no tpu-8x8 is free"}
	block := map[int][]render.Share{0: held(0, 0), 1: held(0, 1), 4: held(0, 2), 5: held(0, 3)}
	whole := map[int][]render.Share{}
	for i := range 16 {
		whole[i] = held(1, i)
	}
	var out strings.Builder
	for _, test := range []struct {
		name    string
		picture render.Picture
		colour  bool
	}{
		{"nothing is held", render.Picture{Columns: 4, Hosts: hosts(16, nil)}, false},
		{"one Job runs, one waits", render.Picture{Columns: 4, Hosts: hosts(16, block), Lines: []render.PictureLine{a, b}}, false},
		{"the same on a terminal", render.Picture{Columns: 4, Hosts: hosts(16, block), Lines: []render.PictureLine{a, b}}, true},
		{"all hosts, ranks of two digits", render.Picture{Columns: 4, Hosts: hosts(16, whole), Lines: []render.PictureLine{a, b}}, false},
		{"held, and no pod yet", render.Picture{Columns: 2, Hosts: hosts(2, map[int][]render.Share{1: held(0, render.NoPod)}), Lines: []render.PictureLine{a}}, false},
		{"held twice", render.Picture{Columns: 2, Hosts: hosts(2, map[int][]render.Share{
			0: append(held(0, 0), held(1, 7)...),
		}), Lines: []render.PictureLine{a, b}}, false},
		{"a pod where its Job holds nothing", render.Picture{Columns: 2, Hosts: hosts(2, map[int][]render.Share{
			0: {{Line: 1, Rank: 3}}, 1: append(held(0, 0), render.Share{Line: 1, Rank: 4}),
		}), Lines: []render.PictureLine{a, b}}, false},
		{"a row that is not full", render.Picture{Columns: 2, Hosts: hosts(3, nil)}, false},
		{"fewer hosts than columns", render.Picture{Columns: 4, Hosts: hosts(1, nil)}, false},
		{"no hosts", render.Picture{}, false},
	} {
		fmt.Fprintf(&out, "# %s\n%s\n", test.name, strings.ReplaceAll(test.picture.Text(test.colour), "\x1b", "<esc>"))
	}
	const golden = "testdata/pictures.txt"
	if *update {
		if err := os.WriteFile(golden, []byte(out.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if out.String() != string(want) {
		t.Errorf("drawn:\n%s\n%s holds:\n%s", out.String(), golden, want)
	}
}
