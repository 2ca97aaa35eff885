-- The algorithms and options that need more than the states of plain.lua hold are in
-- this file and the next ones, up to ends.lua: together, the body of the function
-- records, so that a call that needs none of it is not held up. They do, number by
-- number, what the records of package ratelimit do, in the files that are named below.
--
-- What such an algorithm needs besides the six arguments of every limit, in this order:
--
--   id      8 bytes that name the call, or none if nothing will end it; behind them, for
--           a call that waits for a place, 8 that name it each time it asks: its units (4)
--           and others
--   locks   their number, then their lengths in microseconds
--   then, by algorithm,
--   sliding    the length of a part, and how many parts count
--   bucket+    the tokens of a new bucket, 0 if it is full and -1 if it is empty
--   interval   the same
--   warm       the time that it takes to warm up
--   aligned    five times, between which windows of the calendar are

local NEVER = EXACT / 2 -- a time after all others, and a number above all others
local MAX_HOLDS = 4096

-- a * b / c as a whole number and a remainder, for any c that is at most twice
-- MAX_WINDOW. A quotient that is not exact is above NEVER.
local function muldiv(a, b, c)
  local p = a * b
  if p < EXACT then
    local r = fmod(p, c)
    return (p - r) / c, r
  end
  local r = fmod(a, c)
  local q = (a - r) / c * b
  -- The rest, r * b / c, in steps of two bits of b.
  local unit, n, m = 1, 0, 0
  while unit * 4 <= b do unit = unit * 4 end
  while unit >= 1 do
    local digit = floor(b / unit)
    b, unit = b - digit * unit, unit / 4
    local s = m * 4 + r * digit
    m = fmod(s, c)
    n = n * 4 + (s - m) / c
  end
  return q + n, m
end

local function divup(a, b)
  local r = fmod(a, b)
  return r > 0 and (a - r) / b + 1 or a / b
end

-- Holds are charges that may be given back, and places that are taken: an id (8
-- bytes), a time or a number (7) and units (4); of a bucket, also a level (7 and
-- 7). They are kept packed, the oldest first.

local function hold(r, p)
  return unpack('>I7I4', r.holds, p + 8)
end

local function find(r, id)
  local from = 1
  while true do
    local p = r.holds:find(id, from, true)
    if not p or fmod(p - 1, r.size) == 0 then return p end
    from = p + 1
  end
end

local function drop(r, p)
  r.holds = r.holds:sub(1, p - 1) .. r.holds:sub(p + r.size)
end

local function dropOld(r, old)
  local p = 1
  while p < #r.holds and old(hold(r, p)) do p = p + r.size end
  if p > 1 then r.holds = r.holds:sub(p) end
end

local function keep(r, id, at, units, rest)
  r.holds = r.holds .. id .. pack('>I7I4', at, units) .. (rest or '')
end

-- keepCharge is keep for what may be forgotten: then it stays charged.
local function keepCharge(r, id, at, units, rest)
  if #r.holds >= MAX_HOLDS * r.size then r.holds = r.holds:sub(r.size + 1) end
  keep(r, id, at, units, rest)
end

-- changeHolds calls f with the numbers of each hold, and keeps what it returns.
local function changeHolds(r, format, f)
  local all = {}
  for p = 1, #r.holds, r.size do
    all[#all + 1] = r.holds:sub(p, p + 7) .. pack(format, f(unpack(format, r.holds, p + 8)))
  end
  r.holds = table.concat(all)
end

-- lapse puts r back to the time of its lock, if nothing else is recorded any more.
local function lapse(op, rule, r)
  if r.locks > 0 and not r.ahead and rule.clear(op, r) == -NEVER then r.last = r.locked end
end

local build = {} -- functions that make the rules, as few calls need more than one

-- A counting rule has used(op, r), and compares it with the capacity.
local function counting(rule)
  function rule.admits(op, r, cost) return rule.used(op, r) + cost <= op.capacity end
  function rule.remaining(op, r) return max(op.capacity - rule.used(op, r), 0) end
  return rule
end

