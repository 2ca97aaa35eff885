package ratelimit

import "math"

// Units is what costs and limits are computed in before they become int64.
type Units interface {
	~int | ~int8 | ~int16 | ~int32 | ~int64 | ~uint | ~uint8 | ~uint16 | ~uint32 | ~uint64 | ~uintptr
}

// AddUnits returns a + b, or the greatest or least T if that is no T. Generated code
// computes costs with it and its likes: a cost that wraps around could become zero,
// and one that is too large is refused.
func AddUnits[T Units](a, b T) T {
	sum := a + b
	if (sum > a) == (b > 0) && (sum < a) == (b < 0) {
		return sum
	}
	return bound[T](b < 0)
}

// SubUnits returns a - b, or the greatest or least T if that is no T.
func SubUnits[T Units](a, b T) T {
	diff := a - b
	if (diff < a) == (b > 0) && (diff > a) == (b < 0) {
		return diff
	}
	return bound[T](b > 0)
}

// MulUnits returns a * b, or the greatest or least T if that is no T.
func MulUnits[T Units](a, b T) T {
	if a == 0 || b == 0 {
		return 0
	}
	product := a * b
	// The least T divided by -1 is itself, which is not its negation.
	if product/b == a && (product < 0) == ((a < 0) != (b < 0)) {
		return product
	}
	return bound[T]((a < 0) != (b < 0))
}

// DivUnits returns a / b without its fraction, or the greatest T if that is no T: the
// least T divided by -1. It panics if b is 0.
func DivUnits[T Units](a, b T) T {
	quotient := a / b
	if a < 0 && b < 0 && quotient < 0 {
		return bound[T](false)
	}
	return quotient
}

// ConvertUnits returns n as a To, or the greatest or least To if it is no To.
func ConvertUnits[To, From Units](n From) To {
	to := To(n)
	if From(to) == n && (to < 0) == (n < 0) {
		return to
	}
	return bound[To](n < 0)
}

// FloatUnits returns f without its fraction, or the greatest or least To if that is no
// To. It returns 0 if f is not a number.
func FloatUnits[To Units](f float64) To {
	least, greatest := bound[To](true), bound[To](false)
	switch {
	case math.IsNaN(f):
		return 0
	case f <= float64(least):
		return least
	case f >= float64(greatest):
		return greatest
	}
	return To(f)
}

// FiniteLimit returns n, or the greatest number less than Unlimited. Generated code
// calls it for a limit that is computed, so that one that stopped at the bounds of its
// type is a great limit, which MaxLimit bounds, and not none.
func FiniteLimit(n int64) int64 { return min(n, Unlimited-1) }

// bound returns the least or the greatest T.
func bound[T Units](least bool) T {
	var zero T
	if ones := ^zero; ones > 0 { // unsigned
		if least {
			return 0
		}
		return ones
	}
	greatest := T(1)
	for next := greatest<<1 | 1; next > greatest; next = greatest<<1 | 1 {
		greatest = next
	}
	if least {
		return ^greatest
	}
	return greatest
}
