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
    put(op.number, state, ceil(min(ttl, EXACT) / 1000))
  else
    remove(op.number)
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
    remove(op.number)
  elseif state then
    replace(op.number, blocked(op, state)) -- which is long enough for less
  end
end

local function finish(op)
  local raw = get(op.number)
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
    op.t = r.last > now and not isBehind(op, r.last) and r.last or now
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
  local raw = get(op.number)
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
  -- Where the windows of the calendar do not fit, the client sends all ends once more, so
  -- none may be done before that is known.
  for _, op in ipairs(ops) do
    if op.bounds then ruleOf(op).ready(op) end
  end
  for _, op in ipairs(ops) do
    local ok, err = pcall(finish, op)
    if not ok then failure = failure or err end
  end
  if failure then error(failure, 0) end
  return #ops
end

return read, finishAll, load, schedule, cancelAll
