-- Decides one request: one claim a buyer, and the stock. Safe to send again.
--
-- KEYS[1] stock   hash: itemId -> remaining units
-- KEYS[2] claims  hash: buyerId -> the buyer's claim
-- ARGV[1] buyerId
-- ARGV[2] claim   requestId, itemId and quantity with spaces between them
-- ARGV[3] itemId
-- ARGV[4] quantity
--
-- ACCEPTED
-- CLAIMED, claim          the buyer has this one already: this request's, or another's
-- SOLD_OUT
-- INSUFFICIENT
-- NOT_FILLED              Redis has no stock of this item

local held = redis.call('HGET', KEYS[2], ARGV[1])
if held then
  return { 'CLAIMED', held }
end
local stock = redis.call('HGET', KEYS[1], ARGV[3])
if not stock then
  return { 'NOT_FILLED' }
end
local remaining, quantity = tonumber(stock), tonumber(ARGV[4])
if remaining == 0 then
  return { 'SOLD_OUT' }
end
if remaining < quantity then
  return { 'INSUFFICIENT' }
end
redis.call('HINCRBY', KEYS[1], ARGV[3], -quantity)
redis.call('HSET', KEYS[2], ARGV[1], ARGV[2])
return { 'ACCEPTED' }
