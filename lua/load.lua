-- Loads a sale from the database's truth, in three steps: begin clears it and puts it under LOADING, chunks bring its
-- requests, finish lets buyers in. Only a newer epoch may begin; only the epoch that began may go on.
--
-- KEYS[1] sale      hash
-- KEYS[2] stock     hash
-- KEYS[3] holders   hash
-- KEYS[4] pending   zset
-- KEYS[5..] request hashes of a chunk
-- ARGV[1] step      begin, chunk or finish
-- ARGV[2] runId     the server's run_id as the connection learnt it
-- ARGV[3] epoch
-- of begin:
-- ARGV[4] state
-- ARGV[5] stateVersion
-- ARGV[6] opensAt       in milliseconds of Redis time, like the next two
-- ARGV[7] closesAt
-- ARGV[8] forgetAt      when every key of the sale expires
-- ARGV[9] maxPerBuyer
-- ARGV[10] backlogLimit
-- ARGV[11] seq
-- ARGV[12..] two an item: itemId, remaining
-- of chunk:
-- ARGV[4..] ten an entry of KEYS[5..]: requestId, buyer, item, quantity, stage, rank, reason (or ''), at, seq, stands (P
--           undecided, D parked with a dead letter, V valid order, E ended)
-- of finish:
-- ARGV[4] channel       where it is published
--
-- OK
-- SUPERSEDED   another load with a newer epoch is under way or done, or this server is not the one that began it
-- DAMAGED      the sale's key is no hash

local saleKey, stockKey, holdersKey, pendingKey = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local step, runId, epoch = ARGV[1], ARGV[2], ARGV[3]

local keyType = redis.call('TYPE', saleKey)['ok']
if keyType ~= 'none' and keyType ~= 'hash' then
  if step ~= 'begin' then
    return { 'DAMAGED' }
  end
  redis.call('DEL', saleKey)
end
local sale = redis.call('HMGET', saleKey, 'epoch', 'phase', 'runId', 'forgetAt', 'stateVersion')

if step == 'begin' then
  if sale[1] and tonumber(sale[1]) and tonumber(sale[1]) >= tonumber(epoch) then
    return { 'SUPERSEDED' }
  end
  local forgetAt = ARGV[8]
  redis.call('UNLINK', stockKey, holdersKey, pendingKey)
  -- A pause that was said after this load had read the row must not be undone by it.
  local keepState = tonumber(sale[5] or '') and tonumber(sale[5]) > tonumber(ARGV[5])
  if not keepState then
    redis.call('HSET', saleKey, 'state', ARGV[4], 'stateVersion', ARGV[5])
  end
  redis.call('HSET', saleKey, 'phase', 'LOADING', 'runId', runId, 'epoch', epoch, 'opensAt', ARGV[6], 'closesAt', ARGV[7],
    'forgetAt', forgetAt, 'maxPerBuyer', ARGV[9], 'backlogLimit', ARGV[10], 'seq', ARGV[11])
  for at = 12, #ARGV, 2 do
    redis.call('HSET', stockKey, ARGV[at], ARGV[at + 1])
    local generation = tonumber(redis.call('HGET', saleKey, 'g:' .. ARGV[at]) or '') or 0
    redis.call('HSET', saleKey, 'g:' .. ARGV[at], string.format('%d', generation + 1))
  end
  -- Sentinels: with them a key that holds nothing is there, and one that was deleted is missed.
  redis.call('HSET', holdersKey, '.', '')
  redis.call('ZADD', pendingKey, 0, '.')
  redis.call('PEXPIREAT', saleKey, forgetAt)
  redis.call('PEXPIREAT', stockKey, forgetAt)
  redis.call('PEXPIREAT', holdersKey, forgetAt)
  redis.call('PEXPIREAT', pendingKey, forgetAt)
  return { 'OK' }
end

if sale[1] ~= epoch or sale[2] ~= 'LOADING' or sale[3] ~= runId then
  return { 'SUPERSEDED' }
end

if step == 'chunk' then
  local forgetAt = sale[4]
  for entry = 1, #KEYS - 4 do
    local key, at = KEYS[4 + entry], 3 + (entry - 1) * 10
    local requestId, buyer, stands = ARGV[at + 1], ARGV[at + 2], ARGV[at + 10]
    redis.call('DEL', key)
    redis.call('HSET', key, 'buyer', buyer, 'item', ARGV[at + 3], 'quantity', ARGV[at + 4], 'stage', ARGV[at + 5],
      'rank', ARGV[at + 6], 'at', ARGV[at + 8], 'epoch', epoch, 'seq', ARGV[at + 9])
    if ARGV[at + 7] ~= '' then
      redis.call('HSET', key, 'reason', ARGV[at + 7])
    end
    redis.call('PEXPIREAT', key, forgetAt)
    if stands == 'P' then
      redis.call('ZADD', pendingKey, ARGV[at + 9], requestId)
    end
    if stands == 'V' then
      redis.call('HSET', holdersKey, buyer, requestId)
    elseif stands ~= 'E' then
      redis.call('HSETNX', holdersKey, buyer, requestId)
    end
  end
  return { 'OK' }
end

redis.call('HSET', saleKey, 'phase', 'READY')
redis.call('HINCRBY', saleKey, 'seq', 1)
redis.call('PUBLISH', ARGV[4], cjson.encode({ kind = 'reloaded', epoch = tonumber(epoch) }))
return { 'OK' }
