//go:build !race

package directive

const slowdown = 1
