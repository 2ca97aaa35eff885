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
  local raw = get(i)
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

-- Whether nothing but places keeps the call from coming.
local queues = not admitted
for i = 1, #ops do
  if not ops[i].allowed and not ops[i].shadow and not ops[i].ticket then queues = false end
end

local reply = {}
for i = 1, #ops do
  local op = ops[i]
  op.queues = queues
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
    put(i, op.encode(), ttl)
  elseif write and op.ticket then
    remove(i) -- it was all that was recorded, and is not in line any more
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
    if ops[i].ticket then reply[#reply + 1] = not ops[i].allowed and ops[i].before or 0 end
  end
  if booked then reply[#reply + 1] = 0 end
end
return reply
