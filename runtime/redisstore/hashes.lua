-- How states are kept: those of a user's key in a hash, which is the key, with policy and
-- form as the field. The fields are behind all other arguments, one for each key. A hash
-- lives as long as the state that lives longest: that others are there longer makes no
-- difference to what is decided.

if not FIELDS then
  FIELDS = {}
  for i = #KEYS, 1, -1 do
    FIELDS[i], ARGV[#ARGV] = ARGV[#ARGV], nil
  end
end

local function get(i) return redis.pcall('HGET', KEYS[i], FIELDS[i]) end

-- Keeps a state, for as many milliseconds at least.
local function put(i, state, life)
  local lives = redis.call('PTTL', KEYS[i])
  -- This is the first write, as a server that is out of memory refuses no other.
  redis.call('HSET', KEYS[i], FIELDS[i], state)
  if lives >= life then return end
  local done = redis.pcall('PEXPIRE', KEYS[i], string.format('%.0f', life))
  if not tonumber(done) then
    -- A user without the right to that leaves no hash that stays for ever.
    if lives == -2 then redis.call('HDEL', KEYS[i], FIELDS[i]) end
    error(done.err, 0)
  end
end

-- Keeps a state that needs no more time than the one before.
local function replace(i, state) redis.call('HSET', KEYS[i], FIELDS[i], state) end

local function remove(i) redis.call('HDEL', KEYS[i], FIELDS[i]) end

