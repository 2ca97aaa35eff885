-- Decides the limits of one call as one: each enforced limit admits it, and each
-- limit that admits it is charged, or none is.
--
-- This is the first part of one script: what most calls need, in as little time as can
-- be. Every call of a script creates all functions that it has, so there is none here.
-- plain.lua and the others, which follow, decide everything, and also the calls that are
-- begun here and that turn out to be rare; nothing is written before that is known.
--
-- There is one script for each way to keep states: what is between --@strings and --@end
-- is of the one that has each in a string, and what is between --@hashes and --@end of the
-- one that has those of a user's key in a hash.
--
-- KEYS[i]  where the state of the i-th limit is; all keys are in one hash slot.
-- ARGV[i]  what plain.lua describes or, for limits of buckets, fixed windows and logs
--          that are enforced, all of them together, one string for each key. It begins
--          with B, F or L, and ends with limit (4 bytes), window (7), capacity (4) and
--          cost (4). Between them a bucket has w (7) and l (4), the time in which a unit
--          refills in lowest terms, and the debts q (7) and r (4) of an empty one and of
--          the cost; a log has the width of its times (1). For these see plain.lua.
--          Or first M and a byte for each key, and then such strings: the keys are calls
--          of one limit each, which are decided one after the other, and the byte tells
--          by which of the strings, from 1 on. It is m in place of M if some of the keys
--          are the same.
--          With hashes, as many fields follow as there are strings of limits, and the
--          key is there once if it is that of all limits of a call.
-- Reply    of the latter, one string for each key, the string itself if there is one
--          call of one limit. Nothing for what is rare among many calls, and not done.
--          Where the call is charged: the new state of a bucket, or an integer, its q,
--          where r is 0; of a log an integer, the units used; of a fixed window W, the
--          units used (4) and the time until the state is as new (7). Where this limit
--          refuses: b and the debt with the cost, q (7) and r (4); or w, the units used
--          (4), that time (7) and the one until it would admit the call (7). Where only
--          another one refuses: a and the debt; or v, the units used and that time.
--          With hashes, for several limits of one key that are all to be answered by an
--          integer, one string of them (7 bytes each), which takes half of the time.

local KEYS, ARGV = KEYS, ARGV
--@hashes
local FIELDS
--@end
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]

local tag = ARGV[1] and ARGV[1]:byte()
if tag == 66 or tag == 70 or tag == 76 or tag == 77 or tag == 109 then
  local call, pcall, format = redis.call, redis.pcall, string.format
  local pack, unpack = struct.pack, struct.unpack
  local many = tag == 77 or tag == 109
  local which = many and {ARGV[1]:byte(2, -1)}
--@strings
  local n = #KEYS
  local rare = n ~= (many and #which or #ARGV)
--@hashes
  local home = KEYS[1]
  local n, fields = #KEYS, #ARGV / 2 -- which begin behind that argument
  if many then fields = fields + 0.5 elseif n == 1 then n = fields end
  local rare = fields % 1 > 0 or n ~= (many and #which or fields)
--@end
  local several, admitted = n > 1, true
--@strings
  local all = several and not many
--@hashes
  local shared = several and not many and #KEYS == 1
  local all = several and not many and not shared
--@end
  -- Six for each limit of a call that has several: the replies if the call is charged and
  -- if it is not, which takes two numbers where this limit admits it, and what is to be
  -- written. There is room for four limits from the beginning.
  local kept = all and {nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil}
--@strings
  -- For keys that differ, what they hold, or false where it is no string. The server's user
  -- may lack the rights to this, PTTL and SETRANGE: all takes a little longer then.
  local held = tag == 77 and not rare and pcall('MGET', _G.unpack(KEYS))
  if held and held.err then held = false end
--@hashes
  local held = shared and not rare and pcall('HMGET', home, _G.unpack(ARGV, fields + 1))
  if held and held.err then rare = true end
  local set = shared and {nil, nil, nil, nil, nil, nil, nil, nil} -- fields and states
  local most, numbers = 0, true
--@end
  -- What known, an argument, says, and its tag if that makes sense.
  local known, kind, w, l, fullq, fullr, costq, costr, limit, window, cost, width, _
--@hashes
  local refused
  repeat
  if refused then
    -- Nothing is written, and what is left of the others is to be told: once more, as for
    -- limits of several keys.
    shared, all, held, kept, refused = false, true, false, {}, false
    for i = 1, n do KEYS[i] = home end
  end
--@end
  for i = 1, rare and 0 or n do repeat
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
    local raw
--@strings
    if held then raw = held[i] else raw = pcall('GET', KEYS[i]) end
--@hashes
    if held then raw = held[i] else raw = pcall('HGET', KEYS[i], ARGV[fields + (many and which[i] or i)]) end
--@end
    local state, life, gap, reply, refusal, free, rest
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
        gap = now - last
        q0 = q0 - gap
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
        if all then free, rest = oldq, oldr end
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
        else
          gap = 0 -- when the key expires is the same all the time
        end
      end
      local left = start + window - now
      if used + cost > limit then
        refusal = pack('>BI4I7I7', 119, used, left, left)
      else
        state, life = pack('>BI7I4', 70, start, used + cost), left
        reply = pack('>BI4I7', 87, used + cost, left)
        if all then free, rest = used, used > 0 and left or 0 end
      end
    else
      local size, entry = width + 2, '>I' .. width .. 'I2'
      local used, last, sum, before, body = 0, 0, 0, 0, ''
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
        if all then free, rest = used, used > 0 and window - gap or 0 end
      end
    end
--@strings
    -- A key lives longer than its state says something, at most by half an hour, so that
    -- calls in a row need not set anew when it expires, which takes most of the time of a
    -- write. If the last call was long ago, they would have to. A state that has the length
    -- of the one before takes its place; Redis would make a longer one room to grow.
    local stays
    if state then
      local spare = life < 28800000000 and life / 16 + 1000000 or 1801000000
      if gap and gap < spare then
        local lives = tonumber(pcall('PTTL', KEYS[i]))
        stays = lives and lives * 1000 >= life and lives * 1000 - life < 1802000000 and #raw
      end
      if not stays then
        -- The number is written out, as Redis might write a large one with an exponent. %d is
        -- faster, but may be of 32 bits.
        life = math.ceil((life + spare) / 1000)
        life = format(life < 2000000000 and '%d' or '%.0f', life)
      end
    end
    local j = state and i or i + 1
    if all then
      admitted = admitted and not refusal
      j = 6 * i
      kept[j - 5], kept[j - 4], kept[j - 3], kept[j - 2], kept[j - 1], kept[j] = reply, refusal or free, rest, state, stays, life
      j = admitted and i == n and 1 or i + 1
    end
    while j <= i do
      if all then reply, state, stays, life = kept[6 * j - 5], kept[6 * j - 2], kept[6 * j - 1], kept[6 * j] end
      if stays ~= #state or pcall('SETRANGE', KEYS[j], '0', state) ~= stays then
        if stays then
          call('SET', KEYS[j], state, 'KEEPTTL')
        elseif raw or not held then
          call('SET', KEYS[j], state, 'PX', life)
        elseif not call('SET', KEYS[j], state, 'PX', life, 'NX') then
          reply = false -- it holds what is no string
        end
      end
      if several then KEYS[j] = reply end
      j = j + 1
    end
--@hashes
    -- A hash lives as long as the state that lives longest, and longer than it says
    -- something, at most by half an hour, so that calls in a row need not set anew when it
    -- expires.
    local j = state and i or i + 1
    if shared then
      if refusal then refused = true break end
      held[i], set[2 * i - 1], set[2 * i] = reply, ARGV[fields + i], state
      numbers = numbers and reply ~= state and kind ~= 70
      if life > most then most = life end
      if i < n then break end
      j, life = n, most
    elseif all then
      admitted = admitted and not refusal
      j = 6 * i
      kept[j - 5], kept[j - 4], kept[j - 3], kept[j - 2], kept[j - 1] = reply, refusal or free, rest, state, life
      j = admitted and i == n and 1 or i + 1
    end
    while j <= i do
      if all then reply, state, life = kept[6 * j - 5], kept[6 * j - 2], kept[6 * j - 1] end
      local key, field = KEYS[j], ARGV[fields + (many and which[j] or j)]
      if shared then key = home end
      local lives = call('PTTL', key)
      -- This is the first write, as a server that is out of memory refuses no other.
      if shared then call('HSET', key, _G.unpack(set)) else call('HSET', key, field, state) end
      if lives * 1000 < life then
        life = math.ceil((life + (life < 28800000000 and life / 16 + 1000000 or 1801000000)) / 1000)
        local done = pcall('PEXPIRE', key, format(life < 2000000000 and '%d' or '%.0f', life))
        if not tonumber(done) then
          -- A user without the right to that leaves no hash that stays for ever.
          if lives == -2 then call('HDEL', key, _G.unpack(set or {field})) end
          return done
        end
      end
      if several and not shared then KEYS[j] = reply end
      j = j + 1
    end
--@end
--@hashes
    if shared then
      if not numbers then return held end
      if n == 2 then return pack('>I7I7', held[1], held[2]) end
      if n == 3 then return pack('>I7I7I7', held[1], held[2], held[3]) end
      return pack('>' .. ('I7'):rep(n), _G.unpack(held))
    end
--@end
    if not several then return reply or refusal end
    if refusal and many then KEYS[i] = refusal end
  until true
    if rare then
      if not many then break end
      rare, KEYS[i] = false, false
    end
--@hashes
    if refused then break end
--@end
  end
--@hashes
  until not refused
--@end
  if not rare then
    for i = 1, admitted and 0 or n do
      local free, rest = kept[6 * i - 4], kept[6 * i - 3]
      if rest then free = ARGV[i]:byte() == 66 and pack('>BI7I4', 97, free, rest) or pack('>BI4I7', 118, free, rest) end
      KEYS[i] = free
    end
    return KEYS
  end
  local full = {}
--@strings
  for i = 1, #ARGV do
--@hashes
  if fields % 1 > 0 then error('RATELIMIT wrong number of arguments', 0) end
  FIELDS = {}
  for i = 1, fields do
    FIELDS[i] = ARGV[fields + i]
    if shared then KEYS[i] = home end -- it was there once
  end
  for i = 1, fields do
--@end
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
