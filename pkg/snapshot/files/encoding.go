package files

import (
	"bytes"
	"encoding/binary"
	"unicode/utf16"
)

// utf8 is the text of a file in UTF-8 without a byte order mark. A file that begins with that of UTF-16, as some Windows
// shells write it, is recoded.
func utf8(content []byte) []byte {
	var order binary.ByteOrder
	switch {
	case bytes.HasPrefix(content, []byte("\xff\xfe")):
		order = binary.LittleEndian
	case bytes.HasPrefix(content, []byte("\xfe\xff")):
		order = binary.BigEndian
	default:
		return bytes.TrimPrefix(content, []byte("\xef\xbb\xbf"))
	}
	units := make([]uint16, 0, len(content)/2)
	for content = content[2:]; len(content) > 1; content = content[2:] {
		units = append(units, order.Uint16(content))
	}
	return []byte(string(utf16.Decode(units)))
}

// line cuts off the first line of a text with its end, which is a line feed, a carriage return, or both.
func line(text []byte) (first, rest []byte) {
	end := bytes.IndexAny(text, "\r\n")
	switch {
	case end < 0:
		return text, nil
	case bytes.HasPrefix(text[end:], []byte("\r\n")):
		end++
	}
	return text[:end+1], text[end+1:]
}
