package glob

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Marks for characters that a backslash takes their meaning from, while braces are expanded.
const (
	markBackslash = "\x00\x01"
	markOpen      = "\x00\x02"
	markClose     = "\x00\x03"
	markComma     = "\x00\x04"
	markDot       = "\x00\x05"
)

var (
	hide = strings.NewReplacer(`\\`, markBackslash, `\{`, markOpen, `\}`, markClose, `\,`, markComma, `\.`, markDot)
	show = strings.NewReplacer(markBackslash, `\`, markOpen, "{", markClose, "}", markComma, ",", markDot, ".")

	hasBraces = regexp.MustCompile(`\{[^{]*\}`)
	setAfter  = regexp.MustCompile(`,(?:[^,].*)?\}`)
	numbers   = regexp.MustCompile(`^-?\d+\.\.-?\d+(?:\.\.-?\d+)?$`)
	letters   = regexp.MustCompile(`^[a-zA-Z]\.\.[a-zA-Z](?:\.\.-?\d+)?$`)
)

// expand gives the patterns that a pattern with braces stands for.
func expand(pattern string) ([]string, error) {
	if !hasBraces.MatchString(pattern) {
		return []string{pattern}, nil
	}
	if strings.HasPrefix(pattern, "{}") { // these two stand for themselves
		pattern = `\{\}` + pattern[2:]
	}
	list, err := expandHidden(hide.Replace(pattern), true)
	for i, text := range list {
		list[i] = show.Replace(text)
	}
	slices.Sort(list)
	return slices.Compact(list), err
}

func expandHidden(text string, top bool) ([]string, error) {
	open, end := braces(text)
	if open < 0 {
		return []string{text}, nil
	}
	before, body, after := text[:open], text[open+1:end], text[end+1:]
	var middle []string
	var err error
	switch {
	case strings.HasSuffix(before, "$"):
		middle = []string{"{" + body + "}"}
	case numbers.MatchString(body) || letters.MatchString(body):
		middle, err = sequence(strings.Split(body, ".."))
	case strings.Contains(body, ","):
		middle, err = set(body)
	case setAfter.MatchString(after):
		return expandHidden(before+"{"+body+markClose+after, true)
	default:
		return []string{text}, nil
	}
	if err != nil {
		return nil, err
	}
	rest, err := expandHidden(after, false)
	if err != nil {
		return nil, err
	}
	if len(middle)*len(rest) > MaxAlternatives {
		return nil, errAlternatives
	}
	var out []string
	for _, m := range middle {
		for _, r := range rest {
			if all := before + m + r; all != "" || !top {
				out = append(out, all)
			}
		}
	}
	return out, nil
}

// braces finds the first pair of braces.
func braces(text string) (open, end int) {
	var opened []int
	open, end = -1, -1
	for i := range len(text) {
		switch {
		case text[i] == '{':
			opened = append(opened, i)
		case text[i] == '}' && len(opened) > 0:
			last := len(opened) - 1
			if open < 0 || opened[last] < open {
				open, end = opened[last], i
			}
			if opened = opened[:last]; last == 0 {
				return open, end
			}
		}
	}
	return open, end
}

// set gives the members of a set, such as a,{b,c}.
func set(body string) ([]string, error) {
	parts := members(body)
	if len(parts) == 1 { // the comma is in braces within
		list, err := expandHidden(parts[0], false)
		for i := range list {
			list[i] = "{" + list[i] + "}"
		}
		return list, err
	}
	var out []string
	for _, part := range parts {
		list, err := expandHidden(part, false)
		if err != nil {
			return nil, err
		}
		if out = append(out, list...); len(out) > MaxAlternatives {
			return nil, errAlternatives
		}
	}
	return out, nil
}

// members splits at the commas that are not in braces.
func members(body string) []string {
	var parts []string
	depth, begin := 0, 0
	for i := range len(body) {
		switch body[i] {
		case '{':
			depth++
		case '}':
			depth--
		case ',':
			if depth == 0 {
				parts, begin = append(parts, body[begin:i]), i+1
			}
		}
	}
	return append(parts, body[begin:])
}

// sequence gives what FROM..TO or FROM..TO..STEP stands for.
func sequence(parts []string) ([]string, error) {
	from, err := bound(parts[0])
	if err != nil {
		return nil, err
	}
	to, err := bound(parts[1])
	if err != nil {
		return nil, err
	}
	step := 1
	if len(parts) == 3 {
		if step, err = bound(parts[2]); err != nil {
			return nil, err
		}
		step = max(1, step, -step)
	}
	if span := max(from-to, to-from); span/step >= MaxAlternatives {
		return nil, errAlternatives
	}
	if to < from {
		step = -step
	}
	isLetter := letters.MatchString(parts[0] + ".." + parts[1])
	width := 0
	if slices.ContainsFunc(parts, isPadded) {
		width = max(len(parts[0]), len(parts[1]))
	}
	var out []string
	for i := from; i <= to && step > 0 || i >= to && step < 0; i += step {
		switch {
		case isLetter && i == '\\':
			out = append(out, "")
		case isLetter:
			out = append(out, string(rune(i)))
		default:
			out = append(out, padded(i, width))
		}
	}
	return out, nil
}

// bound is a number, or the code of a letter.
func bound(text string) (int, error) {
	if letters.MatchString(text + "..a") {
		return int(text[0]), nil
	}
	n, err := strconv.ParseInt(text, 10, 32)
	if err != nil {
		return 0, errAlternatives
	}
	return int(n), nil
}

func isPadded(text string) bool {
	text = strings.TrimPrefix(text, "-")
	return len(text) > 1 && text[0] == '0' && text[1] >= '0' && text[1] <= '9'
}

func padded(n, width int) string {
	text := strconv.Itoa(n)
	if zeros := width - len(text); zeros > 0 {
		sign := ""
		if n < 0 {
			sign, text = "-", text[1:]
		}
		return sign + strings.Repeat("0", zeros) + text
	}
	return text
}
