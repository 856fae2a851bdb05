-- Takes undecided requests of one sale out of the line, since they wait for an operator, or puts them back into it where they
-- stood. What is decided, or not known in this loading, is left alone: repeats do nothing.
--
-- KEYS[1] sale      hash
-- KEYS[2] pending   zset
-- KEYS[3..] request hashes, one an entry of ARGV
-- ARGV[1] runId     the server's run_id as the connection learnt it
-- ARGV[2] inLine    '1' back into the line, '0' out of it
-- ARGV[3] queued    the rank from which a request is decided, exclusive: the highest of an undecided one
-- ARGV[4..] one an entry: requestId
--
-- NOT_LOADED    no sale, another server's, or one that is being loaded, which sees to it: nothing was changed
-- DAMAGED, key  a key or value is not what it must be: nothing was changed
-- OK, changed   how many requests were moved

local saleKey, pendingKey = KEYS[1], KEYS[2]
local runId, inLine, queued = ARGV[1], ARGV[2], tonumber(ARGV[3])

local sale = redis.pcall('HMGET', saleKey, 'phase', 'runId', 'epoch')
if sale.err then
  return { 'DAMAGED', saleKey }
end
if sale[1] ~= 'READY' or sale[2] ~= runId then
  return { 'NOT_LOADED' }
end
if type(redis.pcall('ZSCORE', pendingKey, '.')) ~= 'string' then
  return { 'DAMAGED', pendingKey }
end

-- First pass: read everything, write nothing.
local moves = {}
for entry = 1, #ARGV - 3 do
  local requestKey, at = KEYS[2 + entry], 3 + (entry - 1)
  local request = redis.pcall('HMGET', requestKey, 'epoch', 'rank', 'seq')
  if request.err then
    return { 'DAMAGED', requestKey }
  end
  local rank, seq = tonumber(request[2] or ''), tonumber(request[3] or '')
  if request[1] == sale[3] and rank and seq and rank <= queued then
    moves[#moves + 1] = { request = ARGV[at + 1], seq = request[3] }
  end
end

local changed = 0
for _, move in ipairs(moves) do
  if inLine == '1' then
    changed = changed + redis.call('ZADD', pendingKey, 'NX', move.seq, move.request)
  else
    changed = changed + redis.call('ZREM', pendingKey, move.request)
  end
end
return { 'OK', changed }
