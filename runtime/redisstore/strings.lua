-- How states are kept: each in a string, which is the key.

local function get(i) return redis.pcall('GET', KEYS[i]) end

-- Keeps a state, for as many milliseconds at least.
local function put(i, state, life)
  redis.call('SET', KEYS[i], state, 'PX', string.format('%.0f', life))
end

-- Keeps a state that needs no more time than the one before.
local function replace(i, state) redis.call('SET', KEYS[i], state, 'KEEPTTL') end

local function remove(i) redis.call('DEL', KEYS[i]) end

