package main

import (
	"bytes"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// scheduled are the functions of package runtime that find work for a thread, put it to sleep and
// wake it, with the locks and clocks that they use. How often they run depends on how fast the
// other side of a connection and the machine are: beside other programs they take a third more.
var scheduled = regexp.MustCompile(`^runtime\.(\((\*timers|\*timer|\*limiterEvent|\*mLockProfile|\*lockTimer|\*randomEnum|\*randomOrder)\)\..*|` +
	strings.Join([]string{
		"sched.*", "findRunnable", "stealWork", "netpoll.*", "sysmon", "retake", "nanotime1?", "lock2?", "unlock2?", "unlock2Wake", "lockWithRank",
		"casgstatus", "procyield.*", "park_m", "gopark", "goready", "ready", "readyWithTime", "execute", "pidle.*", "usleep", "note.*", "futex.*",
		"startm", "stopm", "wakep", "handoffp", "mput", "mget", "mPark", "newm1?", "mstart1?", "incidlelocked", "acquirep.*", "releasep.*", "wirep",
		"exitsyscall.*", "reentersyscall", "entersyscall.*", "mcall", "gogo", "dropg", "injectglist", "timeSleepUntil", "check.*P", "checkdead",
		"globrunq.*", "runq.*", "resetspinning", "osyield", "goschedImpl", "gosched_m",
	}, "|") + `)('\d+|\.abi0)*$`)

// instructionsOf sums what callgrind counted in the functions of a program, without the scheduler's.
// In its file "fn=(7) name" begins the lines of a function, whose name is there once; of "calls=" the
// next line is the cost of what was called, which stands at the called function too.
func instructionsOf(text []byte) (float64, error) {
	names, costs := make(map[string]string), make(map[string]float64)
	var all, stated float64
	function, ofCall := "", false
	for line := range bytes.Lines(text) {
		key, rest, ok := strings.Cut(strings.TrimSpace(string(line)), "=")
		switch {
		case ok && (key == "fn" || key == "cfn"):
			id, name, _ := strings.Cut(rest, " ")
			if name != "" {
				names[id] = name
			}
			if key == "fn" {
				function = id
			}
		case key == "calls":
			ofCall = true
		case strings.HasPrefix(key, "totals: "):
			var err error
			if stated, err = strconv.ParseFloat(strings.TrimPrefix(key, "totals: "), 64); err != nil {
				return 0, err
			}
		case function == "" || ok || key == "" || !strings.Contains("+-*0123456789", key[:1]):
		case ofCall:
			ofCall = false
		default:
			_, cost, _ := strings.Cut(key, " ")
			n, err := strconv.ParseFloat(cost, 64)
			if err != nil {
				return 0, fmt.Errorf("callgrind: the line %q has no cost", key)
			}
			costs[function] += n
			all += n
		}
	}
	if stated == 0 {
		return 0, fmt.Errorf("callgrind gave no totals: %.300q", text)
	}
	if all != stated {
		return 0, fmt.Errorf("callgrind: the functions sum to %.0f instructions, and the totals are %.0f", all, stated)
	}
	for id, n := range costs {
		if scheduled.MatchString(names[id]) {
			all -= n
		}
	}
	return all, nil
}
