-- This is the second part of one script: the header, and the algorithms that most
-- policies use, with whatever they are used with. holds.lua begins what has the others,
-- and decide.lua is what is run.
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
--          turn; after how many its state is as new. Then one more for each
--          limit with locks, sliding window and bucket with a warmup: for how many
--          the key stays locked; 0 where the state is of another window or pace,
--          and what was said of times holds for now only; else 2^53. And for each call
--          that waits in line for a place, how many are before it. And a 0 at the end
--          if a key has calls ahead, which others may cancel.
--
-- If ARGV[1] is 'reserve', all that was said of ARGV follows, and the reply ends with
-- the time of the decision for each key in place of those and, if one has calls ahead,
-- then after how many microseconds its state would be as new without them. If it is 'end', ARGV tells what becomes of calls
-- that were admitted; see ends.lua. If it is 'book', the call is reserved, and if it is
-- 'cancel', it will not come; see ahead.lua.
--
-- Times are microseconds. All numbers are integers below 2^53, which a Lua number
-- holds exactly, and so are their products, under the bounds checked below.
-- math.fmod is exact; the operator % is not where the quotient is large.

local fmod, floor, ceil, max, min = math.fmod, math.floor, math.ceil, math.max, math.min
local pack, unpack = struct.pack, struct.unpack

local MAX_LIMIT = 1073741824
local MAX_LOG_LIMIT = 4096
local MAX_WINDOW = 316224000000000
local MAX_STANDSTILL = 10000000 -- ratelimit.MaxStandstill
local EXACT = 9007199254740992

local function complain(text)
  error('RATELIMIT ' .. text, 0)
end

local function foreign(op)
  complain('KEYS[' .. op.number .. '] does not hold the state of a ' .. op.algorithm .. ' limit')
end

-- Whether a state whose last time is as given was left behind by a clock that was set
-- back for good. For one that is less ahead, time stands still.
local function isBehind(op, last)
  return last - now > min(op.window, MAX_STANDSTILL)
end

-- Makes op.t the time to decide at, which never precedes the last time that the
-- state records, and returns that last time. Where the clock was set back for good,
-- the whole state moves with it.
local function settle(op, last)
  op.t = now
  if last and last > now then
    if isBehind(op, last) then
      op.moved = true
      return now
    end
    op.t = last
  end
  return last
end

-- A blocked key. State: X, until when (7 bytes), and the state of the limit, or
-- nothing. Returns the latter, and makes op.till the time if it has not come.
local function unblock(op, raw)
  if #raw < 8 then foreign(op) end
  local till = unpack('>I7', raw, 2)
  if till > now then op.till = till end
  return #raw > 8 and raw:sub(9)
end

local BLOCKED, BOOKED = 88, 82 -- X, and R: see ahead.lua
local MAX_AHEAD = 1000

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

