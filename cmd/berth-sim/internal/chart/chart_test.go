package chart_test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"image/png"
	"io"
	"strings"
	"testing"

	"github.com/berth-dev/berth/cmd/berth-sim/internal/chart"
	"github.com/berth-dev/berth/cmd/berth-sim/internal/estimate"
)

var bars = chart.Bars{
	Title: "Goodput", Y: "per cent", Groups: []string{"small", "large"},
	Series: []chart.Series{
		{Name: "firstfit", Values: []estimate.Interval{{Mean: 50, Half: 2, Runs: 3}, {Mean: 40, Half: 1, Runs: 3}}},
		{Name: "berth", Colour: 4, Values: []estimate.Interval{{Mean: 55, Half: 2, Runs: 3}, {Mean: 48, Half: 1, Runs: 3}}},
	},
}

var panels = []chart.Panel{
	{Title: "4 hosts", X: "utilisation", Y: "fits", YMax: 1, Lines: []chart.Line{
		{Name: "firstfit", Points: []chart.Point{{X: 0, Y: 1}, {X: 0.5, Y: 0.5}, {X: 0.9, Y: 0.1, Gap: true}}},
		{Name: "berth", Colour: 4, Points: []chart.Point{{X: 0, Y: 1}, {X: 1, Y: 0.2}}},
	}},
	{Title: "8 hosts", X: "utilisation", Y: "fits", Lines: []chart.Line{{Name: "berth", Colour: 4, Points: []chart.Point{{X: 0, Y: 1}, {X: 1, Y: 0}}}}},
}

func drawn(t *testing.T, write func(io.Writer) error) string {
	t.Helper()
	var b bytes.Buffer
	if err := write(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestSVG(t *testing.T) {
	for name, row := range map[string]struct {
		write func(io.Writer) error
		words []string
	}{
		"bars":   {func(w io.Writer) error { return bars.Write(w, "svg") }, []string{"Goodput", "per cent", "small", "large", "firstfit", "berth"}},
		"panels": {func(w io.Writer) error { return chart.Panels(w, "svg", panels, 2) }, []string{"4 hosts", "8 hosts", "utilisation", "firstfit", "berth"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := drawn(t, row.write)
			if again := drawn(t, row.write); again != got {
				t.Error("drawn again, the bytes differ")
			}
			text := ""
			d := xml.NewDecoder(strings.NewReader(got))
			for {
				token, err := d.Token()
				if errors.Is(err, io.EOF) {
					break
				}
				if err != nil {
					t.Fatal(err)
				}
				if chars, ok := token.(xml.CharData); ok {
					text += string(chars) + "\n"
				}
			}
			for _, word := range row.words {
				if !strings.Contains(text, word) {
					t.Errorf("the chart does not say %q", word)
				}
			}
			if len(got) > 40_000 {
				t.Errorf("%d bytes", len(got))
			}
		})
	}
}

func TestPNG(t *testing.T) {
	for _, write := range []func(io.Writer) error{
		func(w io.Writer) error { return bars.Write(w, "png") }, func(w io.Writer) error { return chart.Panels(w, "png", panels, 2) },
	} {
		img, err := png.Decode(strings.NewReader(drawn(t, write)))
		if err != nil {
			t.Fatal(err)
		}
		if b := img.Bounds(); b.Dx() < 200 || b.Dy() < 100 {
			t.Errorf("%v", b)
		}
	}
}

func TestUnknownFormat(t *testing.T) {
	if err := bars.Write(io.Discard, "gif"); err == nil || err.Error() != `"gif" is no format for charts: it must be svg or png` {
		t.Error(err)
	}
}
