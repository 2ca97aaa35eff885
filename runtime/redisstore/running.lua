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

