package traffic

import (
	"bytes"
	"cmp"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Fault is one thing that is wrong with a trace.
type Fault struct {
	File string
	// Row counts gangs from 1; 0 when the fault is the file's.
	Row     int
	Field   string
	Message string
}

// Error is file: row: field: message, without the parts that are not known.
func (f Fault) Error() string {
	parts := []string{f.File}
	if f.Row > 0 {
		parts = append(parts, fmt.Sprintf("row %d", f.Row))
	}
	if f.Field != "" {
		parts = append(parts, f.Field)
	}
	return strings.Join(append(parts, f.Message), ": ")
}

// Faults are all faults of one trace.
type Faults []Fault

// Error is one fault a line.
func (f Faults) Error() string {
	var lines []string
	for _, fault := range f {
		lines = append(lines, fault.Error())
	}
	return strings.Join(lines, "\n")
}

// maxFaults is after how many faults a trace is not read any further.
const maxFaults = 20

var columns = []string{"arrival", "class", "hosts", "duration", "priority", "queue"}

// ClassFor finds the class of a gang that a trace describes by class, by hosts (0 when not given), or by both. It returns
// what is wrong otherwise.
type ClassFor func(class string, hosts int) (string, int, error)

// ReadTrace reads gangs as CSV with a header, or as JSON: a list of objects, or objects one after the other. The fields are
// arrival and duration (seconds, or with a unit as in 90m), class or hosts or both, and where wanted priority and queue.
// The gangs come back in order of arrival, the first of them at 0.
func ReadTrace(file string, content []byte, classFor ClassFor) ([]Gang, error) {
	rows, faults := records(file, content)
	var out []Gang
	for i, row := range rows {
		if len(faults) >= maxFaults {
			break
		}
		g, wrong := gangOf(row, classFor)
		for _, f := range wrong {
			f.File, f.Row = file, i+1
			faults = append(faults, f)
		}
		out = append(out, g)
	}
	if len(faults) == 0 && len(out) == 0 {
		faults = append(faults, Fault{File: file, Message: "the trace has no gang"})
	}
	if len(faults) > 0 {
		return nil, faults
	}
	slices.SortStableFunc(out, func(a, b Gang) int { return cmp.Compare(a.Arrival, b.Arrival) })
	first := out[0].Arrival
	for i := range out {
		out[i].Arrival -= first
	}
	return out, nil
}

// records are the rows as text by column.
func records(file string, content []byte) ([]map[string]string, Faults) {
	trimmed := bytes.TrimSpace(content)
	if len(trimmed) > 0 && (trimmed[0] == '[' || trimmed[0] == '{') {
		return fromJSON(file, trimmed)
	}
	return fromCSV(file, content)
}

func fromJSON(file string, content []byte) ([]map[string]string, Faults) {
	d := json.NewDecoder(bytes.NewReader(content))
	d.UseNumber()
	var list []map[string]any
	if content[0] == '[' {
		if err := d.Decode(&list); err != nil {
			return nil, Faults{{File: file, Message: "is no list of objects: " + err.Error()}}
		}
	}
	for {
		var one map[string]any
		err := d.Decode(&one)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, Faults{{File: file, Row: len(list) + 1, Message: "is no object: " + err.Error()}}
		}
		list = append(list, one)
	}
	var rows []map[string]string
	var faults Faults
	for i, object := range list {
		row := map[string]string{}
		for _, key := range slices.Sorted(keys(object)) {
			if !slices.Contains(columns, key) {
				faults = append(faults, Fault{File: file, Row: i + 1, Field: key, Message: "unknown field"})
				continue
			}
			switch v := object[key].(type) {
			case nil:
			case string:
				row[key] = v
			case json.Number:
				row[key] = v.String()
			default:
				faults = append(faults, Fault{File: file, Row: i + 1, Field: key, Message: "must be text or a number"})
			}
		}
		rows = append(rows, row)
	}
	return rows, faults
}

func keys(object map[string]any) func(func(string) bool) {
	return func(yield func(string) bool) {
		for k := range object {
			if !yield(k) {
				return
			}
		}
	}
}

func fromCSV(file string, content []byte) ([]map[string]string, Faults) {
	r := csv.NewReader(bytes.NewReader(bytes.TrimPrefix(content, []byte("\xef\xbb\xbf"))))
	r.TrimLeadingSpace, r.Comment = true, '#'
	header, err := r.Read()
	if errors.Is(err, io.EOF) {
		return nil, Faults{{File: file, Message: "is empty"}}
	}
	if err != nil {
		return nil, Faults{{File: file, Message: err.Error()}}
	}
	var faults Faults
	for i, name := range header {
		header[i] = strings.ToLower(strings.TrimSpace(name))
		switch {
		case !slices.Contains(columns, header[i]):
			faults = append(faults, Fault{File: file, Field: name, Message: "unknown column: the columns are " + strings.Join(columns, ", ")})
		case slices.Contains(header[:i], header[i]):
			faults = append(faults, Fault{File: file, Field: name, Message: "the column stands there twice"})
		}
	}
	if len(faults) > 0 {
		return nil, faults
	}
	var rows []map[string]string
	for {
		record, err := r.Read()
		if errors.Is(err, io.EOF) {
			return rows, nil
		}
		if err != nil {
			return nil, Faults{{File: file, Row: len(rows) + 1, Message: err.Error()}}
		}
		row := map[string]string{}
		for i, text := range record {
			row[header[i]] = strings.TrimSpace(text)
		}
		rows = append(rows, row)
	}
}

func gangOf(row map[string]string, classFor ClassFor) (Gang, Faults) {
	var faults Faults
	fault := func(field, format string, args ...any) {
		faults = append(faults, Fault{Field: field, Message: fmt.Sprintf(format, args...)})
	}
	hours := func(field string, least bool) float64 {
		text := row[field]
		if text == "" {
			fault(field, "is missing")
			return 0
		}
		h, err := Hours(text)
		switch {
		case err != nil:
			fault(field, "%v", err)
		case h < 0:
			fault(field, "%q must not be negative", text)
		case least && h == 0:
			fault(field, "%q must be more than nothing", text)
		}
		return h
	}
	whole := func(field string, most int64) int {
		if row[field] == "" {
			return 0
		}
		n, err := strconv.ParseInt(row[field], 10, 64)
		if err != nil || n > most || n < -most {
			fault(field, "%q is no whole number of at most %d", row[field], most)
		}
		return int(n)
	}
	g := Gang{
		Class: row["class"], Hosts: whole("hosts", math.MaxInt32), Arrival: hours("arrival", false), Duration: hours("duration", true),
		Priority: int32(whole("priority", math.MaxInt32)), Queue: row["queue"],
	}
	if g.Class == "" && row["hosts"] == "" {
		fault("class", "is missing: a gang needs a class or hosts")
	}
	if len(faults) > 0 {
		return g, faults
	}
	field := "class"
	if g.Class == "" {
		field = "hosts"
	}
	class, n, err := classFor(g.Class, g.Hosts)
	if err != nil {
		fault(field, "%v", err)
	}
	g.Class, g.Hosts = class, n
	return g, faults
}

// Hours reads a time: a number of seconds, or a duration with a unit such as 90m or 36h.
func Hours(text string) (float64, error) {
	seconds, err := strconv.ParseFloat(text, 64)
	if err != nil {
		d, err := time.ParseDuration(text)
		if err != nil {
			return 0, fmt.Errorf("%q is no time: it must be seconds, or have a unit as in 90m or 36h", text)
		}
		return d.Hours(), nil
	}
	// The clock that the line sees counts nanoseconds in 63 bits.
	if math.IsNaN(seconds) || math.Abs(seconds) > 3e9 {
		return 0, fmt.Errorf("%q is out of range", text)
	}
	return seconds / 3600, nil
}
