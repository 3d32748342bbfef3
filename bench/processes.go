package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
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
				own, err := threadsTime(pid)
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

// threadsTime is the time of all threads of a process.
func threadsTime(pid int) (time.Duration, error) {
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
	if err != nil {
		return 0, err
	}
	var sum time.Duration
	for _, file := range files {
		data, err := os.ReadFile(file)
		if errors.Is(err, fs.ErrNotExist) || err != nil && strings.Contains(err.Error(), "no such process") {
			continue // it has ended
		}
		if err != nil {
			return 0, err
		}
		spent, _, _ := strings.Cut(string(data), " ")
		ns, err := strconv.ParseInt(spent, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("%s: %w", file, err)
		}
		sum += time.Duration(ns)
	}
	return sum, nil
}
