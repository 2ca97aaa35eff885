package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// watch follows the process pid and all that it starts until stop is closed, and
// returns the peaks of their memory. The kernel keeps the peak of each process,
// so that only what happens in the last milliseconds of one is missed. (Rusage
// does not do: it has one figure for a process and its children.)
func watch(pid int, stop <-chan struct{}) usage {
	var u usage
	exe := executable(pid)
	tick := time.NewTicker(3 * time.Millisecond)
	defer tick.Stop()
	for {
		u.own = max(u.own, peak(pid))
		for _, child := range descendants(pid) {
			// Between fork and exec a child still has the memory of its parent.
			if executable(child) != exe {
				u.children = max(u.children, peak(child))
			}
		}
		select {
		case <-stop:
			return u
		case <-tick.C:
		}
	}
}

func executable(pid int) string {
	name, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
	if err != nil {
		return "" // it has ended
	}
	return name
}

// peak returns the peak resident memory of a process, 0 if it has ended.
func peak(pid int) memory {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(status)) {
		if value, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kB, err := strconv.Atoi(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(value), "kB")))
			if err != nil {
				return 0
			}
			return memory(kB * 1024)
		}
	}
	return 0
}

func descendants(pid int) []int {
	var all []int
	tasks, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	if err != nil {
		return nil
	}
	for _, task := range tasks {
		list, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%s/children", pid, task.Name()))
		if err != nil {
			continue
		}
		for field := range strings.FieldsSeq(string(list)) {
			if child, err := strconv.Atoi(field); err == nil {
				all = append(append(all, child), descendants(child)...)
			}
		}
	}
	return all
}
