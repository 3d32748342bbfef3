package chaos

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// A Fault is what is done to a frame or to an answer of HTTP.
type Fault string

// The faults; the table that [Faults] returns says what each one does.
const (
	Delay       Fault = "delay"
	Slow        Fault = "slow"
	Drop        Fault = "drop"
	Truncate    Fault = "truncate"
	Reorder     Fault = "reorder"
	Duplicate   Fault = "duplicate"
	BadJSON     Fault = "bad-json"
	WrongID     Fault = "wrong-id"
	Expire      Fault = "expire"
	Status401   Fault = "401"
	Status429   Fault = "429"
	Status503   Fault = "503"
	HTML        Fault = "html"
	ContentType Fault = "content-type"
	HeadersOnly Fault = "headers-only"
)

// A place is where a fault can be applied.
type place uint8

const (
	onPipe     place = 1 << iota // a line, in either direction
	onRequest                    // the body of an HTTP request
	onResponse                   // a whole HTTP response: in the place of the server's, or its head
	onBody                       // the body of an HTTP response that is no event stream
	onEvent                      // an event of an event stream
)

const everywhere = onPipe | onRequest | onBody | onEvent

// A Description is a row of the table of faults.
type Description struct {
	Fault Fault
	// Pipe and HTTP say over what the fault can be applied.
	Pipe, HTTP bool
	// Does says what the fault does.
	Does string
}

type row struct {
	fault  Fault
	places place
	does   string
}

// rows is the table of faults. Their order is that of the flags' help; it decides nothing.
var rows = []row{
	{Delay, everywhere, "hold the frame, and what is behind it, for a while"},
	{Slow, everywhere, "write the frame in up to 32 pieces with pauses, and read nothing meanwhile"},
	{Drop, everywhere, "write a part of the frame, then end the connection"},
	{Truncate, everywhere, "leave the end of the frame out, and go on with the next one"},
	{Reorder, onPipe | onEvent, "send the frame after the next one, or at the end"},
	{Duplicate, everywhere, "send the frame twice"},
	{BadJSON, everywhere, "replace one byte of the frame by a control character, which no JSON may hold"},
	{WrongID, everywhere, "give the message another id"},
	{Expire, onResponse, "answer 404 for the session of the request, from now on"},
	{Status401, onResponse, "answer 401 with a Bearer challenge"},
	{Status429, onResponse, "answer 429 with Retry-After"},
	{Status503, onResponse, "answer 503"},
	{HTML, onResponse, "answer 200 with a web page"},
	{ContentType, onResponse, "pass on the server's answer with another content type"},
	{HeadersOnly, onResponse, "pass on the headers of the server's answer, then end the connection"},
}

// Faults is the table of faults.
func Faults() []Description {
	list := make([]Description, 0, len(rows))
	for _, r := range rows {
		list = append(list, Description{r.fault, r.places&onPipe != 0, r.places&^onPipe != 0, r.does})
	}
	return list
}

// Rates say how likely each fault is at each frame where it can be applied, from 0 to 1. A fault
// that is not named is never applied. Of several that would be applied at once, one is.
type Rates map[Fault]float64

// Rates where nothing else is said.
const (
	// DefaultRate is that of every fault if none is named.
	DefaultRate = 0.02
	// NamedRate is that of a fault that is named without a rate.
	NamedRate = 0.1
)

// DefaultRates are all faults at DefaultRate.
func DefaultRates() Rates {
	rates := make(Rates, len(rows))
	for _, r := range rows {
		rates[r.fault] = DefaultRate
	}
	return rates
}

// ParseRates reads faults written as NAME or NAME=RATE; "all" stands for each that is not named.
// None give DefaultRates.
func ParseRates(list []string) (Rates, error) {
	if len(list) == 0 {
		return DefaultRates(), nil
	}
	rates := make(Rates, len(rows))
	rest := 0.0
	for _, text := range list {
		name, given, found := strings.Cut(text, "=")
		rate := NamedRate
		if found {
			n, err := strconv.ParseFloat(given, 64)
			if err != nil || math.IsNaN(n) || n < 0 || n > 1 {
				return nil, fmt.Errorf("the rate of the fault %s is %q; write a number from 0 to 1, as in %s=0.1", name, given, name)
			}
			rate = n
		}
		if name == "all" {
			rest = rate
			continue
		}
		if !slices.ContainsFunc(rows, func(r row) bool { return string(r.fault) == name }) {
			return nil, fmt.Errorf("there is no fault %q; there are all, %s", name, strings.Join(names(), ", "))
		}
		rates[Fault(name)] = rate
	}
	for _, r := range rows {
		if _, named := rates[r.fault]; !named && rest > 0 {
			rates[r.fault] = rest
		}
	}
	return rates, nil
}

func names() []string {
	list := make([]string, 0, len(rows))
	for _, r := range rows {
		list = append(list, string(r.fault))
	}
	return list
}
