-- Decides the limits of one call as one: each enforced limit admits it, and each
-- limit that admits it is charged, or none is.
--
-- This is the first part of one script: what most calls need, in as little time as can
-- be. Every call of a script creates all functions that it has, so there is none here.
-- plain.lua and the others, which follow, decide everything, and also the calls that are
-- begun here and that turn out to be rare; nothing is written before that is known.
--
-- KEYS[i]  the state of the i-th limit; all keys are in one hash slot.
-- ARGV[i]  what plain.lua describes or, for limits of buckets, fixed windows and logs
--          that are enforced, all of them together, one string for each key. It begins
--          with B, F or L, and ends with limit (4 bytes), window (7), capacity (4) and
--          cost (4). Between them a bucket has w (7) and l (4), the time in which a unit
--          refills in lowest terms, and the debts q (7) and r (4) of an empty one and of
--          the cost; a log has the width of its times (1). For these see plain.lua.
--          Or first M and a byte for each key, and then such strings: the keys are calls
--          of one limit each, which are decided one after the other, and the byte tells
--          by which of the strings, from 1 on.
-- Reply    of the latter, one string for each key, the string itself if there is one
--          call of one limit. Nothing for what is rare among many calls, and not done.
--          Where the call is charged: the new state of a bucket, or an integer, its q,
--          where r is 0; of a log an integer, the units used; of a fixed window W, the
--          units used (4) and the time until the state is as new (7). Where this limit
--          refuses: b and the debt with the cost, q (7) and r (4); or w, the units used
--          (4), that time (7) and the one until it would admit the call (7). Where only
--          another one refuses: a and the debt; or v, the units used and that time.

local KEYS, ARGV = KEYS, ARGV
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]

local tag = ARGV[1] and ARGV[1]:byte()
if tag == 66 or tag == 70 or tag == 76 or tag == 77 then
  local call, pcall, format = redis.call, redis.pcall, string.format
  local pack, unpack = struct.pack, struct.unpack
  local many, several = tag == 77, #KEYS > 1
  local all = several and not many
  local which = many and {ARGV[1]:byte(2, -1)}
  -- Times to live are written out, as Redis might write large numbers with an exponent.
  -- %d is faster, but may be of 32 bits.
  local admitted, rare = true, #KEYS ~= (many and #which or #ARGV)
  -- The replies where the call is charged and where it is not, and what is written then;
  -- of a limit that admits the call, free is one of two numbers in the latter reply.
  local charged, free, rest, states, lives
  if many then
    charged = KEYS -- each of which is needed once, and another table would have to grow
  elseif several then -- there is room for four in them from the beginning
    charged, free, rest, states, lives = {nil, nil, nil, nil}, {nil, nil, nil, nil}, {nil, nil, nil, nil}, {nil, nil, nil, nil}, {nil, nil, nil, nil}
  end
  -- What known, an argument, says, and its tag if that makes sense.
  local known, kind, w, l, fullq, fullr, costq, costr, limit, window, cost, width, _
  for i = 1, rare and 0 or #KEYS do repeat
    local arg = ARGV[many and which[i] + 1 or i]
    if arg ~= known then
      known, kind, tag = arg, nil, arg and arg:byte()
      if tag == 66 and #arg == 53 then
        _, w, l, fullq, fullr, costq, costr = unpack('>BI7I4I7I4I7I4', arg)
        if l >= 1 and fullr < l and costr < l and fullq <= 316224000000000 and costq + costr > 0 and costq <= fullq then kind = tag end
      elseif tag == 70 and #arg == 20 or tag == 76 and #arg == 21 then
        limit, window, _, cost = unpack('>I4I7I4I4', arg, #arg - 18)
        width = tag == 76 and arg:byte(2) or 3
        if limit >= 1 and window >= 1 and window <= 316224000000000 and cost >= 1 and cost <= limit
          and width >= 3 and width <= 7 then
          kind = tag
        end
      end
    end
    if not kind then rare = true break end
    local raw = pcall('GET', KEYS[i])
    local state, life, reply, refusal
    if kind == 66 then
      local q, r, oldq, oldr = costq, costr, 0, 0
      if raw then
        if #raw ~= 30 then rare = true break end
        local tag0, last, q0, r0, w0, l0 = unpack('>BI7I7I4I7I4', raw)
        if tag0 ~= 66 or last > now or w0 ~= w or l0 ~= l or r0 >= l or q0 + r0 == 0
          or q0 > fullq or q0 == fullq and r0 > fullr then
          rare = true
          break
        end
        q0 = q0 - (now - last)
        if q0 >= 0 then
          oldq, oldr = q0, r0
          q, r = q + q0, r + r0
          if r >= l then
            q, r = q + 1, r - l
          end
        end
      end
      if q > fullq or q == fullq and r > fullr then
        refusal = pack('>BI7I4', 98, q, r)
      else
        state, life = pack('>BI7I7I4I7I4', 66, now, q, r, w, l), r > 0 and q + 1 or q
        reply = r > 0 and state or q
        if all then free[i], rest[i] = oldq, oldr end
      end
    elseif kind == 70 then
      local start, used = now, 0
      if raw then
        if #raw ~= 12 then rare = true break end
        local tag0
        tag0, start, used = unpack('>BI7I4', raw)
        if tag0 ~= 70 or start > now or used < 1 or used > 1073741824 then rare = true break end
        if now - start >= window then
          start, used = now, 0
        end
      end
      local left = start + window - now
      if used + cost > limit then
        refusal = pack('>BI4I7I7', 119, used, left, left)
      else
        state, life = pack('>BI7I4', 70, start, used + cost), left
        reply = pack('>BI4I7', 87, used + cost, left)
        if all then free[i], rest[i] = used, used > 0 and left or 0 end
      end
    else
      local size, entry = width + 2, '>I' .. width .. 'I2'
      local used, last, sum, before, body, gap = 0, 0, 0, 0, '', 0
      if raw then
        if #raw < 11 then rare = true break end
        local tag0, width0, newest
        tag0, width0, newest, before = unpack('>BBI7I2', raw)
        local count = (#raw - 11) / size
        if tag0 ~= 76 or width0 ~= width or newest > now or count < 1 or count > 4096 or count % 1 > 0 then
          rare = true
          break
        end
        local modulus = 256 ^ width
        if modulus > 4503599627370496 then modulus = 4503599627370496 end
        last, sum = unpack(entry, raw, 12 + (count - 1) * size)
        used = sum >= before and sum - before or sum - before + 65536
        if last >= modulus or used < count or used > 4096 then rare = true break end
        gap = now - newest
        -- The first entry that counts: the least one whose age is below the window.
        local first, high = 1, count
        while first <= high do
          local middle = (first + high - (first + high) % 2) / 2
          local age = last - unpack(entry, raw, 12 + (middle - 1) * size)
          if age < 0 then age = age + modulus end
          if gap + age < window then high = middle - 1 else first = middle + 1 end
        end
        if first > 1 then
          local _
          _, before = unpack(entry, raw, 12 + (first - 2) * size)
          used = sum >= before and sum - before or sum - before + 65536
        end
        if used + cost > limit then
          -- The last entry that has to go: the least one with enough units up to it.
          local excess, low = used + cost - limit, first
          high = count
          while low <= high do
            local middle = (low + high - (low + high) % 2) / 2
            local _, upto = unpack(entry, raw, 12 + (middle - 1) * size)
            local units = upto >= before and upto - before or upto - before + 65536
            if units >= excess then high = middle - 1 else low = middle + 1 end
          end
          local age = last - unpack(entry, raw, 12 + (low - 1) * size)
          if age < 0 then age = age + modulus end
          refusal = pack('>BI4I7I7', 119, used, window - gap, window - gap - age)
        elseif used > 0 then
          -- Entries of one instant are one.
          body = raw:sub(12 + (first - 1) * size, gap == 0 and -1 - size or -1)
          last = math.fmod(last + gap, modulus)
        else
          last, sum, before = 0, 0, 0
        end
      end
      if not refusal then
        state = pack('>BBI7I2', 76, width, now, before) .. body .. pack(entry, last, math.fmod(sum + cost, 65536))
        life, reply = window, used + cost
        if all then free[i], rest[i] = used, used > 0 and window - gap or 0 end
      end
    end
    if all then
      admitted = admitted and not refusal
      free[i], charged[i], states[i], lives[i] = refusal or free[i], reply, state, life
    else
      if state then call('SET', KEYS[i], state, 'PX', format(life < 2147483647000 and '%d' or '%.0f', math.ceil(life / 1000))) end
      if not many then return reply or refusal end
      charged[i] = reply or refusal
    end
  until true
    if rare then
      if not many then break end
      rare, charged[i] = false, false
    end
  end
  if not rare then
    if not all then return charged end
    for i = 1, admitted and 0 or #KEYS do
      if rest[i] then
        free[i] = ARGV[i]:byte() == 66 and pack('>BI7I4', 97, free[i], rest[i]) or pack('>BI4I7', 118, free[i], rest[i])
      end
    end
    if not admitted then return free end
    for i = 1, #KEYS do
      local life = lives[i]
      call('SET', KEYS[i], states[i], 'PX', format(life < 2147483647000 and '%d' or '%.0f', math.ceil(life / 1000)))
    end
    return charged
  end
  local full = {}
  for i = 1, #ARGV do
    local arg = ARGV[i]
    local name = arg:byte() == 66 and 'bucket' or arg:byte() == 70 and 'fixed' or arg:byte() == 76 and 'log'
    if not name or #arg ~= (name == 'bucket' and 53 or name == 'fixed' and 20 or 21) then
      error("RATELIMIT ARGV[" .. i .. "] is not a limit of its kind", 0)
    end
    local limit, window, capacity, cost = unpack('>I4I7I4I4', arg, #arg - 18)
    local n = #full
    full[n + 1], full[n + 2], full[n + 3], full[n + 4], full[n + 5], full[n + 6] = name, limit, window, capacity, cost, 0
  end
  ARGV = full
end
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
--          and what was said of times holds for now only; else 2^53. And a 0 at the end
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
local EXACT = 9007199254740992

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

-- The same for keys of plain.lua that have calls ahead: its states, by the rules of
-- records.
build.fixed = function()
  local rule = build['fixed+']()
  rule.letter = 'F'

  function rule.decode(op, raw)
    if #raw ~= 12 then foreign(op) end
    local start, used = unpack('>I7I4', raw, 2)
    if start >= EXACT or used < 1 or used > MAX_LIMIT then foreign(op) end
    return {last = start, base = start, used = used, holds = '', rest = '', size = 19, locks = 0}
  end

  function rule.encode(r)
    return 'F' .. pack('>I7I4', r.base, min(r.used, MAX_LIMIT)) -- which no limit exceeds
  end
  return rule
end

build.log = function()
  local rule = build['log+']()
  rule.letter = 'L'

  function rule.decode(op, raw)
    if #raw < 11 then foreign(op) end
    local width, newest, sum = unpack('>BI7I2', raw, 2)
    if width < 3 or width > 7 or newest >= EXACT then foreign(op) end
    local format, size, modulus = '>I' .. width .. 'I2', width + 2, min(256 ^ width, EXACT / 2)
    local count = (#raw - 11) / size
    if count < 1 or count > MAX_LOG_LIMIT or count ~= floor(count) then foreign(op) end
    local last = unpack(format, raw, #raw - size + 1)
    if last >= modulus then foreign(op) end
    local all, total = {}, 0
    for p = 12, #raw, size do
      local time, upto = unpack(format, raw, p)
      local age = last - time
      if age < 0 then age = age + modulus end
      total = total + (upto >= sum and upto - sum or upto - sum + 65536)
      sum = upto
      all[#all + 1] = pack('>I7I7', newest - age, total)
    end
    if total < count or total > MAX_LOG_LIMIT then foreign(op) end
    return {last = newest, used = 0, holds = '', rest = table.concat(all), size = 19, locks = 0, window = op.window}
  end

  -- What is older than the window goes, and units that are more than any limit.
  function rule.encode(r)
    local newest, top = unpack('>I7I7', r.rest, #r.rest - 13)
    local before, oldest, all, width = r.used, nil, {}, 3
    while 256 ^ width <= r.window do width = width + 1 end
    for p = 1, #r.rest, 14 do
      local at, sum = unpack('>I7I7', r.rest, p)
      if newest - at >= r.window or top - sum >= MAX_LOG_LIMIT then
        before = sum
      else
        if not oldest then oldest, before = at, max(before, top - MAX_LOG_LIMIT) end
        all[#all + 1] = pack('>I' .. width .. 'I2', at - oldest, sum - before)
      end
    end
    return 'L' .. pack('>BI7I2', width, newest, 0) .. table.concat(all)
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
  local rule = counting {letter = 's', fields = {'base', 'part', 'length', 'count'}, restates = true}

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
    if not r.sum or r.summed ~= op.t then
      local used = 0
      each(op, r, function(_, n) used = used + n end)
      r.sum, r.summed = used, op.t
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
    op.restated = true
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
    local rest, window, limit = fmod(p, r.limit), r.window, r.limit
    q = min(q + (p - rest) / limit, MAX_WINDOW)
    if r.lowest then
      local g = gcd(window, limit)
      if fmod(rest, g) == 0 then rest, window, limit = rest / g, window / g, limit / g end
    end
    return 'B' .. pack('>I7I7I4I7I4', r.base, q, rest, window, limit)
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

  -- A call whose turn has come has left.
  function rule.cancel(op, r, p)
    if op.t < time(r, (hold(r, p))) then rule.leave(r, p, op.t) end
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

  -- For how long the unit at the head would have been served at the pace of op: for as
  -- much of its time as it was. If it was given back, the next one begins.
  local function served(op, r)
    local first = serving(r, op.t)
    for _, h in ipairs(holes(r)) do
      if h[1] <= first and first < h[2] then return 0 end
    end
    local _, done = muldiv(max(op.t - r.base, 0), r.den, r.num)
    local num, den = pace(op.window, op.limit)
    return floor((muldiv(done, num, r.num)) / den)
  end

  -- A queue whose pace has changed begins anew with what is in it.
  function rule.adopt(op, r)
    if r.window == op.window and r.limit == op.limit then return end
    local inside = rule.used(op, r)
    local base = inside > 0 and op.t - served(op, r) or op.t
    rule.prepare(op, r)
    r.rest, r.holds = '', ''
    r.base, r.used, r.last = base, inside, op.t
    lapse(op, rule, r)
  end
  return rule
end

-- A token bucket with a warmup (paced.go).
build.warm = function()
  local rule = {letter = 'w', fields = {'base', 'part', 'used', 'frac', 'window', 'limit'}, restates = true}

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
    op.restated = true
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

-- Calls that were reserved (ahead.go). What they take counts from when they were
-- reserved, and is charged when their time has come.
--
-- ARGV     'book', 8 bytes that name the call, for how many microseconds it can wait,
--          for each key how many can be ahead of it, and then what plain.lua describes.
--          The reply has four numbers for each key: of a limit that admits the call,
--          the third is after how long it comes, and of one that does not, for how long
--          it keeps the call from being reserved.
--          'cancel', the 8 bytes, and the same, for a call that will not come.
--
-- A key with calls ahead. State: R, the latest time (7 bytes), the number of calls (2),
-- then of each, by their times, its id (8), time (7), cost (4), limit (4) and capacity
-- (4); and the state of the limit, or nothing. When the last of them has come, the next
-- charge leaves the latter only. A block is before all of it.
--
-- In a state r, they are the tables in r.ahead from r.first on, and r.booked the sum of
-- their costs. They do not change, as copies of r share them.

-- Returns the state of the limit, the latest time, the calls, and the sum of their costs.
local function unbook(op, raw)
  if #raw < 10 then foreign(op) end
  local last, n = unpack('>I7I2', raw, 2)
  if n < 1 or #raw < 10 + 27 * n or last >= EXACT then foreign(op) end
  local all, booked, before = {}, 0, last
  for i = 1, n do
    local p = 27 * i - 16
    local b = {id = raw:sub(p, p + 7)}
    b.t, b.cost, b.limit, b.capacity = unpack('>I7I4I4I4', raw, p + 8)
    if b.t < before or b.t >= EXACT or b.cost < 1 or b.cost > MAX_LIMIT then foreign(op) end
    all[i], booked, before = b, booked + b.cost, b.t
  end
  return #raw > 10 + 27 * n and raw:sub(11 + 27 * n), last, all, booked
end

-- Others are charged at once: they take a turn in a queue, or a place.
local function comesAhead(rule)
  local letter = rule.letter
  return letter ~= 'q' and letter ~= 'c' and letter ~= 't'
end

local function copy(t)
  local c = {}
  for k, v in pairs(t) do c[k] = v end
  return c
end

-- Charges a state, which may be blank.
local function charge(op, rule, r, id)
  if r.blank and rule.letter ~= 'w' then -- which is cold while it is blank
    if rule.begin then rule.begin(op, r) end
    r.blank = nil
  end
  rule.charge(op, r, id)
  r.blank = nil
end

-- Makes a, a copy of op, ask for what was reserved.
local function asFor(op, a, b)
  a.t, a.cost = b.t, b.cost
  if op.dynamic then a.limit, a.capacity = b.limit, b.capacity end
end

-- Charges what was reserved for t or before. A copy of op may be there to be changed.
local function due(op, rule, r, t, a)
  local all = r.ahead
  if not all or all[r.first].t > t then return end
  a = a or copy(op)
  local i = r.first
  while all[i] and all[i].t <= t do
    asFor(op, a, all[i])
    if rule.adopt and not r.blank then rule.adopt(a, r) end
    charge(a, rule, r)
    r.booked, i = r.booked - all[i].cost, i + 1
  end
  r.first = i
  if not all[i] then r.ahead = nil end
end

-- The cost if what is reserved counts as charged. It is above the capacity if op has to
-- wait for that: costs do not add up in a bucket with a warmup.
local function beside(op, rule, r)
  if not r.ahead then return op.cost end
  if rule.letter == 'w' then return op.cost > 0 and op.capacity + 1 or 0 end
  return op.cost + r.booked
end

local function fits(op, rule, r)
  local cost = beside(op, rule, r)
  return (cost == op.cost or cost <= op.capacity) and rule.admits(op, r, cost)
end

-- After how long, but at least from, op is admitted beside what is reserved. EXACT
-- stands for never.
local function earliest(op, rule, r, from)
  if from == 0 and not r.ahead then
    return rule.admits(op, r, op.cost) and 0 or rule.wait(op, r)
  end
  local later, a, scratch, t = copy(r), copy(op), copy(op), op.t + from
  if later.blank and op.initial and op.initial ~= 0 then
    rule.begin(op, later)
    later.blank = nil
  end
  while true do
    due(op, rule, later, t, scratch)
    local next = later.ahead and later.ahead[later.first].t or math.huge
    a.t, a.cost = t, op.cost
    local cost = beside(a, rule, later)
    if cost == op.cost or cost <= op.capacity then
      if rule.admits(a, later, cost) then return t - op.t end
      a.cost = cost
      next = min(next, t + rule.wait(a, later))
    end
    if next >= NEVER or next <= t then return EXACT end
    t = next
  end
end

-- Has r charged as op says at a time, after all others of that time.
local function book(op, r, t, id)
  local all, own = {}, {id = id, t = t, cost = op.cost, limit = op.limit, capacity = op.capacity}
  for i = r.first or 1, r.ahead and #r.ahead or 0 do
    local b = r.ahead[i]
    if own and b.t > t then
      all[#all + 1], own = own, nil
    end
    all[#all + 1] = b
  end
  all[#all + 1] = own
  r.booked = (r.ahead and r.booked or 0) + op.cost
  r.ahead, r.first = all, 1
end

-- Which of the calls ahead will be admitted at their times if one, at skip, does not come.
local function stands(op, rule, r, skip)
  local later, a, admitted = copy(r), copy(op), {}
  later.ahead = nil
  for i = r.first, #r.ahead do
    if i ~= skip then
      asFor(op, a, r.ahead[i])
      admitted[i] = rule.admits(a, later, a.cost)
      charge(a, rule, later)
    end
  end
  return admitted
end

-- Takes out a call that is ahead, and returns whether it did. It does not if one after
-- it would not be admitted at its time then, because a window would begin at another
-- time, or a bucket be colder.
local function unbooked(op, rule, r, id)
  local i = r.first
  while r.ahead[i] and r.ahead[i].id ~= id do i = i + 1 end
  if not r.ahead[i] then return false end
  local with, without = stands(op, rule, r), stands(op, rule, r, i)
  for j = i + 1, #r.ahead do
    if with[j] and not without[j] then return false end
  end
  local all = {}
  for j = r.first, #r.ahead do
    if j ~= i then all[#all + 1] = r.ahead[j] end
  end
  r.booked = r.booked - r.ahead[i].cost
  r.ahead, r.first = #all > 0 and all or nil, 1
  return true
end

-- After how long the limit of op would admit the call if there were no other. It sees
-- to op.allowed and op.late as schedule says.
local function alone(op, within, most)
  local rule, r, wait, late = op.rule, op.record, 0, 0
  if rule.letter == 'q' then
    wait = rule.delay(op, r)
    if not op.allowed then late = op.retry end
  elseif not op.allowed then
    if not comesAhead(rule) then return 0 end
    wait = earliest(op, rule, r, 0)
    late = op.opensTo(within)
    if r.ahead and #r.ahead - r.first + 1 >= most then late = max(late, r.ahead[r.first].t - op.t) end
  end
  if wait > within then late = max(late, wait < EXACT and wait - within or EXACT) end
  op.allowed = late == 0
  if late > 0 then op.late = late end
  return wait
end

-- Sees to them of a call that comes after wait, because one of the limits admits it no
-- earlier.
local function together(op, wait)
  local rule, r, late = op.rule, op.record, 0
  if rule.letter == 'c' then
    if wait >= op.window then late = wait - op.window + 1 end -- the place would be lost before
  elseif rule.letter == 'q' then
    if rule.delay(op, r) ~= wait then late = wait end -- a turn cannot be put off
  elseif op.alone < wait and op.opens() == 0 then
    local later = earliest(op, rule, r, wait)
    if later ~= wait then late = later end -- since what is reserved is ahead of it
  end
  if late > 0 then op.allowed, op.late = false, max(late, op.late or 0) end
end

-- Returns whether a call is granted that can wait for within, and after how long it
-- comes: when all limits that are enforced admit it. Of those that keep it from that,
-- op.allowed is not set, and op.late, if it is, says after how long they do not.
local function schedule(ops, within, most, admitted)
  local queued = false
  for _, op in ipairs(ops) do
    op.comes = comesAhead(op.rule)
    queued = queued or op.rule.letter == 'q'
  end
  if admitted and not queued then return true, 0 end
  local granted, wait = true, 0
  for i, op in ipairs(ops) do
    if not op.shadow then
      op.alone = alone(op, within, most[i])
      wait = max(wait, op.alone)
      granted = granted and op.allowed
    end
  end
  for _, op in ipairs(ops) do
    if op.cost == 0 or wait >= NEVER then
      granted = granted and (op.allowed or op.shadow)
    elseif not op.shadow then
      together(op, wait)
      granted = granted and op.allowed
    elseif op.comes then
      op.allowed = op.opens() == 0 and earliest(op, op.rule, op.record, wait) == wait
    end
  end
  return granted, wait
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
  if r.ahead then
    r = copy(r)
    due(op, rule, r, math.huge)
  end
  local at = rule.clear(op, r)
  if r.locks and r.locks > 0 then
    -- See clearsAside in record.go.
    at = max(at, r.unlock + ((#op.locks > 1 or op.initial and op.initial ~= 0) and op.window or 0))
  end
  return at
end

local function encodeAll(op, rule, r)
  if not r.ahead then return r.blank and '' or encode(rule, r) end
  local parts = {'R' .. pack('>I7I2', r.last, #r.ahead - r.first + 1)}
  for i = r.first, #r.ahead do
    local b = r.ahead[i]
    parts[#parts + 1] = b.id .. pack('>I7I4I4I4', b.t, b.cost, b.limit, b.capacity)
  end
  if not r.blank and (r.locks and r.locks > 0 or rule.clear(op, r) > -NEVER) then
    parts[#parts + 1] = encode(rule, r)
  end
  return table.concat(parts)
end

local function shift(op, rule, r, by)
  r.last = r.last - by
  if rule.letter ~= 'a' and r.base and r.base > -NEVER then r.base = r.base - by end
  if r.locks and r.locks > 0 then r.locked, r.unlock = r.locked - by, r.unlock - by end
  if rule.times then
    changeHolds(r, '>I7I4', function(at, units) return at - by, units end)
  end
  if r.ahead then
    local all = {}
    for i = r.first, #r.ahead do
      local b = r.ahead[i]
      all[#all + 1] = {id = b.id, t = b.t - by, cost = b.cost, limit = b.limit, capacity = b.capacity}
    end
    r.ahead, r.first = all, 1
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

-- The state of a key of which nothing is known.
local function blank(op, rule)
  local r = {blank = true, last = 0, base = -NEVER, used = 0, part = 0, frac = 0, window = op.window, limit = op.limit,
    length = op.length, count = op.count, locks = 0, holds = '', rest = '', size = rule.level and 33 or 19}
  if rule.prepare then rule.prepare(op, r) end
  return r
end

-- Returns the state that raw holds now, and makes op.t the time to decide at.
local function recall(op, rule, raw)
  local last, all, booked
  if raw and raw:byte() == BOOKED then raw, last, all, booked = unbook(op, raw) end
  local r = raw and decode(op, rule, raw)
  op.t = now
  if all then
    r = r or blank(op, rule)
    r.last, r.ahead, r.first, r.booked = max(r.last, last), all, 1, booked
  elseif r and now >= clears(op, rule, r) then
    r = nil
  end
  if r and r.last > now then
    if r.last - now > op.window then
      shift(op, rule, r, r.last - now)
      op.moved = true
    else
      op.t = r.last
    end
  end
  if all then
    due(op, rule, r, now)
    if not r.ahead and now >= clears(op, rule, r) then r = nil end
  end
  if r and not r.blank and rule.adopt then rule.adopt(op, r) end
  r = r or blank(op, rule)
  r.lowest = op.algorithm == 'bucket' and not op.dynamic
  return r
end

-- Has op find in raw what it decides on, as algorithms of plain.lua do.
local function load(op, raw)
  local rule = ruleOf(op)
  local r = recall(op, rule, raw)
  op.rule, op.record = rule, r

  local function locked()
    return r.locks and r.locks > 0 and op.t < r.unlock
  end

  local function open()
    if r.blank then
      if rule.begin then rule.begin(op, r) end
      r.blank = nil
    end
  end

  -- For how long the key is refused whatever is left of it.
  function op.opens()
    return max(locked() and r.unlock - op.t or 0, op.till and op.till - now or 0)
  end

  -- For how long it is so to a call that can wait for within.
  function op.opensTo(within)
    local w = op.opens()
    if w == 0 or not r.ahead then return w end
    local e = earliest(op, rule, r, w)
    return e < EXACT and max(w, e - within) or e
  end

  local function wait()
    local w = op.opens()
    if r.ahead then
      -- See outcomeRecord in record.go.
      w = earliest(op, rule, r, w)
    elseif not fits(op, rule, r) then
      w = max(w, earliest(op, rule, r, 0))
    end
    if op.dynamic and (r.ahead or not r.blank) then
      -- It is as new by the limit of the call that was charged.
      local clear = max(clears(op, rule, r) - op.t, op.till and op.till - now or 0)
      if clear < w and fits(op, rule, blank(op, rule)) then w = clear end
    end
    return min(w, EXACT)
  end

  op.allowed = op.ending or not op.till and not locked() and fits(op, rule, r)
  if not op.allowed and op.reserves and comesAhead(rule) then
    op.wait = wait -- which takes its time, and is rarely asked for
  elseif not op.allowed then
    op.retry = wait()
  elseif rule.delay then
    op.delay = rule.delay(op, r)
  end

  function op.charge()
    charge(op, rule, r, op.id)
  end

  -- Charges what comes after d.
  function op.book(d, id)
    if op.initial and op.initial ~= 0 then open() end
    r.last = max(r.last, op.t)
    book(op, r, op.t + d, id)
  end

  -- After how long what was charged so far is gone.
  function op.clears()
    return r.blank and 0 or min(max(rule.clear(op, r) - op.t, 0), EXACT)
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
    if locked() then return 0 end
    local n = rule.remaining(op, r)
    if not r.ahead then return n end
    return rule.letter == 'w' and 0 or max(n - r.booked, 0)
  end

  if #op.locks > 0 or rule.restates then
    function op.lasts()
      if op.till then return op.till - now end
      if op.restated then return 0 end
      if #op.locks == 0 then return EXACT end
      return locked() and min(r.unlock - op.t, EXACT) or 0
    end
  end

  function op.reset()
    return r.blank and not r.ahead and 0 or min(max(clears(op, rule, r) - op.t, 0), EXACT)
  end

  function op.encode()
    return encodeAll(op, rule, r)
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
  op.dynamic, op.locking, op.ends = bit(flags, 4), not bit(flags, 8), bit(flags, 32)
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
  if not build[name] or name == 'log' or name == 'fixed' then
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
  lapse(op, rule, r)
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

-- Of a call that was reserved, and charged at once: a place, or a turn in a queue.
function endings.cancel(op, rule, r, p)
  if rule.cancel then rule.cancel(op, r, p) else rule.giveBack(op, r, p) end
end

function endings.renew(op, rule, r, p)
  if rule.renew then rule.renew(op, r, p) end
end

-- A blocked key stays so.
local function blocked(op, state)
  return op.till and 'X' .. pack('>I7', op.till) .. state or state
end

local function write(op, state, ttl)
  if op.till then
    state, ttl = blocked(op, ttl > 0 and state or ''), max(ttl, op.till - now)
  end
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

-- The debt was op.reset at op.from, less a part of a microsecond, and until the last
-- charge at least what was left of that. So much of it can go as if it had never been
-- charged: with more, the bucket would have been full in between, and what others were
-- charged after that would go as well. Nor is it known what became of it where the pace
-- has changed.
function undo.bucket(op, raw)
  local time, q, r, w, l = unpack('>I7I7I4I7I4', raw, 2)
  if #raw ~= 30 or w < 1 or l < 1 then return end
  local g, g0, passed = gcd(op.window, op.limit), gcd(w, l), time - op.from
  if w / g0 ~= op.window / g or l / g0 ~= op.limit / g or passed < 0 or passed >= op.reset then return end
  local whole, part = muldiv(op.cost, w, l)
  if passed > 0 and whole >= op.reset - passed - 1 then
    whole, part = op.reset - passed - 1, 0
  end
  q, r = q - whole, r - part
  if r < 0 then q, r = q - 1, r + l end
  if q < 0 or q + r == 0 then return '' end
  return 'B' .. pack('>I7I7I4I7I4', time, q, r, w, l)
end

local letters = {fixed = 'F', log = 'L', bucket = 'B'}

function endings.undo(op, raw)
  local before = ''
  if raw:byte() == BOOKED then
    local inner = unbook(op, raw)
    if not inner then return end
    before, raw = raw:sub(1, -1 - #inner), inner
  end
  if #raw < 12 or raw:sub(1, 1) ~= letters[op.algorithm] then return end
  local state = undo[op.algorithm](op, raw)
  -- What comes ahead may depend on when a window began.
  if state == '' and before ~= '' and op.algorithm == 'fixed' then return end
  if state then state = before .. state end
  if state == '' and not op.till then
    redis.call('DEL', KEYS[op.number])
  elseif state then
    redis.call('SET', KEYS[op.number], blocked(op, state), 'KEEPTTL') -- which is long enough for less
  end
end

local function finish(op)
  local raw = redis.pcall('GET', KEYS[op.number])
  if type(raw) == 'table' then
    complain('KEYS[' .. op.number .. ']: ' .. raw.err)
  end
  if raw and raw:byte() == BLOCKED then raw = unblock(op, raw) end
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
  local r
  if raw:byte() == BOOKED then
    r = recall(op, rule, raw)
  else
    r = decode(op, rule, raw)
    op.t = r.last > now and r.last - now <= op.window and r.last or now
  end
  local p = find(r, op.id)
  if p then
    endings[op.ending](op, rule, r, p)
    write(op, encodeAll(op, rule, r), clears(op, rule, r) - now)
  end
end

-- Takes out what op was charged under an id for a time that has not come.
local function cancel(op, id)
  local rule = ruleOf(op)
  if not comesAhead(rule) then
    op.ending = 'cancel'
    return finish(op)
  end
  local raw = redis.pcall('GET', KEYS[op.number])
  if type(raw) == 'table' then
    complain('KEYS[' .. op.number .. ']: ' .. raw.err)
  end
  if raw and raw:byte() == BLOCKED then raw = unblock(op, raw) end
  if not raw or raw:byte() ~= BOOKED then return end
  local r = recall(op, rule, raw)
  if r.ahead and unbooked(op, rule, r, id) then
    write(op, encodeAll(op, rule, r), clears(op, rule, r) - now)
  end
end

-- Does so for all ops, and then says what could not be done.
local function cancelAll(ops, id)
  local failure
  for _, op in ipairs(ops) do
    local ok, err = pcall(cancel, op, id)
    if not ok then failure = failure or err end
  end
  if failure then error(failure, 0) end
  return #ops
end

-- Does what ARGV says after 'end': for each key what it says of a limit, but with
-- units in place of the cost, and an ending in place of the flags. Keys may be there
-- more than once. What cannot be done is an error after all others are done.
local function finishAll()
  local ops, a, failure = {}, 2
  for i = 1, #KEYS do
    local op = {number = i, algorithm = ARGV[a], ending = ARGV[a + 5]}
    if op.ending ~= 'charge' and not endings[op.ending or ''] or op.ending == 'cancel' or op.ending == 'undo' and not algorithms[op.algorithm] then
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

return read, finishAll, load, schedule, cancelAll
end

if #KEYS == 0 then
  complain('wrong number of arguments')
end

local ops, a, reserves, id, within, most, booked = {}, 1
local read, finish, load, schedule, cancel
if ARGV[1] == 'end' then
  read, finish = records()
  return finish()
elseif ARGV[1] == 'reserve' then
  reserves, a = true, 2
elseif ARGV[1] == 'book' or ARGV[1] == 'cancel' then
  read, finish, load, schedule, cancel = records()
  id, a = ARGV[2], 3
  if not id or #id ~= 8 then complain('ARGV[2] is not an id') end
  if ARGV[1] == 'book' then
    within, most, a = integer(3, 0, MAX_WINDOW), {}, 4 + #KEYS
    for i = 1, #KEYS do most[i] = integer(3 + i, 1, MAX_AHEAD) end
  end
end
for i = 1, #KEYS do
  local op = {number = i, algorithm = ARGV[a]}
  local name, flags = op.algorithm, integer(a + 5, 0, 63)
  op.window = integer(a + 2, 1, MAX_WINDOW)
  op.shadow = fmod(flags, 2) == 1
  if flags < 4 and algorithms[name] and not id then
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
    if not read then read, finish, load, schedule, cancel = records() end
    a = read(op, a, flags)
    if id then
      op.run, op.locks, op.initial, op.reserves = load, op.locks or {}, op.initial or 0, true
    end
  end
  ops[i] = op
end
if a ~= #ARGV + 1 then
  complain('wrong number of arguments')
end

if id and not within then return cancel(ops, id) end

local admitted, wait = true, 0
for i = 1, #ops do
  local op = ops[i]
  local raw = redis.pcall('GET', KEYS[i])
  if type(raw) == 'table' then
    complain('KEYS[' .. i .. ']: ' .. raw.err)
  end
  if raw and raw:byte() == BLOCKED then raw = unblock(op, raw) end
  if raw and raw:byte() == BOOKED then
    if not load then read, finish, load, schedule, cancel = records() end
    op.run, op.locks, op.initial, booked = load, op.locks or {}, op.initial or 0, true
  end
  local run = op.run or algorithms[op.algorithm]
  run(op, raw)
  if op.till then
    if not op.wait then op.retry = max(op.allowed and 0 or op.retry, op.till - now) end
    op.allowed = false
  end
  admitted = admitted and (op.allowed or op.shadow)
end

if within then admitted, wait = schedule(ops, within, most, admitted) end

local reply = {}
for i = 1, #ops do
  local op = ops[i]
  local write = admitted and op.allowed and op.charges
  if write and wait > 0 and op.comes then
    op.book(wait, id)
  elseif write then
    op.charge()
  elseif not op.till then
    write = op.refuse and op.refuse() or op.moved and (op.changes or op.charges)
  end
  local reset = op.reset()
  if write and reset > 0 then
    local ttl = ceil((op.t - now + reset) / 1000)
    redis.call('SET', KEYS[i], op.encode(), 'PX', string.format('%.0f', ttl))
  end
  if op.till then reset = max(reset, op.till - now) end
  reply[4 * i - 3] = op.allowed and 1 or 0
  reply[4 * i - 2] = op.till and 0 or op.remaining()
  if within then
    op.delay = admitted and wait or 0
    if op.late then
      op.retry = max(op.late, op.opensTo(within))
    elseif not op.allowed and not op.retry then
      op.retry = op.wait and op.wait() or 0
    end
    if not op.allowed and op.till then op.retry = max(op.retry, op.till - now) end
  end
  reply[4 * i - 1] = op.allowed and (op.delay or 0) or op.retry
  reply[4 * i] = reset
end
if reserves then
  for i = 1, #ops do
    reply[4 * #ops + i] = ops[i].t
    if booked then reply[5 * #ops + i] = ops[i].record and ops[i].clears() or ops[i].reset() end
  end
elseif read and not within then
  for i = 1, #ops do
    if ops[i].lasts then reply[#reply + 1] = ops[i].lasts() end
  end
  if booked then reply[#reply + 1] = 0 end
end
return reply
