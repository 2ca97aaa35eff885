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

