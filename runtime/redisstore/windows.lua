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

  -- Complains if there is no window for any time that op may be decided at.
  function rule.ready(op)
    window(op, now)
    window(op, now + min(op.window, MAX_STANDSTILL))
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

