package svg

import (
	"fmt"
	"math"
	"strconv"
)

// A Unit says how the values of an axis are written.
type Unit struct {
	Write func(v float64) string
	// kilo is what makes the next larger unit: what is round is round in it.
	kilo float64
}

// Percent writes percentages.
func Percent() Unit { return Unit{func(v float64) string { return short(v) + " %" }, 10} }

// Count writes plain numbers with something behind them, or nothing.
func Count(behind string) Unit {
	return Unit{func(v float64) string { return thousands(v) + behind }, 10}
}

// Bytes writes sizes in KiB and MiB.
func Bytes() Unit {
	return Unit{func(v float64) string { return larger(v, 1<<10, "B", "KiB", "MiB", "GiB") }, 1 << 10}
}

// Microseconds writes durations that are given in microseconds.
func Microseconds() Unit {
	return Unit{func(v float64) string { return larger(v, 1000, "µs", "ms", "s") }, 1000}
}

// larger writes a value in the largest unit of which it has one.
func larger(v, kilo float64, units ...string) string {
	for v >= kilo && len(units) > 1 {
		v, units = v/kilo, units[1:]
	}
	return short(v) + " " + units[0]
}

// thousands writes a number with commas.
func thousands(v float64) string {
	if math.Abs(v) < 1000 {
		return short(v)
	}
	s := strconv.FormatFloat(v, 'f', 0, 64)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// short writes a number with three digits that count, or more if they stand
// before the point.
func short(v float64) string {
	if math.Abs(v) >= 100 {
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	return fmt.Sprintf("%.3g", v)
}

// LinearTicks are round values of a unit from 0 to at least most, about n of
// them.
func LinearTicks(most float64, n int, u Unit) []float64 {
	if most <= 0 || math.IsInf(most, 0) || math.IsNaN(most) {
		most = 1
	}
	one := 1.0
	for most >= one*u.kilo {
		one *= u.kilo
	}
	step := one * roundStep(most/one/float64(n))
	var ticks []float64
	for i := 0; ; i++ {
		v := float64(i) * step
		ticks = append(ticks, v)
		if v >= most*(1-1e-9) {
			return ticks
		}
	}
}

// roundStep is the smallest of 1, 2 and 5 times a power of ten that is no
// smaller than v.
func roundStep(v float64) float64 {
	power := math.Pow(10, math.Floor(math.Log10(v)))
	for _, f := range []float64{1, 2, 5} {
		if v <= f*power*(1+1e-9) {
			return f * power
		}
	}
	return 10 * power
}

// LogTicks are powers of ten, and where there is room for it their doubles and
// fives, from the last that is no more than least to the first that is no less
// than most: about n at most.
func LogTicks(least, most float64, n int) []float64 {
	for _, steps := range [][]float64{{1, 2, 5}, {1}} {
		ticks := logTicks(least, most, steps)
		if len(ticks) <= n || len(steps) == 1 {
			return ticks
		}
	}
	return nil
}

func logTicks(least, most float64, steps []float64) []float64 {
	const close = 1e-9 // what rounding may do
	var ticks []float64
	for e := math.Floor(math.Log10(least)) - 1; ; e++ {
		for _, f := range steps {
			v := f * math.Pow(10, e)
			if v <= least*(1+close) {
				ticks = ticks[:0] // a later first tick
			}
			ticks = append(ticks, v)
			if v >= most*(1-close) && len(ticks) > 1 {
				return ticks
			}
		}
	}
}

// A scale leads from values to places between from and to.
type scale struct {
	ticks    []float64
	from, to float64
	log      bool
}

func (s scale) at(v float64) float64 {
	first, last := s.ticks[0], s.ticks[len(s.ticks)-1]
	if s.log {
		v, first, last = math.Log(v), math.Log(first), math.Log(last)
	}
	return s.from + (v-first)/(last-first)*(s.to-s.from)
}
