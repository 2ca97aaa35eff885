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
    if isBehind(op, r.last) then
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
  local forgotten
  if rule.line and op.charges and not op.reserves and (op.ticket or not op.locking) then
    -- The call waits, and comes after those in line.
    local _, _, n, units, first = rule.line(op, r)
    op.before = n
    if op.allowed and n > 0 and rule.used(op, r) + units + op.cost > op.capacity then
      op.allowed, forgotten = false, first - op.t
    end
  end
  if forgotten then
    op.retry = forgotten
  elseif not op.allowed and op.reserves and comesAhead(rule) then
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
    local waits = op.ticket and rule.await and op.charges and rule.await(op, r)
    if op.allowed then return waits end
    local lock = #op.locks > 0 and op.locking and not locked()
    if not op.changes or not lock and not (r.blank and op.initial and op.initial ~= 0) then return waits end
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
  elseif op.id and #op.id == 16 and op.algorithm == 'concurrency' then
    op.id, op.ticket = op.id:sub(1, 8), op.id:sub(9)
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

