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
			if b != 0 {
				if got := ratelimit.DivUnits(x, y); got != clamp(a/b) {
					t.Fatalf("%d / %d = %d", a, b, got)
				}
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
	if got := ratelimit.DivUnits[uint8](255, 255); got != 1 {
		t.Errorf("255 / 255 = %d", got)
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

func TestConvertedUnitsSaturate(t *testing.T) {
	t.Parallel()
	for n := math.MinInt16; n <= math.MaxInt16; n++ {
		if got, want := ratelimit.ConvertUnits[int8](int16(n)), int8(max(math.MinInt8, min(n, math.MaxInt8))); got != want {
			t.Fatalf("int8(%d) = %d, want %d", n, got, want)
		}
		if got, want := ratelimit.ConvertUnits[uint8](int16(n)), uint8(max(0, min(n, math.MaxUint8))); got != want {
			t.Fatalf("uint8(%d) = %d, want %d", n, got, want)
		}
		if got, want := ratelimit.ConvertUnits[uint64](int16(n)), uint64(max(0, n)); got != want {
			t.Fatalf("uint64(%d) = %d, want %d", n, got, want)
		}
		u := uint16(n - math.MinInt16)
		if got, want := ratelimit.ConvertUnits[int16](u), int16(min(u, math.MaxInt16)); got != want {
			t.Fatalf("int16(%d) = %d, want %d", u, got, want)
		}
		if got := ratelimit.ConvertUnits[int64](u); got != int64(u) {
			t.Fatalf("int64(%d) = %d", u, got)
		}
	}
	if got := ratelimit.ConvertUnits[int64](uint64(math.MaxUint64)); got != math.MaxInt64 {
		t.Errorf("int64(%d) = %d", uint64(math.MaxUint64), got)
	}
	if got := ratelimit.ConvertUnits[int32](int64(math.MinInt64)); got != math.MinInt32 {
		t.Errorf("int32(%d) = %d", math.MinInt64, got)
	}
	if got := ratelimit.ConvertUnits[uint64](int64(math.MinInt64)); got != 0 {
		t.Errorf("uint64(%d) = %d", math.MinInt64, got)
	}
}

func TestFloatsThatBecomeUnitsSaturate(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		f      float64
		wide   int64
		narrow int8
		plain  uint64
	}{
		{2.9, 2, 2, 2},
		{-2.9, -2, -2, 0},
		{127.9, 127, 127, 127},
		{128, 128, 127, 128},
		{-128.9, -128, -128, 0},
		{1 << 53, 1 << 53, 127, 1 << 53},
		{math.Nextafter(1<<63, 0), 1<<63 - 1<<10, 127, 1<<63 - 1<<10},
		{1 << 63, math.MaxInt64, 127, 1 << 63},
		{1 << 64, math.MaxInt64, 127, math.MaxUint64},
		{-1 << 63, math.MinInt64, -128, 0},
		{-1e300, math.MinInt64, -128, 0},
		{math.Inf(1), math.MaxInt64, 127, math.MaxUint64},
		{math.Inf(-1), math.MinInt64, -128, 0},
		{math.NaN(), 0, 0, 0},
	} {
		if got := ratelimit.FloatUnits[int64](c.f); got != c.wide {
			t.Errorf("int64(%v) = %d, want %d", c.f, got, c.wide)
		}
		if got := ratelimit.FloatUnits[int8](c.f); got != c.narrow {
			t.Errorf("int8(%v) = %d, want %d", c.f, got, c.narrow)
		}
		if got := ratelimit.FloatUnits[uint64](c.f); got != c.plain {
			t.Errorf("uint64(%v) = %d, want %d", c.f, got, c.plain)
		}
	}
}

func TestComputedLimitIsNeverUnlimited(t *testing.T) {
	t.Parallel()
	for n, want := range map[int64]int64{
		math.MinInt64: math.MinInt64, 0: 0, 7: 7, math.MaxInt64 - 1: math.MaxInt64 - 1, ratelimit.Unlimited: math.MaxInt64 - 1,
	} {
		if got := ratelimit.FiniteLimit(n); got != want {
			t.Errorf("FiniteLimit(%d) = %d, want %d", n, got, want)
		}
	}
}
