package chart

import (
	"fmt"
	"image/color"
	"io"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/berth-dev/berth/cmd/berth-sim/internal/estimate"
)

// Formats that can be written.
var Formats = []string{"svg", "png"}

// colours that people with the common kinds of colour blindness can tell apart (Okabe and Ito).
var colours = []color.Color{
	color.RGBA{R: 0x99, G: 0x99, B: 0x99, A: 0xff}, color.RGBA{R: 0xe6, G: 0x9f, A: 0xff}, color.RGBA{R: 0x56, G: 0xb4, B: 0xe9, A: 0xff},
	color.RGBA{G: 0x9e, B: 0x73, A: 0xff}, color.RGBA{R: 0xd5, G: 0x5e, A: 0xff}, color.RGBA{R: 0xcc, G: 0x79, B: 0xa7, A: 0xff},
	color.RGBA{G: 0x72, B: 0xb2, A: 0xff},
}

// Colour of the n-th of several things.
func Colour(n int) color.Color { return colours[n%len(colours)] }

// Series is one thing that is compared, by the same colour in all charts.
type Series struct {
	Name   string
	Colour int
	// Values, one for each group of bars.
	Values []estimate.Interval
}

// Bars are groups of bars with their intervals.
type Bars struct {
	Title, Y string
	Groups   []string
	Series   []Series
}

// Line is a line through points; where it has none there is a gap.
type Line struct {
	Name   string
	Colour int
	Points []Point
}

// Point of a line. After a Gap a line begins anew.
type Point struct {
	X, Y float64
	Gap  bool
}

// Panel is one plot of lines.
type Panel struct {
	Title, X, Y string
	Lines       []Line
	// YMax is the upper end of the Y axis; 0 leaves it to the values.
	YMax float64
}

const (
	barWidth   = 7 * vg.Millimeter / 2
	panelWidth = 62 * vg.Millimeter
	panelTall  = 48 * vg.Millimeter
	legendTall = 8 * vg.Millimeter
)

// Write draws bars.
func (b Bars) Write(w io.Writer, format string) error {
	p := plot.New()
	p.Title.Text, p.Y.Label.Text = b.Title, b.Y
	p.Add(plotter.NewGrid())
	var names []entry
	step := barWidth * vg.Length(len(b.Series)+2)
	for i, s := range b.Series {
		offset := barWidth * vg.Length(float64(i)-float64(len(b.Series)-1)/2)
		values := make(plotter.Values, len(s.Values))
		points := make(plotter.XYs, len(s.Values))
		errs := make(plotter.YErrors, len(s.Values))
		for g, v := range s.Values {
			values[g], points[g] = v.Mean, plotter.XY{X: float64(g), Y: v.Mean}
			errs[g].Low, errs[g].High = v.Half, v.Half
		}
		chart, err := plotter.NewBarChart(values, barWidth)
		if err != nil {
			return err
		}
		chart.Color, chart.LineStyle.Width, chart.Offset = Colour(s.Colour), 0, offset
		p.Add(chart)
		names = append(names, entry{s.Name, s.Colour})
		p.Add(&whiskers{points, errs, offset})
	}
	p.NominalX(b.Groups...)
	p.X.Min, p.X.Max = -0.5, float64(len(b.Groups))-0.5
	width := max(step*vg.Length(len(b.Groups))+20*vg.Millimeter, 130*vg.Millimeter)
	return write(w, format, width, 70*vg.Millimeter, func(c draw.Canvas) {
		p.Draw(below(c, legendTall))
		legend(c, names)
	})
}

// below is the canvas without a strip at its bottom.
func below(c draw.Canvas, strip vg.Length) draw.Canvas {
	return draw.Canvas{Canvas: c.Canvas, Rectangle: vg.Rectangle{Min: vg.Point{X: c.Min.X, Y: c.Min.Y + strip}, Max: c.Max}}
}

// entry of a legend.
type entry struct {
	name   string
	colour int
}

// legend writes names with their colours in a row at the bottom.
func legend(c draw.Canvas, entries []entry) {
	style := plot.New().Legend.TextStyle
	style.YAlign = text.YCenter
	x, y := c.Min.X+12*vg.Millimeter, c.Min.Y+legendTall/2
	for _, e := range entries {
		c.FillPolygon(Colour(e.colour), []vg.Point{{X: x, Y: y - vg.Millimeter}, {X: x + 4*vg.Millimeter, Y: y - vg.Millimeter}, {X: x + 4*vg.Millimeter, Y: y + vg.Millimeter}, {X: x, Y: y + vg.Millimeter}})
		x += 5 * vg.Millimeter
		c.FillText(style, vg.Point{X: x, Y: y}, e.name)
		x += style.Width(e.name) + 4*vg.Millimeter
	}
}

// whiskers are the intervals of one series of bars, which stand beside their group's place.
type whiskers struct {
	plotter.XYs
	plotter.YErrors
	offset vg.Length
}

// Plot implements plot.Plotter.
func (e *whiskers) Plot(c draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&c)
	style := draw.LineStyle{Color: color.Black, Width: vg.Points(0.6)}
	for i, at := range e.XYs {
		if e.YErrors[i].Low == 0 {
			continue
		}
		low, high, middle := max(c.Min.Y, y(at.Y-e.YErrors[i].Low)), y(at.Y+e.YErrors[i].High), x(at.X)+e.offset
		c.StrokeLine2(style, middle, low, middle, high)
		for _, end := range []vg.Length{low, high} {
			c.StrokeLine2(style, middle-barWidth/5, end, middle+barWidth/5, end)
		}
	}
}

// DataRange implements plot.DataRanger: what is measured is never below nothing.
func (e *whiskers) DataRange() (xmin, xmax, ymin, ymax float64) {
	for i, at := range e.XYs {
		xmax, ymax = max(xmax, at.X), max(ymax, at.Y+e.YErrors[i].High)
	}
	return 0, xmax, 0, ymax
}

// Panels draws several panels in rows with one legend below.
func Panels(w io.Writer, format string, panels []Panel, columns int) error {
	columns = min(columns, len(panels))
	rows := (len(panels) + columns - 1) / columns
	plots := make([]*plot.Plot, len(panels))
	var names []entry
	for i, panel := range panels {
		p := plot.New()
		p.Title.Text, p.X.Label.Text, p.Y.Label.Text = panel.Title, panel.X, panel.Y
		p.Add(plotter.NewGrid())
		for _, line := range panel.Lines {
			drawn, err := strokes(line)
			if err != nil {
				return err
			}
			for _, l := range drawn {
				p.Add(l)
			}
			if e := (entry{line.Name, line.Colour}); len(drawn) > 0 && !slices.Contains(names, e) {
				names = append(names, e)
			}
		}
		p.Y.Min = 0
		if panel.YMax > 0 {
			p.Y.Max = panel.YMax
		}
		plots[i] = p
	}
	width, height := panelWidth*vg.Length(columns), panelTall*vg.Length(rows)+legendTall
	return write(w, format, width, height, func(c draw.Canvas) {
		for i, p := range plots {
			left := c.Min.X + panelWidth*vg.Length(i%columns)
			top := c.Max.Y - panelTall*vg.Length(i/columns)
			p.Draw(draw.Canvas{Canvas: c.Canvas, Rectangle: vg.Rectangle{
				Min: vg.Point{X: left, Y: top - panelTall}, Max: vg.Point{X: left + panelWidth - 2*vg.Millimeter, Y: top - vg.Millimeter},
			}})
		}
		legend(c, names)
	})
}

// strokes are the pieces of a line between its gaps.
func strokes(line Line) ([]*plotter.Line, error) {
	var out []*plotter.Line
	var piece plotter.XYs
	end := func() error {
		if len(piece) > 0 {
			l, err := plotter.NewLine(piece)
			if err != nil {
				return err
			}
			l.Color, l.Width = Colour(line.Colour), vg.Points(1.4)
			out = append(out, l)
		}
		piece = nil
		return nil
	}
	for _, p := range line.Points {
		if p.Gap {
			if err := end(); err != nil {
				return nil, err
			}
		}
		piece = append(piece, plotter.XY{X: p.X, Y: p.Y})
	}
	return out, end()
}

func write(w io.Writer, format string, width, height vg.Length, paint func(draw.Canvas)) error {
	if !slices.Contains(Formats, format) {
		return fmt.Errorf("%q is no format for charts: it must be svg or png", format)
	}
	canvas, err := draw.NewFormattedCanvas(width, height, format)
	if err != nil {
		return err
	}
	c := draw.New(canvas)
	c.SetColor(color.White)
	c.Fill(c.Rectangle.Path())
	paint(c)
	_, err = canvas.WriteTo(w)
	return err
}
