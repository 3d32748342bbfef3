package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/parley-mcp/parley/bench/control"
)

// processorTime is the time, of user and system, that processes and all those that they have
// started have had so far (proc(5): schedstat). What a thread used that has ended is not in it; Go's
// programs keep theirs.
func processorTime(roots ...int) (time.Duration, error) {
	parents, err := parentsOf()
	if err != nil {
		return 0, err
	}
	var sum time.Duration
	for pid := range parents {
		for up := pid; up > 1; up = parents[up] {
			if slices.Contains(roots, up) {
				own, err := control.ThreadsTime(pid)
				if err != nil {
					return 0, err
				}
				sum += own
				break
			}
		}
	}
	return sum, nil
}

// parentsOf lists all processes with their parents.
func parentsOf() (map[int]int, error) {
	files, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil || len(files) == 0 {
		return nil, fmt.Errorf("no processes in /proc: %w", errors.Join(err, errors.ErrUnsupported))
	}
	parents := make(map[int]int, len(files))
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			continue // it has ended
		}
		// pid (name) state ppid: the name may have spaces and brackets.
		text := string(data)
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		if fields := strings.Fields(text[strings.LastIndexByte(text, ')')+1:]); len(fields) > 1 {
			parents[pid], _ = strconv.Atoi(fields[1])
		}
	}
	return parents, nil
}
