//go:build race

package directive

// slowdown is what the race detector costs, generously.
const slowdown = 10
