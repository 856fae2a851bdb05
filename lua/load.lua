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
-- begin:  ARGV[4] state, [5] stateVersion, [6] opensAt, [7] closesAt, [8] maxPerBuyer, [9] backlogLimit, [10] seq,
--         then two an item: itemId, remaining
-- chunk:  ten an entry of KEYS[5..]: requestId, buyer, item, quantity, stage, rank, reason or '', at, seq, and how it
--         stands: P undecided, D parked with a dead letter, V valid order, E ended
-- finish: ARGV[4] channel
--
-- OK
-- SUPERSEDED   another load with a newer epoch is under way or done, or this server is not the one that began it
-- DAMAGED      the sale's key is no hash

local saleKey, stockKey, holdersKey, pendingKey = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local step, runId, epoch = ARGV[1], ARGV[2], ARGV[3]
local REMEMBERED_MS = 7 * 24 * 60 * 60 * 1000

local keyType = redis.call('TYPE', saleKey)['ok']
if keyType ~= 'none' and keyType ~= 'hash' then
  if step ~= 'begin' then
    return { 'DAMAGED' }
  end
  redis.call('DEL', saleKey)
end
local sale = redis.call('HMGET', saleKey, 'epoch', 'phase', 'runId', 'closesAt', 'stateVersion')

if step == 'begin' then
  if sale[1] and tonumber(sale[1]) and tonumber(sale[1]) >= tonumber(epoch) then
    return { 'SUPERSEDED' }
  end
  local forgetAt = string.format('%d', tonumber(ARGV[7]) + REMEMBERED_MS)
  redis.call('UNLINK', stockKey, holdersKey, pendingKey)
  -- A pause that was said after this load had read the row must not be undone by it.
  local keepState = tonumber(sale[5] or '') and tonumber(sale[5]) > tonumber(ARGV[5])
  if not keepState then
    redis.call('HSET', saleKey, 'state', ARGV[4], 'stateVersion', ARGV[5])
  end
  redis.call('HSET', saleKey, 'phase', 'LOADING', 'runId', runId, 'epoch', epoch, 'opensAt', ARGV[6], 'closesAt', ARGV[7],
    'maxPerBuyer', ARGV[8], 'backlogLimit', ARGV[9], 'seq', ARGV[10])
  for at = 11, #ARGV, 2 do
    redis.call('HSET', stockKey, ARGV[at], ARGV[at + 1])
    redis.call('HINCRBY', saleKey, 'g:' .. ARGV[at], 1)
  end
  redis.call('HSET', holdersKey, '.', '')
  redis.call('PEXPIREAT', saleKey, forgetAt)
  redis.call('PEXPIREAT', stockKey, forgetAt)
  redis.call('PEXPIREAT', holdersKey, forgetAt)
  return { 'OK' }
end

if sale[1] ~= epoch or sale[2] ~= 'LOADING' or sale[3] ~= runId then
  return { 'SUPERSEDED' }
end

if step == 'chunk' then
  local forgetAt = string.format('%d', tonumber(sale[4]) + REMEMBERED_MS)
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
  redis.call('PEXPIREAT', pendingKey, forgetAt)
  return { 'OK' }
end

redis.call('HSET', saleKey, 'phase', 'READY')
redis.call('HINCRBY', saleKey, 'seq', 1)
redis.call('PUBLISH', ARGV[4], cjson.encode({ kind = 'reloaded', epoch = tonumber(epoch) }))
return { 'OK' }
