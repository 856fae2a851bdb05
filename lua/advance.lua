-- Carries requests of one sale forward to what the database has decided, and gives units back where that is due.
-- Only a higher rank changes anything, so repeats and late arrivals do nothing; what changed is published from inside, with
-- the items that were sold out and have units again: nobody can be accepted for one before that was published.
--
-- KEYS[1] sale      hash
-- KEYS[2] stock     hash
-- KEYS[3] holders   hash
-- KEYS[4] pending   zset
-- KEYS[5..] request hashes, one an entry of ARGV
-- ARGV[1] runId     the server's run_id as the connection learnt it
-- ARGV[2] channel   where changes are published
-- ARGV[3..] eight an entry: requestId, stage, rank, reason (or ''), units (to give back), epoch (of the event),
--           decided ('1' if the request is decided by it), endsHold ('1' if it ends the buyer's hold)
--
-- NOT_LOADED    no sale, or another server's: nothing was changed
-- DAMAGED, key  a key or value is not what it must be: nothing was changed
-- OK, results   a word an entry, in their order:
-- APPLIED    the request moved forward
-- STALE      it was there already, or further on
-- ABSORBED   the event is older than the loading of the sale, which has taken it in
-- LATER      the sale is being loaded, or the event belongs to a newer loading: try again
-- UNKNOWN    the sale is ready but has no such request: it must be loaded again

local saleKey, stockKey, holdersKey, pendingKey = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local runId, channel = ARGV[1], ARGV[2]
local FIELDS = 8

-- A plain non-negative integer, exactly as Redis writes it: what HINCRBY takes, and Lua holds exactly.
local function integer(text)
  if type(text) ~= 'string' or #text > 16 or not (text == '0' or string.find(text, '^[1-9]%d*$')) then
    return nil
  end
  local number = tonumber(text)
  return number < 2 ^ 53 and number or nil
end

local function hasType(key, expected)
  local found = redis.call('TYPE', key)['ok']
  return found == 'none' or found == expected
end

local sale = redis.pcall('HMGET', saleKey, 'phase', 'runId', 'epoch', 'seq')
if sale.err then
  return { 'DAMAGED', saleKey }
end
local phase, epoch = sale[1], integer(sale[3])
if not phase or sale[2] ~= runId then
  return { 'NOT_LOADED' }
end
if not epoch or not integer(sale[4]) then
  return { 'DAMAGED', saleKey }
end
for key, expected in pairs({ [stockKey] = 'hash', [holdersKey] = 'hash', [pendingKey] = 'zset' }) do
  if not hasType(key, expected) then
    return { 'DAMAGED', key }
  end
end

-- First pass: read everything, decide each entry, write nothing.
local results, plans, stock = {}, {}, {}
local ranks = {}
for entry = 1, (#ARGV - 2) / FIELDS do
  local at = 2 + (entry - 1) * FIELDS
  local requestKey = KEYS[4 + entry]
  local rank, units, eventEpoch = tonumber(ARGV[at + 3]), tonumber(ARGV[at + 5]), tonumber(ARGV[at + 6])
  local result
  if phase ~= 'READY' or eventEpoch > epoch then
    result = 'LATER'
  elseif units > 0 and eventEpoch < epoch then
    -- The load counted these units, and read the stage that comes with them.
    result = 'ABSORBED'
  end
  if not result then
    local request = redis.pcall('HMGET', requestKey, 'epoch', 'rank', 'item', 'buyer')
    if request.err then
      return { 'DAMAGED', requestKey }
    end
    local present = ranks[requestKey] or integer(request[2])
    if request[1] ~= sale[3] or not present then
      result = 'UNKNOWN'
    elseif rank <= present then
      result = 'STALE'
    else
      local item, buyer = request[3], request[4]
      if not item or not buyer then
        return { 'DAMAGED', requestKey }
      end
      if units > 0 and stock[item] == nil then
        stock[item] = integer(redis.call('HGET', stockKey, item))
        if not stock[item] then
          return { 'DAMAGED', stockKey }
        end
        if not integer(redis.call('HGET', saleKey, 'g:' .. item)) then
          return { 'DAMAGED', saleKey }
        end
      end
      result = 'APPLIED'
      ranks[requestKey] = rank
      plans[#plans + 1] = { at = at, key = requestKey, item = item, buyer = buyer, units = units }
    end
  end
  results[entry] = result
end

-- Second pass: only writes.
local changed, restocked = {}, {}
for _, plan in ipairs(plans) do
  local at, key = plan.at, plan.key
  local requestId, stage, rank, reason = ARGV[at + 1], ARGV[at + 2], ARGV[at + 3], ARGV[at + 4]
  redis.call('HSET', key, 'stage', stage, 'rank', rank)
  if reason ~= '' then
    redis.call('HSET', key, 'reason', reason)
  end
  if ARGV[at + 7] == '1' then
    redis.call('ZREM', pendingKey, requestId)
  end
  if ARGV[at + 8] == '1' and redis.call('HGET', holdersKey, plan.buyer) == requestId then
    redis.call('HDEL', holdersKey, plan.buyer)
  end
  if plan.units > 0 then
    if stock[plan.item] == 0 then
      redis.call('HINCRBY', saleKey, 'g:' .. plan.item, 1)
      restocked[#restocked + 1] = plan.item
    end
    stock[plan.item] = redis.call('HINCRBY', stockKey, plan.item, plan.units)
  end
  changed[#changed + 1] = { requestId, tonumber(rank) }
end
if #changed > 0 then
  local seq = redis.call('HINCRBY', saleKey, 'seq', #changed)
  -- Not through cjson, which keeps fourteen digits of a number.
  local json = '{"kind":"requests","seq":%d,"requests":%s%s}'
  local more = #restocked > 0 and ',"restocked":' .. cjson.encode(restocked) or ''
  redis.call('PUBLISH', channel, string.format(json, seq, cjson.encode(changed), more))
end
return { 'OK', results }
