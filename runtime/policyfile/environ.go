package policyfile

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ratelimitgen/ratelimitgen/internal/diag"
	"github.com/ratelimitgen/ratelimitgen/runtime/ratelimit"
)

// variable is one of the environment that is for us.
type variable struct{ name, text string }

// variablesOf returns those whose name begins with the prefix, sorted. Of several of
// one name the last counts, as for os/exec.
func variablesOf(prefix string, environ []string) []variable {
	values := map[string]string{}
	for _, v := range environ {
		if name, text, ok := strings.Cut(v, "="); ok && strings.HasPrefix(name, prefix) {
			values[name] = text
		}
	}
	var all []variable
	for name, text := range values {
		all = append(all, variable{name, text})
	}
	slices.SortFunc(all, func(a, b variable) int { return strings.Compare(a.name, b.name) })
	return all
}

// variableName is what a name is in the name of a variable: upper-case, with one '_'
// for all between letters and digits.
func variableName(name string) string {
	var b strings.Builder
	gap := false
	for _, c := range name {
		switch {
		case 'a' <= c && c <= 'z':
			c += 'A' - 'a'
		case 'A' <= c && c <= 'Z', '0' <= c && c <= '9':
		default:
			gap = true
			continue
		}
		if gap && b.Len() > 0 {
			b.WriteByte('_')
		}
		gap = false
		b.WriteRune(c)
	}
	return b.String()
}

const defaultsWord = "defaults"

// environment is what variables set of the policies that there are.
type environment struct {
	defaults []setting
	limits   map[string][]setting // by Policy.ID
	unknown  []Problem            // variables that no policy has
	wrong    []Problem
}

// environment finds which policy and option each variable is for.
func (b *Binding) environment(policies []ratelimit.Policy) environment {
	env := environment{limits: map[string][]setting{}}
	if len(b.variables) == 0 {
		return env
	}
	owners := map[string][]string{variableName(defaultsWord): {""}} // by the part of the variable's name
	for i := range policies {
		id := policies[i].ID
		part := variableName(id)
		owners[part] = append(owners[part], id)
	}
	for _, v := range b.variables {
		b.assign(&env, v, owners)
	}
	return env
}

func (b *Binding) assign(env *environment, v variable, owners map[string][]string) {
	at := place{file: v.name}
	rest := strings.TrimPrefix(v.name, b.prefix)
	var ids []string
	var of *option
	possible := false
	for i := range limitOptions {
		o := &limitOptions[i]
		part, ok := strings.CutSuffix(rest, "_"+variableName(o.name))
		if !ok || part == "" {
			continue
		}
		possible = true
		for _, id := range owners[part] {
			ids, of = append(ids, id), o
		}
	}
	switch {
	case !possible:
		env.wrong = append(env.wrong, at.problem("no variable has this name: write %s<NAME>_<OPTION>%s", b.prefix, suggestOption(rest)))
		return
	case len(ids) == 0:
		env.unknown = append(env.unknown, at.problem("no limit has this name%s", b.suggestVariable(v.name, owners)))
		return
	case len(ids) > 1:
		for i, id := range ids {
			if ids[i] = fmt.Sprintf("%q", id); id == "" {
				ids[i] = defaultsWord
			}
		}
		env.wrong = append(env.wrong, at.problem("it may be for %s: set it in the file", strings.Join(ids, " or ")))
		return
	}
	value, wrong := of.decode(v.text)
	switch {
	case wrong != "":
		env.wrong = append(env.wrong, at.problem("%s: %s", show(v.text), wrong))
	case ids[0] != "":
		env.limits[ids[0]] = append(env.limits[ids[0]], setting{at, of, value})
	case !of.inDefaults:
		env.wrong = append(env.wrong, at.problem("%s belongs to each limit itself: write %s<NAME>_%s", of.name, b.prefix, variableName(of.name)))
	default:
		env.defaults = append(env.defaults, setting{at, of, value})
	}
}

// suggestOption tells which option the end of a variable's name was meant to be.
func suggestOption(rest string) string {
	var options []string
	best := ""
	for i := range limitOptions {
		name := variableName(limitOptions[i].name)
		options = append(options, name)
		words := strings.Split(rest, "_")
		if n := strings.Count(name, "_") + 1; len(words) > n {
			if best == "" && diag.Suggest(strings.Join(words[len(words)-n:], "_"), []string{name}) != "" {
				best = fmt.Sprintf("; did you mean the option %s?", name)
			}
		}
	}
	return best + fmt.Sprintf(" (options: %s)", strings.Join(options, ", "))
}

func (b *Binding) suggestVariable(name string, owners map[string][]string) string {
	var all []string
	for part, ids := range owners {
		for i := range limitOptions {
			if ids[0] == "" && len(ids) == 1 && !limitOptions[i].inDefaults {
				continue
			}
			if option := variableName(limitOptions[i].name); strings.HasSuffix(name, "_"+option) {
				all = append(all, b.prefix+part+"_"+option)
			}
		}
	}
	slices.Sort(all)
	return nearest(name, all)
}

// nearest tells which of the names, in order, was probably meant, and what there is if
// there is little.
func nearest(name string, all []string) string {
	const most = 10
	tail := func(s string) string { return s[strings.LastIndexAny(s, "/.")+1:] }
	meant := diag.Suggest(name, all)
	for _, rule := range []func(valid string) bool{
		func(valid string) bool { return strings.EqualFold(valid, name) },
		func(valid string) bool {
			return len(valid) > len(name) && strings.EqualFold(valid[len(valid)-len(name):], name)
		},
		func(valid string) bool { return diag.Suggest(tail(name), []string{tail(valid)}) != "" },
	} {
		for _, valid := range all {
			if meant == "" && rule(valid) {
				meant = valid
			}
		}
	}
	text := ""
	if meant != "" {
		text = fmt.Sprintf("; did you mean %q?", meant)
	}
	switch {
	case len(all) == 0:
		return text + " (the limiter has no gates yet)"
	case len(all) <= most:
		return text + fmt.Sprintf(" (valid: %s)", strings.Join(all, ", "))
	}
	return text + fmt.Sprintf(" (valid: %s and %d more)", strings.Join(all[:most], ", "), len(all)-most)
}
