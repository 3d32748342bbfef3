package issuer

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A slot is the place of a key in a store. Time is cut into periods; each has slots for each
// algorithm, by number. Of the keys of a period the active one with the lowest number signs. Those
// with higher numbers take its place once it is retired or revoked.
type slot struct {
	algorithm string
	length    int64 // of the periods, in seconds
	period    int64 // counted from 1970
	number    int
}

// slotAt is the first slot of the period that t is in.
func slotAt(algorithm string, length time.Duration, t time.Time) slot {
	seconds := int64(length / time.Second)
	return slot{algorithm, seconds, t.Unix() / seconds, 0}
}

// String is the slot as keys have it: ES256/2592000/687, and ES256/2592000/687/1 for the second.
func (s slot) String() string {
	name := s.algorithm + "/" + strconv.FormatInt(s.length, 10) + "/" + strconv.FormatInt(s.period, 10)
	if s.number > 0 {
		name += "/" + strconv.Itoa(s.number)
	}
	return name
}

// parseSlot reads what String wrote.
func parseSlot(name string) (s slot, ok bool) {
	parts := strings.Split(name, "/")
	if len(parts) < 3 || len(parts) > 4 {
		return s, false
	}
	var numbers [3]int64
	for i, part := range parts[1:] {
		n, err := strconv.ParseInt(part, 10, 32)
		if err != nil {
			return s, false
		}
		numbers[i] = n
	}
	s = slot{parts[0], numbers[0], numbers[1], int(numbers[2])}
	return s, s.length > 0 && s.String() == name
}

// with is the slot of another number of the same period.
func (s slot) with(number int) slot {
	s.number = number
	return s
}

// start and end are those of the period.
func (s slot) start() time.Time { return time.Unix(s.period*s.length, 0).UTC() }
func (s slot) end() time.Time   { return time.Unix((s.period+1)*s.length, 0).UTC() }

// KeyOverlap is how long a key that is replaced as planned signs after its successor was published:
// servers that verify tokens keep the published keys for five minutes, and their clocks and those of
// caches between may be off.
const KeyOverlap = keysMaxAge + clockSlack

// Signers returns the keys that sign now, of those that a store has, in the order of their slots.
// There is one for each algorithm and KeyLifetime that servers on the store had; of them each server
// takes that of its own options.
//
// To replace a key as planned, call [Store].RetireKey with a time [KeyOverlap] ahead; to have it
// replaced at once, with the present; and RevokeKey if it was stolen. Servers make the successor:
// those that run within two seconds, or a minute if nobody asks them for anything.
func Signers(keys []*Key, now time.Time) []*Key {
	lowest := map[slot]slot{} // by the first slot of the period
	found := map[slot]*Key{}
	for _, key := range keys {
		s, ok := parseSlot(key.Slot)
		if !ok || key.Algorithm == SecretAlgorithm || key.State != KeyActive || !now.Before(key.Retires) ||
			now.Before(s.start()) || !now.Before(s.end()) {
			continue
		}
		first := s.with(0)
		if low, ok := lowest[first]; !ok || s.number < low.number {
			lowest[first], found[first] = s, key
		}
	}
	signers := make([]*Key, 0, len(found))
	for _, key := range found {
		signers = append(signers, key)
	}
	slices.SortFunc(signers, func(a, b *Key) int { return cmp.Compare(a.Slot, b.Slot) })
	return signers
}
