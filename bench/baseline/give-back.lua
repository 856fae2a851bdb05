-- Gives the units of a claim back that can't become an order. Safe to send again: only who still holds the claim has units.
--
-- KEYS[1] stock   hash: itemId -> remaining units
-- KEYS[2] claims  hash: buyerId -> the buyer's claim
-- ARGV[1] buyerId
-- ARGV[2] claim   requestId, itemId and quantity with spaces between them
-- ARGV[3] itemId
-- ARGV[4] quantity
--
-- GIVEN_BACK
-- NOT_HELD

if redis.call('HGET', KEYS[2], ARGV[1]) ~= ARGV[2] then
  return { 'NOT_HELD' }
end
redis.call('HDEL', KEYS[2], ARGV[1])
redis.call('HINCRBY', KEYS[1], ARGV[3], ARGV[4])
return { 'GIVEN_BACK' }
