-- Decides one request: takes stock for it, or says why not. Nothing is written unless everything was read and checked,
-- because Redis does not roll a script back. Safe to send again: the requestId is looked up before anything else.
--
-- KEYS[1] sale      hash: state, window, limits, epoch, runId, seq, phase, `g:<itemId>` generations
-- KEYS[2] stock     hash: itemId -> remaining units
-- KEYS[3] holders   hash: buyerId -> requestId of the live reservation, and the sentinel `.`
-- KEYS[4] pending   zset: requestId by seq, accepted and not decided; and the sentinel `.`, which is none of them
-- KEYS[5] request   hash: buyer, item, quantity, stage, rank, reason, at, epoch, seq
-- ARGV[1] runId     the server's run_id as the connection learnt it
-- ARGV[2] requestId
-- ARGV[3] buyerId
-- ARGV[4] itemId
-- ARGV[5] quantity  1 or more
-- ARGV[6] notAfter  the caller's deadline in milliseconds of Redis time
-- ARGV[7] accept    '1', or '0' while new requests can't be made durable: repeats are still answered
-- ARGV[8] stage     the stage that an accepted request starts in
-- ARGV[9] rank      and its rank
--
-- Every reply starts with its kind and the Redis time in milliseconds.
-- ACCEPTED, now, epoch, seq, ahead, generation
-- KNOWN, now, epoch, seq, stage, reason, at, ahead   sent before with the same contents; ahead is -1 when decided
-- CONFLICT, now                                  sent before with other contents
-- NOT_LOADED, now                                no sale, another server's, or a load is under way
-- DAMAGED, now, key, extent                      a key or value is not what it must be: extent is 'item' where one
--                                                value of one item's stock is wrong, else 'sale': only a load mends it
-- UNKNOWN_ITEM, now
-- NOT_STARTED, now, opensAt
-- PAUSED, now
-- ENDED, now
-- HELD, now, requestId                           the buyer's live reservation, made by another request
-- LIMIT_EXCEEDED, now, maxPerBuyer
-- SOLD_OUT, now, epoch, generation
-- INSUFFICIENT, now, remaining
-- BUSY, now
-- REFUSED, now                                   it would have been accepted, but accept is '0'
-- TOO_LATE, now                                  it would have been accepted, but notAfter has passed

local saleKey, stockKey, holdersKey, pendingKey, requestKey = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local runId, requestId, buyerId, itemId = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local quantity, notAfter, accept = tonumber(ARGV[5]), tonumber(ARGV[6]), ARGV[7] == '1'
local stage, rank = ARGV[8], ARGV[9]

local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local nowText = string.format('%d', now)

-- A plain non-negative integer, exactly as Redis writes it: tonumber alone would take 1e3, 0x10 and 3.5, and HINCRBY,
-- half-way through the writes, would refuse 007. Up to 2^53, where a number of Lua's stops being exact.
local function integer(text)
  if type(text) ~= 'string' or #text > 16 or not (text == '0' or string.find(text, '^[1-9]%d*$')) then
    return nil
  end
  local number = tonumber(text)
  return number < 2 ^ 53 and number or nil
end

local function damaged(key, extent)
  return { 'DAMAGED', nowText, key, extent }
end

local sale = redis.pcall('HMGET', saleKey, 'phase', 'runId', 'epoch', 'seq', 'state', 'opensAt', 'closesAt',
  'maxPerBuyer', 'backlogLimit', 'g:' .. itemId, 'forgetAt', 'stateVersion')
if sale.err then
  return damaged(saleKey, 'sale')
end
if sale[1] ~= 'READY' or sale[2] ~= runId then
  return { 'NOT_LOADED', nowText }
end
local epoch, seq, state = sale[3], integer(sale[4]), sale[5]
local opensAt, closesAt = integer(sale[6]), integer(sale[7])
local maxPerBuyer, backlogLimit = integer(sale[8]), integer(sale[9])
local generation, forgetAt = sale[10], sale[11]
-- Without a stateVersion set_state can't pause the sale: better not to sell.
if not (integer(epoch) and seq and state and opensAt and closesAt and maxPerBuyer and backlogLimit
  and integer(forgetAt) and integer(sale[12])) then
  return damaged(saleKey, 'sale')
end

-- A request of an older epoch counts as absent: the load rewrote every one that has a row in the database.
local known = redis.pcall('HMGET', requestKey, 'epoch', 'seq', 'stage', 'reason', 'at', 'buyer', 'item', 'quantity')
if known.err then
  return damaged(requestKey, 'sale')
end
if known[1] == epoch then
  if known[6] ~= buyerId or known[7] ~= itemId or known[8] ~= ARGV[5] then
    return { 'CONFLICT', nowText }
  end
  if not (integer(known[2]) and known[3] and integer(known[5])) then
    return damaged(requestKey, 'sale')
  end
  local ahead = redis.pcall('ZRANK', pendingKey, requestId)
  if type(ahead) == 'table' then
    return damaged(pendingKey, 'sale')
  end
  return { 'KNOWN', nowText, known[1], known[2], known[3], known[4] or '', known[5], ahead and ahead - 1 or -1 }
end

if state == 'CLOSED' or now >= closesAt then
  return { 'ENDED', nowText }
end
if now < opensAt then
  return { 'NOT_STARTED', nowText, sale[6] }
end
if state == 'PAUSED' then
  return { 'PAUSED', nowText }
end
if state ~= 'OPEN' then
  return damaged(saleKey, 'sale')
end

-- The sentinel tells a key without holders from one that was deleted; so it does of pending.
local held = redis.pcall('HMGET', holdersKey, '.', buyerId)
if held.err or not held[1] then
  return damaged(holdersKey, 'sale')
end
if held[2] then
  -- It holds the buyer's stock and yet is not known: its key was lost.
  if held[2] == requestId then
    return damaged(requestKey, 'sale')
  end
  return { 'HELD', nowText, held[2] }
end

if quantity > maxPerBuyer then
  return { 'LIMIT_EXCEEDED', nowText, sale[8] }
end

local stock = redis.pcall('HGET', stockKey, itemId)
if type(stock) == 'table' then
  return damaged(stockKey, 'sale')
end
if not stock then
  -- Every item of the sale has a generation; one without is none of this sale's.
  if not generation then
    return { 'UNKNOWN_ITEM', nowText }
  end
  return damaged(stockKey, redis.call('EXISTS', stockKey) == 1 and 'item' or 'sale')
end
local remaining = integer(stock)
if not remaining or not integer(generation) then
  return damaged(stockKey, 'item')
end
if remaining == 0 then
  return { 'SOLD_OUT', nowText, epoch, generation }
end
if remaining < quantity then
  return { 'INSUFFICIENT', nowText, stock }
end

local sentinel = redis.pcall('ZSCORE', pendingKey, '.')
if type(sentinel) ~= 'string' then
  return damaged(pendingKey, 'sale')
end
local backlog = redis.call('ZCARD', pendingKey) - 1
if backlog >= backlogLimit then
  return { 'BUSY', nowText }
end
if not accept then
  return { 'REFUSED', nowText }
end
-- A frozen Redis must not accept, when it thaws, what its caller gave up long ago.
if now > notAfter then
  return { 'TOO_LATE', nowText }
end

-- From here on only writes, none of which can fail.
seq = string.format('%d', redis.call('HINCRBY', saleKey, 'seq', 1))
redis.call('HINCRBY', stockKey, itemId, -quantity)
redis.call('HSET', holdersKey, buyerId, requestId)
redis.call('ZADD', pendingKey, seq, requestId)
if known[1] then
  redis.call('DEL', requestKey)
end
redis.call('HSET', requestKey, 'buyer', buyerId, 'item', itemId, 'quantity', ARGV[5], 'stage', stage, 'rank', rank,
  'at', nowText, 'epoch', epoch, 'seq', seq)
redis.call('PEXPIREAT', requestKey, forgetAt)
return { 'ACCEPTED', nowText, epoch, seq, backlog, generation }
