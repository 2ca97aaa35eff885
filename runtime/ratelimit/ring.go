package ratelimit

// unitBits is the width of the units in a stamp: 1..MaxLogLimit, less one.
const unitBits = 12

// stamp is a time and the units that were charged at it, packed. Times count from
// the entry's base, which is renewed whenever the log has emptied, and so stay far
// below 2^51.
type stamp uint64

func (s stamp) time() int64  { return int64(s >> unitBits) }
func (s stamp) units() int64 { return int64(s&(1<<unitBits-1)) + 1 }

// ring is the log of one key: its stamps by increasing time.
type ring struct {
	stamps []stamp
	head   uint16
	n      uint16
	units  int32 // of all n stamps
}

// at returns the stamp that i stamps are before, which must be at most n.
func (g *ring) at(i int) *stamp {
	if i += int(g.head); i >= len(g.stamps) {
		i -= len(g.stamps)
	}
	return &g.stamps[i]
}

// live returns the units charged later than expired.
func (g *ring) live(expired int64) int64 {
	units := int64(g.units)
	for i := range int(g.n) {
		s := *g.at(i)
		if s.time() > expired {
			break
		}
		units -= s.units()
	}
	return units
}

// freed returns the time of the stamp whose expiry brings the units that expire
// after the time expired to at least the given number.
func (g *ring) freed(expired, units int64) int64 {
	for i := range int(g.n) {
		s := *g.at(i)
		if s.time() <= expired {
			continue
		}
		if units -= s.units(); units <= 0 {
			return s.time()
		}
	}
	return expired
}

// drop forgets what was charged at or before expired.
func (g *ring) drop(expired int64) {
	for g.n > 0 {
		s := *g.at(0)
		if s.time() > expired {
			return
		}
		g.units -= int32(s.units())
		g.n--
		if g.head++; int(g.head) == len(g.stamps) {
			g.head = 0
		}
	}
}

// push adds units at time t, which is not before the newest stamp. The log holds
// at most limit units, and so at most as many stamps.
func (g *ring) push(t, units int64, limit int) {
	g.units += int32(units)
	if g.n > 0 {
		if newest := g.at(int(g.n) - 1); newest.time() == t {
			*newest += stamp(units)
			return
		}
	}
	if int(g.n) == len(g.stamps) {
		g.grow(limit)
	}
	*g.at(int(g.n)) = stamp(t)<<unitBits | stamp(units-1)
	g.n++
}

// grow doubles the ring, up to limit.
func (g *ring) grow(limit int) {
	stamps := make([]stamp, min(limit, max(2, 2*len(g.stamps))))
	for i := range int(g.n) {
		stamps[i] = *g.at(i)
	}
	g.stamps, g.head = stamps, 0
}

// clone returns a copy of g that shares nothing with it.
func (g *ring) clone() ring {
	c := *g
	c.stamps = append([]stamp(nil), g.stamps...)
	return c
}

// maxStamps bounds the stamps of a log that is charged after calls.
const maxStamps = 1<<16 - 1

// pushAny is push for any number of units, also above the limit. As no limit is
// above MaxLogLimit, more than one unit above that at one time makes no difference.
func (g *ring) pushAny(t, units int64) {
	for units = min(units, MaxLogLimit+1); units > 0; {
		piece := min(units, MaxLogLimit)
		if g.n > 0 {
			newest := g.at(int(g.n) - 1)
			switch room := MaxLogLimit - newest.units(); {
			case g.n == maxStamps:
				// Far above every limit: what is newest counts for longer.
				*newest = stamp(t)<<unitBits | stamp(newest.units()-1)
				return
			case newest.time() != t:
			case room > 0:
				piece = min(piece, room)
			default:
				g.add(t, piece)
				units -= piece
				continue
			}
		}
		g.push(t, piece, maxStamps)
		units -= piece
	}
}

// add is push with a stamp of its own.
func (g *ring) add(t, units int64) {
	if int(g.n) == len(g.stamps) {
		g.grow(maxStamps)
	}
	g.units += int32(units)
	*g.at(int(g.n)) = stamp(t)<<unitBits | stamp(units-1)
	g.n++
}

// take takes out units that were charged at time t, as far as they are there.
func (g *ring) take(t, units int64) {
	for i := int(g.n) - 1; i >= 0 && units > 0; i-- {
		s := g.at(i)
		switch have := s.units(); {
		case s.time() < t:
			return
		case s.time() > t:
		case have > units:
			*s -= stamp(units)
			g.units -= int32(units)
			return
		default:
			units -= have
			g.units -= int32(have)
			for j := i; j+1 < int(g.n); j++ {
				*g.at(j) = *g.at(j + 1)
			}
			g.n--
		}
	}
}
