package diag

import "strings"

// Suggest returns the name among valid that word was probably meant to be, or ""
// if none is close: at most one edit (insertion, deletion, replacement, swap of
// neighbours) for words up to four bytes long, two for longer ones. Case does not
// count, and neither does the difference between '_' and '-'.
func Suggest(word string, valid []string) string {
	fold := func(s string) string { return strings.ReplaceAll(strings.ToLower(s), "_", "-") }
	w := fold(word)
	if w == "" || len(w) > 64 { // no name is so long
		return ""
	}
	limit := 2
	if len(w) <= 4 {
		limit = 1
	}
	best, bestDist := "", limit+1
	for _, v := range valid {
		if n := len(v) - len(w); n >= bestDist || -n >= bestDist {
			continue // at least n edits
		}
		if d := distance(w, fold(v)); d < bestDist {
			best, bestDist = v, d
		}
	}
	return best
}

// distance is the optimal string alignment distance of a and b.
func distance(a, b string) int {
	var rows [3][72]int // enough for what Suggest compares
	prev2, prev, cur := rows[0][:], rows[1][:], rows[2][:]
	if len(b) >= len(prev) {
		prev2, prev, cur = make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	}
	prev = prev[:len(b)+1]
	for j := range prev {
		prev[j] = j
	}
	for i := 1; i <= len(a); i++ {
		cur[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			cur[j] = min(prev[j]+1, cur[j-1]+1, prev[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				cur[j] = min(cur[j], prev2[j-2]+1)
			}
		}
		prev2, prev, cur = prev, cur, prev2
	}
	return prev[len(b)]
}
