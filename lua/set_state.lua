-- Puts a sale's state into Redis: a newer stateVersion only, in any phase, also with nothing loaded, so that a load that
-- read the row before a pause can't undo it.
--
-- KEYS[1] sale           hash
-- ARGV[1] state
-- ARGV[2] stateVersion
-- ARGV[3] channel        where the change is published
-- ARGV[4] forgetAt       when a sale that was never loaded is forgotten, in milliseconds of Redis time
--
-- APPLIED
-- STALE      Redis has this stateVersion, or a newer one
-- DAMAGED    the key is no hash, or its stateVersion or seq no number: nothing was changed

local saleKey = KEYS[1]
local state, stateVersion, channel, forgetAt = ARGV[1], ARGV[2], ARGV[3], ARGV[4]

local function integer(text)
  if type(text) ~= 'string' or #text > 16 or not (text == '0' or string.find(text, '^[1-9]%d*$')) then
    return nil
  end
  return tonumber(text)
end

local sale = redis.pcall('HMGET', saleKey, 'stateVersion', 'seq', 'epoch')
if sale.err then
  return { 'DAMAGED' }
end
local present = integer(sale[1] or '0')
if not present or (sale[3] and not integer(sale[2])) then
  return { 'DAMAGED' }
end
if sale[1] and present >= tonumber(stateVersion) then
  return { 'STALE' }
end
redis.call('HSET', saleKey, 'state', state, 'stateVersion', stateVersion)
if sale[3] then
  redis.call('HINCRBY', saleKey, 'seq', 1)
else
  redis.call('PEXPIREAT', saleKey, forgetAt)
end
redis.call('PUBLISH', channel, cjson.encode({ kind = 'state', state = state }))
return { 'APPLIED' }
