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

