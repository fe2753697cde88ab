-- Format of a token bucket without a pause or a spec: tick, at, deficit, give, capacity. A bucket with one of them, or
-- with a larger `give`, has the older format: at, deficit, give, capacity, and the extension.
--
-- The expiry of a key is set to one full refill plus GRACE, which covers the deficit of many later takes. Writing a
-- value without its expiry costs half. `tick` is the time at which the expiry was set: 128 plus that time in units of
-- 1/62 of its TTL, modulo 128. A key exists for 62 units after that time, so the tick determines it. The other 66 units
-- are for a key that migrates to a node whose clock is ahead: it keeps its TTL, and exists longer on that clock.
local BUCKET = '>BI7I7I5I7'
local BUCKET_SIZE = 27
local MAX_GIVE = 2 ^ 40
