package main

import "fmt"

// plain measures a module without directives.
func (b *bench) plain() error {
	dir, err := b.module("plainmodule", 500, 0)
	if err != nil {
		return err
	}
	medians, err := b.inTurns(func() (usage, error) { return b.ratelimitgen(dir) })
	if err != nil {
		return err
	}
	fmt.Printf("Nothing to do: 3000 files without directives, medians of %d runs, %s\n\n", b.rounds, load())
	if err := printUsage(row{"ratelimitgen", medians[0]}); err != nil {
		return err
	}
	b.target("CPU seconds", medians[0].cpu, plainTarget)
	return nil
}

// growth measures larger modules: one with more packages around the same limited
// ones, and some with more of both. ours is what 500 packages cost.
func (b *bench) growth(ours usage) error {
	type size struct{ packages, limited int }
	rows := []row{{"500 packages, 20 limited", ours}}
	var programs []func() (usage, error)
	for _, s := range []size{{1000, 20}, {1000, 40}, {2000, 80}} {
		dir, err := b.module(fmt.Sprintf("module%dx%d", s.packages, s.limited), s.packages, s.limited)
		if err != nil {
			return err
		}
		rows = append(rows, row{name: fmt.Sprintf("%d packages, %d limited", s.packages, s.limited)})
		programs = append(programs, func() (usage, error) { return b.ratelimitgen(dir) })
	}
	medians, err := b.inTurns(programs...)
	if err != nil {
		return err
	}
	for i, u := range medians {
		rows[i+1].usage = u
	}
	fmt.Printf("Growth: medians of %d runs, %s\n\n", b.rounds, load())
	if err := printUsage(rows...); err != nil {
		return err
	}
	b.target("CPU for each package, 2000 of 500", rows[len(rows)-1].cpu/4/ours.cpu, growthTarget)
	return nil
}
