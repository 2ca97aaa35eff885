-- Decides the limits of one call as one: each enforced limit admits it, and each
-- limit that admits it is charged, or none is.
--
-- This is the first part of one script: the header, and the algorithms that most
-- policies use. holds.lua begins what has the others, and decide.lua is what is run.
--
-- KEYS[i]  the state of the i-th limit; all keys are in one hash slot.
-- ARGV     six for each key: algorithm, limit, window in microseconds, capacity (a
--          bucket's burst, else the limit), cost, and a sum of 1 for a limit in
--          shadow mode, 2 for a peek, which charges nothing, 4 for a limit that
--          each call brings, 8 for a call that waits, whose refusal locks nothing,
--          16 for a peek at a call that is refused in any case, which locks what
--          refuses it, and 32 for a charge that may be given back. What other
--          algorithms need besides follows: see holds.lua.
-- Reply    four integers for each key: 1 if this limit admits the call, else 0;
--          the greatest cost it would admit now; after how many microseconds it
--          would admit this cost or, if it does, how long the call waits for its
--          turn; after how many its state is as new.
--
-- If ARGV[1] is 'reserve', all that was said of ARGV follows, and of the reply, the
-- time of the decision for each key. If it is 'end', ARGV tells what becomes of calls
-- that were admitted; see ends.lua.
--
-- Times are microseconds. All numbers are integers below 2^53, which a Lua number
-- holds exactly, and so are their products, under the bounds checked below.
-- math.fmod is exact; the operator % is not where the quotient is large.

local fmod, floor, ceil, max, min = math.fmod, math.floor, math.ceil, math.max, math.min
local pack, unpack = struct.pack, struct.unpack

local MAX_LIMIT = 1073741824
local MAX_LOG_LIMIT = 4096
local MAX_WINDOW = 316224000000000
local EXACT = 9007199254740992

local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]

local function complain(text)
  error('RATELIMIT ' .. text, 0)
end

local function foreign(op)
  complain('KEYS[' .. op.number .. '] does not hold the state of a ' .. op.algorithm .. ' limit')
end

-- Makes op.t the time to decide at, which never precedes the last time that the
-- state records, and returns that last time. Where it lies more than a window
-- ahead, the clock was set back for good: then the whole state moves with it.
local function settle(op, last)
  op.t = now
  if last and last > now then
    if last - now > op.window then
      op.moved = true
      return now
    end
    op.t = last
  end
  return last
end

local algorithms = {}

-- A fixed window. State: F, start of the window (7 bytes), units used (4).
function algorithms.fixed(op, raw)
  local start, used = nil, 0
  if raw then
    if #raw ~= 12 or raw:sub(1, 1) ~= 'F' then foreign(op) end
    start, used = unpack('>I7I4', raw, 2)
    if start >= EXACT or used < 1 or used > MAX_LIMIT then foreign(op) end
  end
  start = settle(op, start)
  if not start or op.t - start >= op.window then
    start, used = op.t, 0
  end

  op.allowed = used + op.cost <= op.limit
  op.retry = start + op.window - op.t

  function op.charge()
    used = used + op.cost
  end

  function op.remaining()
    return max(op.limit - used, 0)
  end

  function op.reset()
    return used > 0 and start + op.window - op.t or 0
  end

  function op.encode()
    return 'F' .. pack('>I7I4', start, used)
  end
end

-- A sliding log. State: L, width of the times below (1 byte), time of the newest
-- entry (7), sum before the first entry (2); then, from the oldest entry to the
-- newest, its time (width bytes) and the sum of all units up to it (2). The sums
-- count modulo 2^16, the times modulo 256^width, which exceeds the window, so that
-- only differences say something, nothing is rewritten when old entries go, and
-- what is asked is found by bisection.
function algorithms.log(op, raw)
  local HEADER, SUMS = 11, 65536
  local width, newest, before, format, size, modulus, count, last, sum

  local function wide(bytes)
    width, format, size = bytes, '>I' .. bytes .. 'I2', bytes + 2
    modulus = min(256 ^ bytes, EXACT / 2)
  end

  local function entry(i)
    return unpack(format, raw, HEADER + 1 + (i - 1) * size)
  end

  -- The units of all entries after the one whose sum is s, up to the one with sum e.
  local function units(s, e)
    return e >= s and e - s or e - s + SUMS
  end

  local function age(i)
    local d = last - entry(i)
    return op.t - newest + (d >= 0 and d or d + modulus)
  end

  -- The least i in low..high for which holds(i), which is so for all that follow.
  local function bisect(low, high, holds)
    while low <= high do
      local middle = floor((low + high) / 2)
      if holds(middle) then high = middle - 1 else low = middle + 1 end
    end
    return low
  end

  local needed = 3
  while 256 ^ needed <= op.window do needed = needed + 1 end

  local first, used = 1, 0
  if raw then
    if #raw < HEADER or raw:sub(1, 1) ~= 'L' then foreign(op) end
    local bytes
    bytes, newest, before = unpack('>BI7I2', raw, 2)
    if bytes < 3 or bytes > 7 or newest >= EXACT then foreign(op) end
    wide(bytes)
    count = (#raw - HEADER) / size
    if count < 1 or count > MAX_LOG_LIMIT or count ~= floor(count) then foreign(op) end
    last, sum = entry(count)
    local all = units(before, sum)
    if last >= modulus or all < count or all > MAX_LOG_LIMIT then foreign(op) end

    newest = settle(op, newest)
    first = bisect(1, count, function(i) return age(i) < op.window end)
    if first > 1 then
      local _
      _, before = entry(first - 1)
    end
    used = units(before, sum)
  else
    settle(op)
    count = 0
  end

  local excess = used + op.cost - op.limit
  op.allowed = excess <= 0
  if not op.allowed then
    op.retry = op.window - age(bisect(first, count, function(i)
      local _, upto = entry(i)
      return units(before, upto) >= excess
    end))
  end

  local body

  local function live()
    return raw:sub(HEADER + 1 + (first - 1) * size)
  end

  function op.charge()
    if used == 0 then
      wide(needed)
      body, before, sum, last, newest = '', 0, 0, 0, op.t
    elseif width < needed then
      local ages, oldest = {}, age(first)
      for i = first, count do
        local _, upto = entry(i)
        ages[i - first + 1] = pack('>I' .. needed .. 'I2', oldest - age(i), upto)
      end
      last = oldest - age(count)
      wide(needed)
      body = table.concat(ages)
    else
      body = live()
    end
    last = fmod(last + op.t - newest, modulus)
    if used > 0 and newest == op.t then
      body = body:sub(1, -1 - size) -- entries of one instant are one
    end
    sum = fmod(sum + op.cost, SUMS)
    body = body .. pack(format, last, sum)
    newest, used = op.t, used + op.cost
  end

  function op.remaining()
    return max(op.limit - used, 0)
  end

  function op.reset()
    return used > 0 and newest + op.window - op.t or 0
  end

  function op.encode()
    return 'L' .. pack('>BI7I2', width, newest, before) .. (body or live())
  end
end

local function gcd(a, b)
  while b > 0 do
    a, b = b, fmod(a, b)
  end
  return a
end

-- A token bucket, as GCRA. A unit takes w/l microseconds to refill, in lowest
-- terms. The debt is how long the bucket takes to be full, q + r/l, and never
-- above that of an empty one. State: B, time of the last charge (7 bytes), the
-- debt at that time as q (7) and r (4), and the w (7) and l (4) it was counted in,
-- for when the limit has changed.
function algorithms.bucket(op, raw)
  local g = gcd(op.window, op.limit)
  local w, l = op.window / g, op.limit / g
  local wr = fmod(w, l)
  local wq = (w - wr) / l

  -- The refill time of n units, n <= capacity, added to the debt q + r/l.
  local function add(n, q, r)
    local p = n * wr
    local pr = fmod(p, l)
    q, r = q + n * wq + (p - pr) / l, r + pr
    if r >= l then
      return q + 1, r - l
    end
    return q, r
  end

  local fullq, fullr = add(op.capacity, 0, 0)

  local function exceeds(q, r)
    return q > fullq or (q == fullq and r > fullr)
  end

  local last, q, r = nil, 0, 0
  if raw then
    if #raw ~= 30 or raw:sub(1, 1) ~= 'B' then foreign(op) end
    local w0, l0
    last, q, r, w0, l0 = unpack('>I7I7I4I7I4', raw, 2)
    if last >= EXACT or q > MAX_WINDOW or w0 < 1 or w0 > MAX_WINDOW or l0 < 1 or l0 > MAX_LIMIT
      or r >= l0 or q + r == 0 then
      foreign(op)
    end
    if w0 ~= w or l0 ~= l then
      -- The rate has changed: the units owed stay, and refill at the new rate
      -- since the last charge.
      local owed = q * l0 + r
      local part = fmod(owed, w0)
      local whole = (owed - part) / w0
      part = ceil(part / w0 * w)
      if whole >= op.capacity then
        q, r = fullq, fullr
      else
        r = fmod(part, l)
        q, r = add(whole, (part - r) / l, r)
      end
    end
    if exceeds(q, r) then
      q, r = fullq, fullr
    end
  end
  last = settle(op, last)
  if last then
    q = q - (op.t - last)
    if q < 0 then
      q, r = 0, 0
    end
  end

  local q1, r1 = add(op.cost, q, r)
  op.allowed = not exceeds(q1, r1)
  op.retry = q1 - fullq + (r1 > fullr and 1 or 0)

  function op.charge()
    q, r = q1, r1
  end

  -- The quotient is below 2^30 and not exact; a floor of it is off by one at most.
  function op.remaining()
    local n = max(floor((fullq - q + (fullr - r) / l) * l / w) - 1, 0)
    while n < op.capacity and not exceeds(add(n + 1, q, r)) do
      n = n + 1
    end
    return n
  end

  function op.reset()
    return r > 0 and q + 1 or q
  end

  function op.encode()
    return 'B' .. pack('>I7I7I4I7I4', op.t, q, r, w, l)
  end
end

local function integer(i, low, high)
  local n = tonumber(ARGV[i])
  if not (n and n >= low and n <= high and floor(n) == n) then -- a NaN is in no range
    complain('ARGV[' .. i .. '] is not an integer in its range')
  end
  return n
end

local function records()
-- The algorithms and options that need more than the states of plain.lua hold are in
-- this file and the next ones, up to ends.lua: together, the body of the function
-- records, so that a call that needs none of it is not held up. They do, number by
-- number, what the records of package ratelimit do, in the files that are named below.
--
-- What such an algorithm needs besides the six arguments of every limit, in this order:
--
--   id      8 bytes that name the call, or none if nothing will end it
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

local build = {} -- functions that make the rules, as few calls need more than one

-- A counting rule has used(op, r), and compares it with the capacity.
local function counting(rule)
  function rule.admits(op, r, cost) return rule.used(op, r) + cost <= op.capacity end
  function rule.remaining(op, r) return max(op.capacity - rule.used(op, r), 0) end
  return rule
end

-- A sliding log (windows.go). Entries are a time (7 bytes) and the sum of all
-- units up to it (7), r.used being the sum before the first.
build['log+'] = function()
  local rule, SIZE = counting {letter = 'l', fields = {'used'}, times = true}, 14

  local function entry(r, i)
    if i == 0 then return nil, r.used end
    return unpack('>I7I7', r.rest, (i - 1) * SIZE + 1)
  end

  local function bisect(r, low, holds)
    local high = #r.rest / SIZE
    while low <= high do
      local middle = floor((low + high) / 2)
      if holds(entry(r, middle)) then high = middle - 1 else low = middle + 1 end
    end
    return low
  end

  -- The first entry that counts, and the sum before it.
  local function live(op, r)
    local first = bisect(r, 1, function(at) return op.t - at < op.window end)
    local _, before = entry(r, first - 1)
    return first, before
  end

  -- Adds to the times, and to the sums from the i-th on.
  local function rewrite(r, time, i, units)
    local all = {}
    for j = 1, #r.rest / SIZE do
      local at, sum = entry(r, j)
      all[j] = pack('>I7I7', at + time, j >= i and sum + units or sum)
    end
    r.rest = table.concat(all)
  end

  function rule.check(r)
    return fmod(#r.rest, SIZE) == 0 and (r.rest ~= '' or r.locks > 0)
  end

  function rule.used(op, r)
    local _, before = live(op, r)
    local _, sum = entry(r, #r.rest / SIZE)
    return sum - before
  end

  function rule.charge(op, r, id)
    local first, before = live(op, r)
    r.rest, r.used = r.rest:sub((first - 1) * SIZE + 1), before
    if r.rest == '' then r.used = 0 end
    if r.used > NEVER / 2 then
      before, r.used = r.used, 0
      rewrite(r, 0, 1, -before)
    end
    local n = #r.rest / SIZE
    local at, sum = entry(r, n)
    if at == op.t then r.rest = r.rest:sub(1, -1 - SIZE) end
    -- No limit is above MAX_LOG_LIMIT, so more makes no difference.
    r.rest = r.rest .. pack('>I7I7', op.t, sum + min(op.cost, MAX_LOG_LIMIT + 1))
    dropOld(r, function(charged) return op.t - charged >= op.window end)
    if id then keepCharge(r, id, op.t, op.cost) end
    r.last = op.t
  end

  function rule.wait(op, r)
    local first, before = live(op, r)
    local excess = rule.used(op, r) + op.cost - op.capacity
    local at = entry(r, bisect(r, first, function(_, sum) return sum - before >= excess end))
    return at + op.window - op.t
  end

  function rule.clear(op, r)
    return r.rest ~= '' and entry(r, #r.rest / SIZE) + op.window or -NEVER
  end

  function rule.giveBack(op, r, p)
    local at, units = hold(r, p)
    drop(r, p)
    local i = bisect(r, 1, function(t) return t >= at end)
    local _, before = entry(r, i - 1)
    if i > #r.rest / SIZE then return end
    local t, sum = entry(r, i)
    if t ~= at then return end
    units = min(units, sum - before)
    rewrite(r, 0, i, -units)
    if units == sum - before then
      r.rest = r.rest:sub(1, (i - 1) * SIZE) .. r.rest:sub(i * SIZE + 1)
    end
  end

  function rule.shift(_, r, by)
    rewrite(r, -by, 1, 0)
  end
  return rule
end

-- A fixed window (windows.go).
build['fixed+'] = function()
  local rule = counting {letter = 'f', fields = {'base', 'used'}, times = true}

  function rule.used(op, r)
    return op.t - r.base < op.window and r.used or 0
  end

  function rule.charge(op, r, id)
    if op.t - r.base >= op.window then
      r.base, r.used, r.last, r.holds = op.t, 0, op.t, ''
    end
    r.used = min(r.used + op.cost, NEVER)
    if id then keepCharge(r, id, r.base, op.cost) end
  end

  function rule.wait(op, r)
    return r.base + op.window - op.t
  end

  function rule.clear(op, r)
    return r.used > 0 and r.base + op.window or -NEVER
  end

  function rule.giveBack(op, r, p)
    local at, units = hold(r, p)
    drop(r, p)
    if at == r.base then
      r.used = max(r.used - units, 0)
      if r.used == 0 then r.base = -NEVER end
    end
  end
  return rule
end

-- A fixed window on the calendar, from r.base to r.part. All holds are of it.
build.aligned = function()
  local rule = counting {letter = 'a', fields = {'base', 'used', 'part'}}

  local function window(op, t)
    local b = op.bounds
    for i = 1, #b - 1 do
      if t >= b[i] and t < b[i + 1] then return b[i], b[i + 1] end
    end
    complain('TIME ' .. string.format('%.0f', now) .. ' is in none of the windows of the calendar')
  end

  local function holds(op, r)
    return r.base >= window(op, op.t)
  end

  function rule.used(op, r)
    return holds(op, r) and r.used or 0
  end

  function rule.charge(op, r, id)
    if not holds(op, r) then
      r.used, r.holds = 0, ''
    end
    r.base, r.part = window(op, op.t)
    r.last, r.used = op.t, min(r.used + op.cost, NEVER)
    if id then keepCharge(r, id, 0, op.cost) end
  end

  function rule.wait(op)
    local _, upto = window(op, op.t)
    return upto - op.t
  end

  function rule.clear(_, r)
    return r.used > 0 and r.part or -NEVER
  end

  function rule.giveBack(_, r, p)
    local _, units = hold(r, p)
    drop(r, p)
    r.used = max(r.used - units, 0)
    if r.used == 0 then r.base = -NEVER end
  end

  function rule.shift(op, r)
    r.base, r.part = window(op, now)
  end
  return rule
end

-- A sliding window (windows.go): r.part is the number of the newest part that was
-- charged, of parts as long as r.length that are numbered from r.base on; r.rest
-- holds the units of each (4 bytes), by number modulo r.count.
build.sliding = function()
  local rule = counting {letter = 's', fields = {'base', 'part', 'length', 'count'}}

  local function units(r, part)
    return (unpack('>I4', r.rest, fmod(part, r.count) * 4 + 1))
  end

  local function set(r, part, n)
    local i = fmod(part, r.count) * 4
    r.rest, r.sum = r.rest:sub(1, i) .. pack('>I4', n) .. r.rest:sub(i + 5), nil
  end

  local function each(op, r, f)
    if r.rest == '' then return end
    local newest = floor((op.t - r.base) / r.length)
    for p = max(0, newest - r.count + 1, r.part - r.count + 1), min(newest, r.part) do
      local n = units(r, p)
      if n > 0 and f(p, n) then return end
    end
  end

  function rule.check(r)
    return r.length > 0 and r.count > 0 and r.count <= 61 and (r.rest == '' and r.locks > 0 or #r.rest == 4 * r.count)
  end

  function rule.used(op, r)
    if not r.sum then
      local used = 0
      each(op, r, function(_, n) used = used + n end)
      r.sum = used
    end
    return r.sum
  end

  local function ends(r, part)
    return r.base + (part + r.count) * r.length
  end

  function rule.charge(op, r, id)
    if rule.used(op, r) == 0 then
      r.base, r.part, r.length, r.count, r.holds = op.t, 0, op.length, op.count, ''
      r.rest, r.sum = string.rep('\0', 4 * r.count), nil
    end
    local part = floor((op.t - r.base) / r.length)
    for p = r.part + 1, part do set(r, p, 0) end
    r.part, r.last = part, op.t
    set(r, part, min(units(r, part) + op.cost, 4294967295))
    dropOld(r, function(charged) return charged <= part - r.count end)
    if id then keepCharge(r, id, part, op.cost) end
  end

  function rule.wait(op, r)
    local excess, at = rule.used(op, r) + op.cost - op.capacity, op.t
    each(op, r, function(p, n)
      excess, at = excess - n, ends(r, p)
      return excess <= 0
    end)
    return at - op.t
  end

  function rule.clear(_, r)
    if r.rest ~= '' then
      for p = r.part, max(0, r.part - r.count + 1), -1 do
        if units(r, p) > 0 then return ends(r, p) end
      end
    end
    return -NEVER
  end

  function rule.giveBack(_, r, p)
    local part, n = hold(r, p)
    drop(r, p)
    if r.rest ~= '' and part > r.part - r.count then set(r, part, max(units(r, part) - n, 0)) end
  end

  -- What counted in parts of another length counts as charged now.
  function rule.adopt(op, r)
    if r.length == op.length and r.count == op.count then return end
    local used, cost = rule.used(op, r), op.cost
    r.rest, r.holds, r.length, r.count, r.sum = '', '', op.length, op.count, nil
    if used > 0 then
      op.cost = used
      rule.charge(op, r)
      op.cost = cost
    end
  end
  return rule
end

-- A token bucket by what it misses (bucket.go): r.used + r.part/r.window tokens at
-- r.base. A hold's level is what it would miss if it had been full then.
local MISSING = 1099511627776

local function level(letter, interval)
  local rule = {letter = letter, fields = {'base', 'used', 'part', 'limit', 'window'}, level = true}

  local function refilled(op, r, whole, part)
    if whole == 0 and part == 0 then return 0, 0 end
    local d = op.t - r.base
    if interval then
      local n = floor(d / op.window)
      if n < divup(whole, op.limit) then return whole - n * op.limit, 0 end
      return 0, 0
    end
    local tokens, p = muldiv(d, op.limit, op.window)
    whole, part = whole - tokens, part - p
    if part < 0 then whole, part = whole - 1, part + op.window end
    if whole < 0 then return 0, 0 end
    return whole, part
  end

  local function born(op)
    if op.initial == 0 then return 0 end
    return op.capacity - min(max(op.initial, 0), op.capacity)
  end

  local function missing(op, r)
    if r.blank then return born(op), 0 end
    return refilled(op, r, r.used, r.part)
  end

  -- How long it takes until a level has fallen to a number of tokens.
  local function wait(whole, part, tokens, base, t, limit, window)
    if interval then
      local n = divup(whole - tokens, limit)
      return n > NEVER / window and math.huge or n * window - fmod(t - base, window)
    end
    local q, m = muldiv(whole - tokens, window, limit)
    q = q + divup(m + part, limit)
    return q < EXACT and q or math.huge
  end

  function rule.check(r)
    return r.limit > 0 and r.window > 0 and r.part < r.window
  end

  function rule.begin(op, r)
    if op.initial ~= 0 then
      r.used, r.part, r.base, r.last, r.limit, r.window = born(op), 0, op.t, op.t, op.limit, op.window
    end
  end

  function rule.admits(op, r, cost)
    local whole, part = missing(op, r)
    return whole < op.capacity - cost or whole == op.capacity - cost and part == 0
  end

  function rule.charge(op, r, id)
    local whole, part = missing(op, r)
    if r.holds ~= '' then
      local kept, size = {}, r.size
      for p = 1, #r.holds, size do
        local at, units, w, f = unpack('>I7I4I7I7', r.holds, p + 8)
        w, f = refilled(op, r, w, f)
        -- Where it is the bucket's own level, giving back would change nothing.
        if #kept > 0 or w ~= whole or f ~= part then
          kept[#kept + 1] = r.holds:sub(p, p + 7) .. pack('>I7I4I7I7', at, units, min(w + op.cost, MISSING), f)
        end
      end
      r.holds = table.concat(kept)
    end
    if not interval or whole == 0 and part == 0 then
      r.base = op.t
    else
      r.base = op.t - fmod(op.t - r.base, op.window)
    end
    if id then keepCharge(r, id, 0, op.cost, pack('>I7I7', 0, 0)) end
    r.used, r.part, r.last, r.limit, r.window = min(whole + op.cost, MISSING), part, op.t, op.limit, op.window
  end

  function rule.remaining(op, r)
    local whole, part = missing(op, r)
    return max(op.capacity - whole - (part > 0 and 1 or 0), 0)
  end

  function rule.wait(op, r)
    local whole, part = missing(op, r)
    return wait(whole, part, op.capacity - op.cost, r.blank and op.t or r.base, op.t, op.limit, op.window)
  end

  function rule.clear(op, r)
    local at = r.base
    if r.used > 0 or r.part > 0 then
      at = at + wait(r.used, r.part, 0, r.base, r.base, r.limit, r.window)
    elseif op.initial == 0 then
      return -NEVER
    end
    return op.initial ~= 0 and at + op.window or at
  end

  local function larger(a, b, c, d)
    if a > c or a == c and b > d then return a, b end
    return c, d
  end

  local function without(units, whole, part)
    if whole < units then return 0, 0 end
    return whole - units, part
  end

  function rule.giveBack(_, r, p)
    local _, units, whole, part = unpack('>I7I4I7I7', r.holds, p + 8)
    local newer = r.holds:sub(p + r.size)
    r.holds = r.holds:sub(1, p - 1)
    changeHolds(r, '>I7I4I7I7', function(at, n, w, f)
      w, f = without(units, w, f)
      return at, n, larger(w, f, whole, part)
    end)
    r.holds = r.holds .. newer
    local w, f = without(units, r.used, r.part)
    r.used, r.part = larger(w, f, whole, part)
  end

  -- Parts of a token are counted in windows.
  function rule.adopt(op, r)
    if r.window == op.window then return end
    local function scale(whole, part)
      local q, m = muldiv(part, op.window, r.window)
      if m > 0 then q = q + 1 end
      if q >= op.window then return whole + 1, 0 end
      return whole, q
    end
    r.used, r.part = scale(r.used, r.part)
    changeHolds(r, '>I7I4I7I7', function(at, units, whole, part)
      return at, units, scale(whole, part)
    end)
    r.window = op.window
  end
  return rule
end

build['bucket+'] = function() return level('b', false) end
build.interval = function() return level('i', true) end

-- A bucket to which each call brings a limit: the state is that of plain.lua, where
-- it says the same of a bucket of one limit.
build.bucket = function()
  local rule = level('B', false)
  local adopt = rule.adopt

  function rule.decode(op, raw)
    if #raw ~= 30 then foreign(op) end
    local r = {holds = '', rest = '', size = 33, locks = 0}
    local q, m
    r.last, q, m, r.window, r.limit = unpack('>I7I7I4I7I4', raw, 2)
    r.base = r.last
    if r.last >= EXACT or r.window < 1 or r.window > MAX_WINDOW or r.limit < 1 or r.limit > MAX_LIMIT
      or q > MAX_WINDOW or m >= r.limit or q + m == 0 then
      foreign(op)
    end
    local whole, part = muldiv(q, r.limit, r.window)
    part = part + m
    local rest = fmod(part, r.window)
    r.used, r.part = whole + (part - rest) / r.window, rest
    return r
  end

  function rule.adopt(op, r)
    -- In plain.lua, window and limit are in lowest terms.
    local g = op.window / r.window
    if g == floor(g) and g * r.limit <= MAX_LIMIT then r.limit = g * r.limit end
    adopt(op, r)
  end

  function rule.encode(r)
    local q, m = muldiv(r.used, r.window, r.limit)
    local p = m + r.part
    local rest = fmod(p, r.limit)
    return 'B' .. pack('>I7I7I4I7I4', r.last, min(q + (p - rest) / r.limit, MAX_WINDOW), rest, r.window, r.limit)
  end
  return rule
end

-- The pace of a bucket: a unit takes num/den microseconds, in lowest terms.
local function pace(window, limit)
  local g = gcd(window, limit)
  return window / g, limit / g
end

-- A leaky bucket (paced.go). Its holes are two numbers each (7 bytes), in r.rest.
build.leaky = function()
  local rule = counting {letter = 'q', fields = {'base', 'used', 'window', 'limit'}}

  local function time(r, n)
    local q, m = muldiv(n, r.num, r.den)
    return r.base + q + (m > 0 and 1 or 0)
  end

  local function idle(r, t)
    return r.used == 0 or t >= time(r, r.used)
  end

  local function serving(r, t)
    return (muldiv(max(t - r.base, 0), r.den, r.num))
  end

  local function holes(r)
    local all = {}
    for p = 1, #r.rest, 14 do
      local from, to = unpack('>I7I7', r.rest, p)
      all[#all + 1] = {from, to}
    end
    return all
  end

  local function write(r, all)
    for i, h in ipairs(all) do all[i] = pack('>I7I7', h[1], h[2]) end
    r.rest = table.concat(all)
  end

  function rule.check(r)
    if r.window < 1 or r.limit < 1 or fmod(#r.rest, 14) ~= 0 then return false end
    r.num, r.den = pace(r.window, r.limit)
    return true
  end

  function rule.prepare(op, r)
    r.window, r.limit = op.window, op.limit
    r.num, r.den = pace(op.window, op.limit)
  end

  function rule.used(op, r)
    if idle(r, op.t) then return 0 end
    local first = serving(r, op.t)
    local n = r.used - first
    for _, h in ipairs(holes(r)) do
      n = n - max(0, h[2] - max(h[1], first))
    end
    return n
  end

  function rule.delay(op, r)
    if op.cost == 0 or idle(r, op.t) then return 0 end
    return time(r, r.used) - op.t
  end

  function rule.charge(op, r, id)
    local delay = rule.delay(op, r)
    if idle(r, op.t) then
      r.base, r.used, r.rest, r.holds = op.t, 0, '', ''
    else
      local first = serving(r, op.t)
      dropOld(r, function(at, units) return at + units <= first end)
      local all = holes(r)
      while all[1] and all[1][2] <= first do table.remove(all, 1) end
      local turns = floor(first / r.den)
      local by = turns * r.den
      if turns > 0 then
        r.base, r.used = r.base + turns * r.num, r.used - by
        -- Numbers below by are of units that have left.
        changeHolds(r, '>I7I4', function(at, units)
          return max(at - by, 0), min(units, at + units - by)
        end)
        for _, h in ipairs(all) do h[1], h[2] = max(h[1] - by, 0), h[2] - by end
      end
      write(r, all)
    end
    if id and (op.ends or delay > 0) then keepCharge(r, id, r.used, op.cost) end
    r.used, r.last = r.used + op.cost, op.t
  end

  function rule.wait(op, r)
    local over = rule.used(op, r) + op.cost - op.capacity
    local n = serving(r, op.t)
    for _, h in ipairs(holes(r)) do
      local queued = max(0, h[1] - n)
      if queued >= over then break end
      over, n = over - queued, max(n, h[2])
    end
    return time(r, n + over) - op.t
  end

  function rule.clear(_, r)
    return r.used > 0 and time(r, r.used) or -NEVER
  end

  function rule.giveBack(_, r, p)
    local at, units = hold(r, p)
    drop(r, p)
    local all = holes(r)
    local i = 1
    while all[i] and all[i][1] < at do i = i + 1 end
    table.insert(all, i, {at, at + units})
    write(r, all)
  end

  function rule.leave(r, p, t)
    rule.giveBack(nil, r, p)
    if idle(r, t) then return end
    local first = serving(r, t) + 1
    local all = holes(r)
    while #all > 0 and all[#all][2] == r.used do
      local h = all[#all]
      r.used = max(first, h[1])
      if r.used > h[1] then
        h[2] = r.used
        break
      end
      all[#all] = nil
    end
    write(r, all)
  end

  -- A queue whose pace has changed begins anew with what is in it.
  function rule.adopt(op, r)
    if r.window == op.window and r.limit == op.limit then return end
    local inside = rule.used(op, r)
    rule.prepare(op, r)
    r.rest, r.holds = '', ''
    r.base, r.used, r.last = op.t, inside, op.t
  end
  return rule
end

-- A token bucket with a warmup (paced.go).
build.warm = function()
  local rule = {letter = 'w', fields = {'base', 'part', 'used', 'frac', 'window', 'limit'}}

  local function up(whole, part)
    return part > 0 and whole + 1 or whole
  end

  local function free(op, r)
    return op.t > r.base or op.t == r.base and r.part == 0
  end

  local function cold(op, r, den)
    if r.blank then return op.warmup, 0 end
    local whole, part = r.used + op.t - r.base, r.frac - r.part
    if part < 0 then whole, part = whole - 1, part + den end
    if whole >= op.warmup then return op.warmup, 0 end
    return whole, part
  end

  function rule.check(r)
    return r.window > 0 and r.limit > 0
  end

  function rule.admits(op, r, cost)
    return cost == 0 or free(op, r)
  end

  function rule.charge(op, r)
    local num, den = pace(op.window, op.limit)
    local from, fromPart = cold(op, r, den)
    local q, part = muldiv(op.cost, num, den)
    local to, toPart = from - q, fromPart - part
    if toPart < 0 then to, toPart = to - 1, toPart + den end
    if to < 0 then to, toPart = 0, 0 end
    local f, t = max(0, 2 * up(from, fromPart) - op.warmup), max(0, 2 * up(to, toPart) - op.warmup)
    local longer, rest = muldiv(f - t, f + t, 2 * op.warmup)
    r.base, r.part = op.t + q + up(longer, rest), part
    r.used, r.frac, r.last = to, toPart, op.t
    r.window, r.limit = op.window, op.limit
  end

  function rule.remaining(op, r)
    return free(op, r) and op.capacity or 0
  end

  function rule.wait(op, r)
    return up(r.base, r.part) - op.t
  end

  function rule.clear(op, r)
    return r.base + op.warmup - r.used + (r.part > r.frac and 1 or 0)
  end

  function rule.giveBack(_, r, p) drop(r, p) end

  function rule.adopt(op, r)
    if r.window == op.window and r.limit == op.limit then return end
    local num, den = pace(r.window, r.limit)
    if free(op, r) then
      r.used, r.frac = cold(op, r, den)
      r.base = op.t
    else
      -- So long at the old pace; the part, below a microsecond, is rounded up.
      local q, m = muldiv(up(r.base, r.part) - op.t, r.limit, r.window)
      local whole, rest = muldiv(q, op.window, op.limit)
      local extra, left = muldiv(m, op.window, r.window)
      r.base = op.t + whole + divup(rest + up(extra, left), op.limit)
    end
    r.part, r.frac, r.window, r.limit = 0, 0, op.window, op.limit
  end
  return rule
end

-- Places that are taken for a lease (running.go). r.used counts the units of all
-- holds, also of those that have ended.
build.concurrency = function()
  local rule = counting {letter = 'c', fields = {'used'}, times = true}

  function rule.used(op, r)
    local used = r.used
    for p = 1, #r.holds, r.size do
      local at, units = hold(r, p)
      if at > op.t then break end
      used = used - units
    end
    return used
  end

  function rule.charge(op, r, id)
    r.used = rule.used(op, r) + op.cost
    dropOld(r, function(at) return at <= op.t end)
    keep(r, id or '\0\0\0\0\0\0\0\0', op.t + op.window, op.cost)
    r.last = op.t
  end

  function rule.wait(op, r)
    local over = rule.used(op, r) + op.cost - op.capacity
    for p = 1, #r.holds, r.size do
      local at, units = hold(r, p)
      if at > op.t then
        over = over - units
        if over <= 0 then return at - op.t end
      end
    end
    return 0
  end

  function rule.clear(_, r)
    return r.holds ~= '' and (hold(r, #r.holds - r.size + 1)) or -NEVER
  end

  function rule.giveBack(_, r, p)
    local _, units = hold(r, p)
    r.used = r.used - units
    drop(r, p)
  end

  -- A lease that has ended is renewed only if its place is free.
  function rule.renew(op, r, p)
    local at, units = hold(r, p)
    if at > op.t or rule.used(op, r) + units <= op.capacity then
      local id = r.holds:sub(p, p + 7)
      drop(r, p)
      keep(r, id, max(at, op.t + op.window), units)
    end
  end
  return rule
end

-- Execution time (running.go): r.used is what calls took that began in the window
-- that begins at r.base, and have returned. A hold is one that has not.
build.quota = function()
  local rule = {letter = 't', fields = {'base', 'used'}, times = true}

  function rule.used(op, r)
    return op.t - r.base < op.window and r.used or 0
  end

  function rule.admits(op, r, cost)
    return cost == 0 or rule.used(op, r) < op.limit
  end

  function rule.charge(op, r, id)
    if op.t - r.base >= op.window then
      r.base, r.used, r.last, r.holds = op.t, 0, op.t, ''
    end
    if id then keepCharge(r, id, r.base, 0) end
  end

  function rule.remaining(op, r)
    return max(op.limit - rule.used(op, r), 0)
  end

  function rule.wait(op, r)
    return r.base + op.window - op.t
  end

  function rule.clear(op, r)
    return r.base + op.window
  end

  function rule.giveBack(_, r, p) drop(r, p) end

  function rule.finish(r, p, took)
    if hold(r, p) == r.base then r.used = min(r.used + took, NEVER) end
    drop(r, p)
  end
  return rule
end

-- A state of records: the rule's letter, how many locks are remembered (1 byte)
-- and, if there are any, when the latest began and ends (7 and 7); the latest time
-- (7), the rule's fields (7 each), the number of bytes of holds (4), the holds, and
-- what else the rule keeps.
local function decode(op, rule, raw)
  if raw:sub(1, 1) ~= rule.letter then foreign(op) end
  if rule.decode then return rule.decode(op, raw) end
  local locks = raw:byte(2) or 0
  local p = 3
  local length = 2 + (locks > 0 and 14 or 0) + 7 + 7 * #rule.fields + 4
  if #raw < length or locks > 32 then foreign(op) end
  local r = {locks = locks}
  local function number(name)
    local n = unpack('>I7', raw, p)
    if n >= EXACT then foreign(op) end
    r[name], p = n, p + 7
  end
  if locks > 0 then
    number('locked')
    number('unlock')
  end
  number('last')
  for _, field in ipairs(rule.fields) do number(field) end
  local bytes = unpack('>I4', raw, p)
  r.size = rule.level and 33 or 19
  if r.last == 0 or #raw < length + bytes or fmod(bytes, r.size) ~= 0 then foreign(op) end
  r.holds, r.rest = raw:sub(length + 1, length + bytes), raw:sub(length + bytes + 1)
  if r.base == 0 then r.base = -NEVER end
  if rule.check and not rule.check(r) or rule.letter ~= 'l' and rule.letter ~= 's' and rule.letter ~= 'q' and r.rest ~= '' then
    foreign(op)
  end
  return r
end

local function encode(rule, r)
  if rule.encode then return rule.encode(r) end
  local parts = {rule.letter .. string.char(r.locks)}
  if r.locks > 0 then parts[2] = pack('>I7I7', r.locked, r.unlock) end
  parts[#parts + 1] = pack('>I7', r.last)
  for _, field in ipairs(rule.fields) do
    parts[#parts + 1] = pack('>I7', max(r[field], 0))
  end
  parts[#parts + 1] = pack('>I4', #r.holds)
  parts[#parts + 1] = r.holds
  parts[#parts + 1] = r.rest
  return table.concat(parts)
end

local function clears(op, rule, r)
  local at = rule.clear(op, r)
  if r.locks and r.locks > 0 then
    at = max(at, r.unlock + (#op.locks > 1 and op.window or 0))
  end
  return at
end

local function shift(op, rule, r, by)
  r.last = r.last - by
  if rule.letter ~= 'a' and r.base and r.base > -NEVER then r.base = r.base - by end
  if r.locks and r.locks > 0 then r.locked, r.unlock = r.locked - by, r.unlock - by end
  if rule.times then
    changeHolds(r, '>I7I4', function(at, units) return at - by, units end)
  end
  if rule.shift then rule.shift(op, r, by) end
end

local rules = {}

local function ruleOf(op)
  local rule = rules[op.algorithm]
  if not rule then
    rule = build[op.algorithm]()
    rules[op.algorithm] = rule
  end
  return rule
end

-- Has op find in raw what it decides on, as algorithms of plain.lua do.
local function load(op, raw)
  local rule = ruleOf(op)
  local r = raw and decode(op, rule, raw)
  op.t = now
  if r and now >= clears(op, rule, r) then r = nil end
  if r then
    if r.last > now then
      if r.last - now > op.window then
        shift(op, rule, r, r.last - now)
        op.moved = true
      else
        op.t = r.last
      end
    end
    if rule.adopt then rule.adopt(op, r) end
  else
    r = {blank = true, last = 0, base = -NEVER, used = 0, part = 0, frac = 0, window = op.window, limit = op.limit,
      length = op.length, count = op.count, locks = 0, holds = '', rest = '', size = rule.level and 33 or 19}
    if rule.prepare then rule.prepare(op, r) end
  end

  local function locked()
    return r.locks and r.locks > 0 and op.t < r.unlock
  end

  local function open()
    if r.blank then
      if rule.begin then rule.begin(op, r) end
      r.blank = nil
    end
  end

  local function wait()
    local w = locked() and r.unlock - op.t or 0
    if not rule.admits(op, r, op.cost) then w = max(w, rule.wait(op, r)) end
    return min(w, EXACT)
  end

  op.allowed = op.ending or not locked() and rule.admits(op, r, op.cost)
  if not op.allowed then
    op.retry = wait()
  elseif rule.delay then
    op.delay = rule.delay(op, r)
  end

  function op.charge()
    local was = r.blank
    if not (was and rule.letter == 'w') then open() end -- which is cold while it is blank
    rule.charge(op, r, op.id)
    r.blank = nil
  end

  -- Does to the key what a refusal does, and returns whether that is anything.
  function op.refuse()
    if op.allowed then return false end
    local lock = #op.locks > 0 and op.locking and not locked()
    if not op.changes or not lock and not (r.blank and op.initial and op.initial ~= 0) then return false end
    open()
    if lock then
      if r.locks > 0 and op.t >= r.unlock + op.window then r.locks = 0 end
      r.unlock = op.t + op.locks[min(r.locks, #op.locks - 1) + 1]
      r.locks = min(r.locks + 1, #op.locks)
      r.locked, r.last = op.t, max(r.last, op.t)
      op.retry = wait()
    end
    return true
  end

  function op.remaining()
    return locked() and 0 or rule.remaining(op, r)
  end

  function op.reset()
    return r.blank and 0 or min(max(clears(op, rule, r) - op.t, 0), EXACT)
  end

  function op.encode()
    return encode(rule, r)
  end
end

local function bit(flags, value)
  return fmod(floor(flags / value), 2) == 1
end

-- Reads the operands of an algorithm, from the a-th argument on, and returns the
-- number of the first that follows.
local function operands(op, a)
  if op.algorithm == 'bucket' then
    op.initial, op.locks = 0, {}
    return a
  end
  op.id = ARGV[a]
  if op.id == '' then
    op.id = nil
  elseif not op.id or #op.id ~= 8 then
    complain('ARGV[' .. a .. '] is not an id')
  end
  op.locks = {}
  local n = integer(a + 1, 0, 32)
  a = a + 2
  for i = 1, n do
    op.locks[i], a = integer(a, 1, MAX_WINDOW), a + 1
  end
  if op.algorithm == 'sliding' then
    op.length, op.count = integer(a, 1, MAX_WINDOW), integer(a + 1, 3, 61)
    return a + 2
  elseif op.algorithm == 'bucket+' or op.algorithm == 'interval' then
    op.initial = integer(a, -1, MAX_LIMIT)
    return a + 1
  elseif op.algorithm == 'warm' then
    op.warmup = integer(a, 1, MAX_WINDOW)
    return a + 1
  elseif op.algorithm == 'aligned' then
    op.bounds = {}
    for i = 1, 5 do
      op.bounds[i], a = integer(a, i == 1 and 0 or op.bounds[i - 1] + 1, EXACT), a + 1
    end
  end
  return a
end

local function flagged(op, flags)
  local peek = bit(flags, 2)
  op.charges = not peek and op.cost > 0
  op.changes = op.charges or bit(flags, 16) and op.cost > 0
  op.locking, op.ends = not bit(flags, 8), bit(flags, 32)
end

-- Reads what there is to know of op, from the a-th argument on, and returns the
-- number of the first argument that follows.
local function read(op, a, flags)
  local name = op.algorithm
  local greatest = MAX_LIMIT
  if name == 'log' or name == 'log+' then
    greatest = MAX_LOG_LIMIT
  elseif name == 'quota' then
    greatest = MAX_WINDOW
  end
  op.limit = integer(a + 1, 1, greatest)
  if name == 'quota' then
    op.capacity = integer(a + 3, 1, 1)
  elseif name == 'bucket' or name == 'bucket+' or name == 'interval' or name == 'leaky' then
    op.capacity = integer(a + 3, 1, MAX_LIMIT)
  else
    op.capacity = integer(a + 3, op.limit, op.limit)
  end
  if not flags then
    op.cost = integer(a + 4, 0, EXACT)
  else
    op.cost = integer(a + 4, 0, op.capacity)
    flagged(op, flags)
  end
  if algorithms[name] and name ~= 'bucket' and flags then return a + 6 end
  if op.ending == 'undo' and algorithms[name] then
    op.from, op.reset = integer(a + 6, 0, EXACT), integer(a + 7, 0, EXACT)
    return a + 8
  end
  if not build[name] then
    complain('ARGV[' .. a .. '] is not an algorithm')
  end
  op.run = load
  return operands(op, a + 6)
end

-- Endings are what becomes of a call after it was admitted: of the hold at p of the
-- state r, where it is known.
local endings = {}

function endings.back(op, rule, r, p)
  rule.giveBack(op, r, p)
  if r.locks > 0 and rule.clear(op, r) == -NEVER then
    r.last = r.locked -- nothing else is recorded
  end
end

function endings.keep(_, _, r, p)
  drop(r, p)
end

function endings.finish(op, rule, r, p)
  if rule.finish then rule.finish(r, p, op.cost) end
end

function endings.leave(_, rule, r, p)
  if rule.leave then rule.leave(r, p, now) end
end

function endings.renew(op, rule, r, p)
  if rule.renew then rule.renew(op, r, p) end
end

local function write(op, state, ttl)
  if ttl > 0 then
    redis.call('SET', KEYS[op.number], state, 'PX', string.format('%.0f', ceil(min(ttl, EXACT) / 1000)))
  else
    redis.call('DEL', KEYS[op.number])
  end
end

-- What becomes of a call that was charged by plain.lua at the time op.from, and is
-- refused after all. undo[algorithm] returns the state without that charge, and
-- nothing if it is not known to be in there.
local undo = {}

function undo.fixed(op, raw)
  local start, used = unpack('>I7I4', raw, 2)
  if #raw ~= 12 or start > op.from or op.from - start >= op.window or used < op.cost then return end
  return used > op.cost and 'F' .. pack('>I7I4', start, used - op.cost) or ''
end

function undo.log(op, raw)
  local width, newest, before = unpack('>BI7I2', raw, 2)
  if width < 3 or width > 7 then return end
  local format, size, modulus = '>I' .. width .. 'I2', width + 2, min(256 ^ width, EXACT / 2)
  local last = unpack(format, raw, #raw - size + 1)
  local all, found, latest, sum = {}, false, nil, before
  for p = 12, #raw, size do
    local time, upto = unpack(format, raw, p)
    local age = fmod(last - time + modulus, modulus)
    local units = fmod(upto - sum + 65536, 65536)
    sum = upto
    if newest - age == op.from and units >= op.cost then
      found, units = true, units - op.cost
    end
    if units > 0 then
      latest = newest - age
      all[#all + 1] = pack(format, time, found and fmod(upto - op.cost + 65536, 65536) or upto)
    end
  end
  if not found then return end
  return latest and 'L' .. pack('>BI7I2', width, latest, before) .. table.concat(all) or ''
end

-- If the bucket may have been full since, the charge has refilled.
function undo.bucket(op, raw)
  local time, q, r, w, l = unpack('>I7I7I4I7I4', raw, 2)
  if #raw ~= 30 or w < 1 or l < 1 or time < op.from or max(now, time) >= op.from + op.reset then return end
  local whole, part = muldiv(op.cost, w, l)
  q, r = q - whole, r - part
  if r < 0 then q, r = q - 1, r + l end
  if q < 0 or q + r == 0 then return '' end
  return 'B' .. pack('>I7I7I4I7I4', time, q, r, w, l)
end

local letters = {fixed = 'F', log = 'L', bucket = 'B'}

function endings.undo(op, raw)
  if #raw < 12 or raw:sub(1, 1) ~= letters[op.algorithm] then return end
  local state = undo[op.algorithm](op, raw)
  if state == '' then
    redis.call('DEL', KEYS[op.number])
  elseif state then
    redis.call('SET', KEYS[op.number], state, 'KEEPTTL') -- which is long enough for less
  end
end

local function finish(op)
  local raw = redis.pcall('GET', KEYS[op.number])
  if type(raw) == 'table' then
    complain('KEYS[' .. op.number .. ']: ' .. raw.err)
  end
  if op.ending == 'charge' then
    op.cost = min(op.cost, 2 * MAX_LIMIT) -- which is above every capacity
    op.id = nil -- it is not given back
    load(op, raw)
    if op.cost > 0 then
      op.charge()
      write(op, op.encode(), op.t - now + op.reset())
    end
    return
  end
  if raw and op.ending == 'undo' then endings.undo(op, raw) end
  if not raw or not op.id then return end
  local rule = ruleOf(op)
  local r = decode(op, rule, raw)
  local p = find(r, op.id)
  if p then
    op.t = r.last > now and r.last - now <= op.window and r.last or now
    endings[op.ending](op, rule, r, p)
    write(op, encode(rule, r), clears(op, rule, r) - now)
  end
end

-- Does what ARGV says after 'end': for each key what it says of a limit, but with
-- units in place of the cost, and an ending in place of the flags. Keys may be there
-- more than once. What cannot be done is an error after all others are done.
local function finishAll()
  local ops, a, failure = {}, 2
  for i = 1, #KEYS do
    local op = {number = i, algorithm = ARGV[a], ending = ARGV[a + 5]}
    if op.ending ~= 'charge' and not endings[op.ending or ''] or op.ending == 'undo' and not algorithms[op.algorithm] then
      complain('ARGV[' .. a + 5 .. '] is not an ending')
    end
    op.window = integer(a + 2, 1, MAX_WINDOW)
    a = read(op, a)
    ops[i] = op
  end
  if a ~= #ARGV + 1 then
    complain('wrong number of arguments')
  end
  for _, op in ipairs(ops) do
    local ok, err = pcall(finish, op)
    if not ok then failure = failure or err end
  end
  if failure then error(failure, 0) end
  return #ops
end

return read, finishAll
end

if #KEYS == 0 then
  complain('wrong number of arguments')
end

local ops, a, more, reserves = {}, 1
if ARGV[1] == 'end' then
  local _, finish = records()
  return finish()
elseif ARGV[1] == 'reserve' then
  reserves, a = true, 2
end
for i = 1, #KEYS do
  local op = {number = i, algorithm = ARGV[a]}
  local name, flags = op.algorithm, integer(a + 5, 0, 63)
  op.window = integer(a + 2, 1, MAX_WINDOW)
  op.shadow = fmod(flags, 2) == 1
  if flags < 4 and algorithms[name] then
    op.limit = integer(a + 1, 1, name == 'log' and MAX_LOG_LIMIT or MAX_LIMIT)
    if name == 'bucket' then
      op.capacity = integer(a + 3, 1, MAX_LIMIT)
      if op.capacity * op.limit >= EXACT or op.capacity * op.window / op.limit >= MAX_WINDOW + 1 then
        complain('ARGV[' .. a + 3 .. '] is too large for the limit and window')
      end
    else
      op.capacity = integer(a + 3, op.limit, op.limit)
    end
    op.cost = integer(a + 4, 0, op.capacity)
    op.charges = flags < 2 and op.cost > 0
    a = a + 6
  else
    more = more or records()
    a = more(op, a, flags)
  end
  ops[i] = op
end
if a ~= #ARGV + 1 then
  complain('wrong number of arguments')
end

local admitted = true
for i = 1, #ops do
  local op = ops[i]
  local raw = redis.pcall('GET', KEYS[i])
  if type(raw) == 'table' then
    complain('KEYS[' .. i .. ']: ' .. raw.err)
  end
  local run = op.run or algorithms[op.algorithm]
  run(op, raw)
  admitted = admitted and (op.allowed or op.shadow)
end

local reply = {}
for i = 1, #ops do
  local op = ops[i]
  local write = admitted and op.allowed and op.charges
  if write then
    op.charge()
  else
    write = op.refuse and op.refuse() or op.moved and (op.changes or op.charges)
  end
  local reset = op.reset()
  if write and reset > 0 then
    local ttl = ceil((op.t - now + reset) / 1000)
    redis.call('SET', KEYS[i], op.encode(), 'PX', string.format('%.0f', ttl))
  end
  reply[4 * i - 3] = op.allowed and 1 or 0
  reply[4 * i - 2] = op.remaining()
  reply[4 * i - 1] = op.allowed and (op.delay or 0) or op.retry
  reply[4 * i] = reset
end
if reserves then
  for i = 1, #ops do
    reply[4 * #ops + i] = ops[i].t
  end
end
return reply
