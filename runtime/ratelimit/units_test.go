package ratelimit_test

import (
	"math"
	"math/big"
	"testing"

	"github.com/ratelimitgen/ratelimitgen/runtime/ratelimit"
)

func TestUnitsSaturate(t *testing.T) {
	t.Parallel()
	for a := math.MinInt8; a <= math.MaxInt8; a++ {
		for b := math.MinInt8; b <= math.MaxInt8; b++ {
			clamp := func(n int) int8 { return int8(max(math.MinInt8, min(n, math.MaxInt8))) }
			x, y := int8(a), int8(b)
			if got := ratelimit.AddUnits(x, y); got != clamp(a+b) {
				t.Fatalf("%d + %d = %d", a, b, got)
			}
			if got := ratelimit.SubUnits(x, y); got != clamp(a-b) {
				t.Fatalf("%d - %d = %d", a, b, got)
			}
			if got := ratelimit.MulUnits(x, y); got != clamp(a*b) {
				t.Fatalf("%d * %d = %d", a, b, got)
			}
			u, v := uint8(a+128), uint8(b+128)
			uclamp := func(n int) uint8 { return uint8(max(0, min(n, math.MaxUint8))) }
			if got := ratelimit.AddUnits(u, v); got != uclamp(int(u)+int(v)) {
				t.Fatalf("%d + %d = %d", u, v, got)
			}
			if got := ratelimit.SubUnits(u, v); got != uclamp(int(u)-int(v)) {
				t.Fatalf("%d - %d = %d", u, v, got)
			}
			if got := ratelimit.MulUnits(u, v); got != uclamp(int(u)*int(v)) {
				t.Fatalf("%d * %d = %d", u, v, got)
			}
		}
	}
	edges := []int64{math.MinInt64, math.MinInt64 + 1, -1 << 32, -2, -1, 0, 1, 2, 1 << 31, 1 << 32, math.MaxInt64 - 1, math.MaxInt64}
	for _, a := range edges {
		for _, b := range edges {
			for _, c := range []struct {
				op   string
				got  int64
				want *big.Int
			}{
				{"+", ratelimit.AddUnits(a, b), new(big.Int).Add(big.NewInt(a), big.NewInt(b))},
				{"-", ratelimit.SubUnits(a, b), new(big.Int).Sub(big.NewInt(a), big.NewInt(b))},
				{"*", ratelimit.MulUnits(a, b), new(big.Int).Mul(big.NewInt(a), big.NewInt(b))},
			} {
				want := int64(math.MaxInt64)
				if c.want.IsInt64() {
					want = c.want.Int64()
				} else if c.want.Sign() < 0 {
					want = math.MinInt64
				}
				if c.got != want {
					t.Errorf("%d %s %d = %d, want %d", a, c.op, b, c.got, want)
				}
			}
		}
	}
}
