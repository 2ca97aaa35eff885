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
  if raw and raw:byte() == BLOCKED then raw = unblock(op, raw) end
  local run = op.run or algorithms[op.algorithm]
  run(op, raw)
  if op.till then
    op.retry = max(op.allowed and 0 or op.retry, op.till - now)
    op.allowed = false
  end
  admitted = admitted and (op.allowed or op.shadow)
end

local reply = {}
for i = 1, #ops do
  local op = ops[i]
  local write = admitted and op.allowed and op.charges
  if write then
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
  reply[4 * i - 1] = op.allowed and (op.delay or 0) or op.retry
  reply[4 * i] = reset
end
if reserves then
  for i = 1, #ops do
    reply[4 * #ops + i] = ops[i].t
  end
elseif more then
  for i = 1, #ops do
    if ops[i].lasts then reply[#reply + 1] = ops[i].lasts() end
  end
end
return reply
