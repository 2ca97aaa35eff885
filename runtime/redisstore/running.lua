-- For how long a call in line that does not ask again keeps its place there, and how many
-- may be in line. The others are as those that have just come.
local LINE, MAX_LINE = 3000000, 100

-- Places that are taken for a lease (running.go). r.used counts the units of all
-- holds, also of those that have ended. Among them are the calls of processes that wait
-- for a place, in the order in which they came: holds with no units, whose id begins with
-- how many they wait for (4 bytes), and whose time is when they are forgotten.
--
-- Versions of this script without a line take it that what follows a hold that has not
-- ended has not either, and that the last one ends last. So the line is before the first
-- place that ends when it is forgotten, or later. (With leases shorter than LINE, such a
-- version may put an earlier place behind it, and then counts what has ended.)
build.concurrency = function()
  local rule = counting {letter = 'c', fields = {'used'}, times = true}

  -- Keeps a place. They are in the order in which they end, which is not that in which
  -- they began where the lease has become shorter.
  local function place(r, id, at, units)
    local p = #r.holds + 1
    while p > 1 do
      if hold(r, p - r.size) <= at then break end
      p = p - r.size
    end
    r.holds = r.holds:sub(1, p - 1) .. id .. pack('>I7I4', at, units) .. r.holds:sub(p)
  end

  function rule.used(op, r)
    local used = r.used
    for p = 1, #r.holds, r.size do
      local at, units = hold(r, p)
      if units > 0 and at > op.t then break end
      used = used - units
    end
    return used
  end

  -- The calls in line but for op itself, and the places. Of those calls that came before
  -- op: their number, their units, and the time when the first is forgotten. And where op
  -- is in line, if it is.
  function rule.line(op, r)
    local line, places, n, sum, first, own, p = {}, {}, 0, 0, math.huge, nil, 1
    while p < #r.holds do
      local id, at, units = r.holds:sub(p, p + 7), hold(r, p)
      if units > 0 then
        if at > op.t + LINE then break end
        places[#places + 1] = r.holds:sub(p, p + r.size - 1)
      elseif id == op.ticket then
        own = #line + 1
      elseif at > op.t then
        line[#line + 1] = r.holds:sub(p, p + r.size - 1)
        if not own then n, sum, first = n + 1, sum + unpack('>I4', id), min(first, at) end
      end
      p = p + r.size
    end
    places[#places + 1] = r.holds:sub(p)
    return line, table.concat(places), n, sum, first, own
  end

  -- Makes r hold a line, beside places. The last in it is forgotten when all are.
  local function join(r, line, places)
    r.holds = places
    if #line == 0 then return end
    local last, p = 0, 1
    for i = 1, #line do last = max(last, (unpack('>I7', line[i], 9))) end
    line[#line] = line[#line]:sub(1, 8) .. pack('>I7I4', last, 0)
    while p < #r.holds and hold(r, p) < last do p = p + r.size end
    r.holds = r.holds:sub(1, p - 1) .. table.concat(line) .. r.holds:sub(p)
  end

  function rule.charge(op, r, id)
    r.used = rule.used(op, r) + op.cost
    local line, places = rule.line(op, r)
    r.holds, r.last = places, op.t
    dropOld(r, function(at) return at <= op.t end)
    place(r, id or '\0\0\0\0\0\0\0\0', op.t + op.window, op.cost)
    join(r, line, r.holds)
  end

  -- Has op be in line, or be no more if other limits refuse it, too: it would keep a place
  -- from others that it cannot take. Returns whether that changes anything.
  function rule.await(op, r)
    local line, places, _, _, _, own = rule.line(op, r)
    local waits = op.queues and not op.allowed
    if not own and (not waits or #line >= MAX_LINE) then return false end
    if waits then
      table.insert(line, own or #line + 1, op.ticket .. pack('>I7I4', op.t + LINE, 0))
    end
    join(r, line, places)
    r.last = max(r.last, op.t)
    return true
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

  function rule.giveBack(op, r, p)
    local _, units = hold(r, p)
    r.used = r.used - units
    drop(r, p)
    if units == 0 then
      local line, places = rule.line(op, r)
      join(r, line, places)
    end
  end

  -- A lease that has ended is renewed only if its place is free.
  function rule.renew(op, r, p)
    local at, units = hold(r, p)
    if units > 0 and (at > op.t or rule.used(op, r) + units <= op.capacity) then
      local id = r.holds:sub(p, p + 7)
      drop(r, p)
      local line, places = rule.line(op, r)
      r.holds = places
      place(r, id, max(at, op.t + op.window), units)
      join(r, line, r.holds)
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

