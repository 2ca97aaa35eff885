-- Blocks a key, or lifts that (see plain.lua about the state of a blocked key).
--
-- KEYS[1]  the state of a limit.
-- ARGV[1]  for how many microseconds from now it is blocked; 0 for no more.

local d = tonumber(ARGV[1])
if #KEYS ~= 1 or #ARGV ~= 1 or not d or d < 0 or d > 316224000000000 or math.fmod(d, 1) ~= 0 then
  error('RATELIMIT wrong arguments', 0)
end

local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local raw = get(1)
if type(raw) == 'table' then
  error('RATELIMIT KEYS[1]: ' .. raw.err, 0)
end
raw = raw or ''
if raw:sub(1, 1) == 'X' then raw = raw:sub(9) end
if d > 0 then
  local ttl = math.max(redis.call('PTTL', KEYS[1]), math.ceil(d / 1000))
  put(1, 'X' .. struct.pack('>I7', now + d) .. raw, ttl)
elseif raw == '' then
  remove(1)
else
  replace(1, raw)
end
return 1
