#!lua name=tidings_SOURCE_HASH
-- SPDX-License-Identifier: Apache-2.0
-- The library is named by a hash of this file, which cmake/embed.cmake fills in. Names of functions are global in Redis, so each
-- ends with the hash as well: libraries of several releases stand side by side. Callers write "heads_apply"; the cache
-- module completes the name.
--
-- All that ever writes heads and cursors. Every function is a merge: called twice, late or out of order it changes
-- nothing that is newer. Numbers are compared as doubles (all are below 2^53) and kept as the text they came as.
--
-- channel-latest:{C}  hash: seq ord, deleted ("ord:user ord:user …", at most 256) and deleted_floor, the highest ord that
--                     is deleted and no longer in the list. Without seq the head is unknown, and `least` the highest seq
--                     that was heard of since: what was read from Postgres before that is not installed.
-- read_cursor:{U}     hash: channel → "epoch ts seq ord own member_seq active". `active` is 1 or 0; one that
--                     begins with ? says that nobody read the whole from Postgres yet: the rest are lower bounds, left
--                     by events, that hold for what is installed later.
-- thread-read:{U}:C:ts  text: the user's cursor in a thread. It goes by itself when it was not written for long.
-- No key, no field, or a ? means unknown, never zero: readers ask Postgres then, and install what it says. So is what is in no form
-- known here: a later release may have written it (docs/compatibility.md). It makes no function fail.

local DELETED_MAX = 256

-- {user by ord}, and the ords in order, of a packed list and further pairs (from args[first] on); nothing when the list is in no
-- form known here.
local function deleted_merge(packed, floor, args, first)
    local users, ords = {}, {}
    local function add(ord, user)
        if not users[ord] and ord > floor then
            users[ord] = user
            ords[#ords + 1] = ord
        end
    end
    for word in string.gmatch(packed, '%S+') do
        local ord, user = string.match(word, '^(%d+):(%w*)$')
        if not ord then
            return nil
        end
        add(tonumber(ord), user)
    end
    for i = first, #args - 1, 2 do
        add(tonumber(args[i]), args[i + 1])
    end
    table.sort(ords)
    return users, ords
end

-- Writes the list with the pairs of args[first…] added; the lowest go when it is full, and raise the floor. False, and nothing is
-- written, where what is there is in no form known here.
local function deleted_add(key, packed, floor, args, first)
    local lowest = tonumber(floor)
    if not packed or not lowest then
        return false
    end
    local users, ords = deleted_merge(packed, lowest, args, first)
    if not users then
        return false
    end
    local words = {}
    for i = math.max(1, #ords - DELETED_MAX + 1), #ords do
        words[#words + 1] = string.format('%.0f:%s', ords[i], users[ords[i]])
    end
    if #ords > DELETED_MAX then
        floor = string.format('%.0f', ords[#ords - DELETED_MAX])
    end
    redis.call('HSET', key, 'deleted', table.concat(words, ' '), 'deleted_floor', floor)
    return true
end

-- Keeps of a head that is unknown that `seq` was heard of.
local function least_raise(key, seq)
    if tonumber(seq) > (tonumber(redis.call('HGET', key, 'least')) or 0) then
        redis.call('HSET', key, 'least', seq)
    end
end

-- Of the head nothing is known any more but that `seq` was heard of.
local function head_forget(key, seq)
    redis.call('DEL', key)
    least_raise(key, seq)
end

-- The events first_seq … last_seq, which end with this head. 1: applied; 0: nothing to do, or unknown; -1: events before
-- them are missing, so the head becomes unknown.
local function head_apply(key, first_seq, last_seq, ord)
    local seq = tonumber(redis.call('HGET', key, 'seq'))
    if not seq then
        least_raise(key, last_seq)
        return 0
    end
    if seq >= tonumber(last_seq) then
        return 0
    end
    if seq < tonumber(first_seq) - 1 then
        head_forget(key, last_seq)
        return -1
    end
    redis.call('HSET', key, 'seq', last_seq, 'ord', ord)
    return 1
end

-- KEYS channel-latest:{C}…; first_seq last_seq ord, of each
-- Heads of channels in which nothing was deleted.
local function heads_apply(keys, args)
    for i, key in ipairs(keys) do
        head_apply(key, args[3 * i - 2], args[3 * i - 1], args[3 * i])
    end
    return #keys
end

-- KEYS channel-latest:{C}; first_seq last_seq ord {deleted_ord deleted_user}…
-- As head_apply, with what was deleted. What cannot be added to a list makes the head unknown, too.
local function channel_apply(keys, args)
    local key = keys[1]
    local applied = head_apply(key, args[1], args[2], args[3])
    if applied == 1 and args[4] then
        local known = redis.call('HMGET', key, 'deleted', 'deleted_floor')
        if not deleted_add(key, known[1], known[2], args, 4) then
            head_forget(key, args[2])
            return -1
        end
    end
    return applied
end

-- KEYS channel-latest:{C}; seq ord deleted_floor deleted (packed)
-- All that Postgres knew at `seq`. 1: installed; 0: a newer state is there, or was heard of.
local function channel_install(keys, args)
    local key = keys[1]
    local newest = redis.call('HMGET', key, 'seq', 'least')
    if (tonumber(newest[1]) or tonumber(newest[2]) or 0) > tonumber(args[1]) then
        return 0
    end
    redis.call('DEL', key)
    redis.call('HSET', key, 'seq', args[1], 'ord', args[2])
    deleted_add(key, args[4] or '', args[3], {}, 1)
    return 1
end

-- Places in a packed member; what a later release adds follows them, and stays.
local EPOCH, TS, OWN, MEMBER_SEQ, ACTIVE = 1, 2, 5, 6, 7
local MEMBER = '^%d+ %d+ %d+ %-?%d+ %-?%d+ %d+ %??[01] '

-- Nothing, when it is in no form known here.
local function member_unpack(packed)
    if not packed or not string.find(packed .. ' ', MEMBER) then
        return nil
    end
    local member = {}
    for word in string.gmatch(packed, '%S+') do
        member[#member + 1] = word
    end
    return member
end

local function is_above(a, b)
    return tonumber(a) > tonumber(b)
end

-- Brings `old` up to `new`: each part by what orders it.
local function member_merge(old, new)
    local epoch, known_epoch = tonumber(new[EPOCH]), tonumber(old[EPOCH])
    if epoch > known_epoch or (epoch == known_epoch and is_above(new[TS], old[TS])) then
        for part = EPOCH, OWN do
            old[part] = new[part]
        end
    end
    if not is_above(old[MEMBER_SEQ], new[MEMBER_SEQ]) then
        old[MEMBER_SEQ] = new[MEMBER_SEQ]
        old[ACTIVE] = new[ACTIVE]
    end
    return old
end

-- Merges a member (args[first…]: C epoch ts seq ord own member_seq active) into the key, and returns it. Not `known`: what was unknown
-- stays so, with this as a lower bound.
local function member_put(key, args, first, known)
    local channel = args[first]
    local old = member_unpack(redis.call('HGET', key, channel))
    local member = {unpack(args, first + 1, first + ACTIVE)}
    if old then
        local active = string.gsub(old[ACTIVE], '^?', '')
        known = known or active == old[ACTIVE]
        old[ACTIVE] = active
        member = member_merge(old, member)
    end
    if not known then
        member[ACTIVE] = '?' .. member[ACTIVE]
    end
    local packed = table.concat(member, ' ')
    redis.call('HSET', key, channel, packed)
    return packed
end

-- KEYS read_cursor:{U}; C epoch ts seq ord own member_seq active [0]
-- The whole state of a member, just read from Postgres: what was unknown is known after it. With the 0 it comes with an
-- event, which may be old: it is merged into what is known; of what is unknown it is kept as a lower bound, so that
-- whoever installs a state read before that event does not undo it. Returns the merged member.
local function member_apply(keys, args)
    return member_put(keys[1], args, 1, args[9] ~= '0')
end

-- KEYS read_cursor:{U}…; C epoch ts seq ord own member_seq active, of each
-- member_apply of whole states.
local function members_apply(keys, args)
    for i, key in ipairs(keys) do
        member_put(key, args, 8 * i - 7, true)
    end
    return #keys
end

-- KEYS thread-read:{U}:C:ts; ts seconds
-- A cursor in a thread, for so many seconds. 1: it is the furthest; 0: a later one is there.
local function thread_apply(keys, args)
    if (tonumber(redis.call('GET', keys[1])) or 0) > tonumber(args[1]) then
        return 0
    end
    redis.call('SET', keys[1], args[1], 'EX', args[2])
    return 1
end

-- Until when a device is connected, and how often. More may follow after a colon. Of a form that is not known here its gateway alone
-- knows when it ends: it counts as one connection, for as long as the key lives.
local function device_read(text)
    local ends, count = string.match(text, '^(%d+):(%d+)%f[:%z]')
    return tonumber(ends), tonumber(count) or 1
end

-- KEYS session:{U}:device presence:{U}; op device connections ttl_s manual
-- What devices (gateways) of a user are connected, each for ttl_s from its last word, and what is shown for it. op: on, off,
-- look, manual. manual: 1 or 0 as Postgres has it; used for what is unknown here, and by `manual`. Returns whether active,
-- manually away, connections, and whether what is shown changed. A choice made without a connection is kept, too: one may be on
-- its way with what Postgres had before.
local function presence_apply(keys, args)
    local op, device, ttl = args[1], args[2], tonumber(args[4])
    local now = tonumber(redis.call('TIME')[1])
    if op == 'on' then
        redis.call('HSET', keys[1], device, (now + ttl) .. ':' .. args[3])
        redis.call('EXPIRE', keys[1], ttl)
    elseif op == 'off' then
        redis.call('HDEL', keys[1], device)
    end
    local connections = 0
    local devices = redis.call('HGETALL', keys[1])
    for i = 1, #devices, 2 do
        local ends, count = device_read(devices[i + 1])
        if ends and ends <= now then
            redis.call('HDEL', keys[1], devices[i])
        else
            connections = connections + count
        end
    end
    local manual = op ~= 'manual' and redis.call('HGET', keys[2], 'manual')
    if manual ~= '0' and manual ~= '1' then
        manual = args[5]
    end
    local before = redis.call('HGET', keys[2], 'shown') or 'away'
    local shown = connections > 0 and manual == '0' and 'active' or 'away'
    if op == 'manual' or connections > 0 and op ~= 'look' then
        redis.call('HSET', keys[2], 'shown', shown, 'manual', manual)
        redis.call('EXPIRE', keys[2], ttl)
    elseif op == 'off' then
        redis.call('DEL', keys[2])
    elseif connections == 0 then
        redis.call('HDEL', keys[2], 'shown')
    end
    return {shown == 'active' and 1 or 0, manual == '1' and 1 or 0, connections, shown ~= before and 1 or 0}
end

-- The strategies that count in Redis. Per channel:
--
-- channel-walk:{C}     hash: gen (of the channel's row), seq of the last event that all counts have, `walking` (seq as well, unless
--                      somebody walks the members now: then that of the event they bring), walker, next (the chunk that comes next)
--                      and build, a number never used before. A member's count says of which build it is: a new one makes all
--                      of the channel's counts unknown at once.
-- channel:members:{C}  set of the members' ids, or, from 10,000 on, sets channel:members:{C}:shard:N by member number (each with a
--                      "!": one without is not whole, and makes the list missing) and in this one "*<how many>". With a "?" it is not complete. Who is counted is in it, or it is not complete.
-- channel:{C}:read     bitmap: a bit a member number; 1 says that nothing was unread at `seq`, 0 nothing.
-- unread:{U}:C         of a counter: hash n, b (build), v (single_version), e and ts (cursor); of a zset: ts → seq of unread messages,
--                      below it b, v and f with negative scores: build, single_version, and the ts after which it is complete.

local SHARD_SIZE, SHARDED_FROM, SHARDS_MAX = 5000, 10000, 200000

local function walk_reset(key, gen, seq)
    local time = redis.call('TIME')
    local build = time[1] * 1000000 + time[2]
    build = math.max(build, (tonumber(redis.call('HGET', key, 'build')) or 0) + 1)
    build = string.format('%.0f', build)
    redis.call('HSET', key, 'gen', gen, 'build', build, 'seq', seq, 'walking', seq, 'next', '0')
    return build
end

-- KEYS channel-walk:{C} channel:{C}:read; gen first_seq last_seq walker walks (0 or 1) unreads (0 or 1) patient (0 or 1)
-- Begins to bring the events first_seq … last_seq to the members' counts: answers the build that is to be walked; '' when nobody
-- needs to be walked. After a hole, while another walks, or of another generation, nothing is known any more; who is patient is
-- told 'later' where what is missing may come from another instance.
local function walk_begin(keys, args)
    local known = redis.call('HMGET', keys[1], 'gen', 'seq', 'walking', 'walker', 'build')
    local gen, first, last = tonumber(args[1]), tonumber(args[2]), tonumber(args[3])
    local known_gen, seq = tonumber(known[1]) or -1, tonumber(known[2]) or -1
    if known_gen >= gen and seq >= last then
        return ''
    end
    if args[6] == '1' then
        redis.call('DEL', keys[2])
    end
    if args[7] == '1' and known_gen == gen and (seq < first - 1 or known[3] ~= known[2]) then
        return 'later'
    end
    if known_gen ~= gen or seq ~= first - 1 or known[3] ~= known[2] then
        redis.call('DEL', keys[2])
        walk_reset(keys[1], string.format('%.0f', math.max(gen, known_gen)), args[3])
        return ''
    end
    if args[5] == '0' then
        redis.call('HSET', keys[1], 'seq', args[3], 'walking', args[3])
        return ''
    end
    redis.call('HSET', keys[1], 'walking', args[3], 'walker', args[4], 'next', '0')
    return known[5]
end

-- KEYS channel-walk:{C}; gen last_seq: what was counted before last_seq is unknown.
local function walk_forget(keys, args)
    local known = redis.call('HMGET', keys[1], 'gen', 'seq')
    if (tonumber(known[1]) or -1) <= tonumber(args[1]) and (tonumber(known[2]) or -1) < tonumber(args[2]) then
        walk_reset(keys[1], args[1], args[2])
    end
    return 0
end

-- Whether the walk that begins args (build last_seq walker chunk) goes on, and this is its next chunk.
local function chunk_begin(key, args)
    local known = redis.call('HMGET', key, 'build', 'walking', 'walker', 'next')
    for i = 1, 4 do
        if known[i] ~= args[i] then
            return false
        end
    end
    redis.call('HINCRBY', key, 'next', 1)
    return true
end

-- KEYS channel-walk:{C}; build last_seq walker chunks: all chunks were walked.
local function walk_end(keys, args)
    if chunk_begin(keys[1], args) then
        redis.call('HSET', keys[1], 'seq', args[2])
        return 1
    end
    return 0
end

-- What is of another type is a leaving of another strategy.
local function command(name, key, ...)
    local answer = redis.pcall(name, key, ...)
    if type(answer) == 'table' and answer.err then
        redis.call('DEL', key)
    end
end

-- KEYS channel-walk:{C} unread:{U}:C …; build last_seq walker chunk posts [own_key own_posts]…
-- So many posts more for each of the members, but for their own.
local function counter_walk(keys, args)
    if not chunk_begin(keys[1], args) then
        return 0
    end
    for i = 2, #keys do
        command('HINCRBY', keys[i], 'n', args[5])
    end
    for i = 6, #args - 1, 2 do
        redis.call('HINCRBY', keys[tonumber(args[i])], 'n', '-' .. args[i + 1])
    end
    return 1
end

-- Scores of what is no message lie below zero.
local function zset_negative(number)
    return string.format('%.0f', -1 - number)
end

local function zset_number(key, name)
    local score = redis.pcall('ZSCORE', key, name)
    return type(score) == 'string' and -1 - tonumber(score)
end

-- Keeps the newest `keep` messages.
local function zset_trim(key, keep)
    local many = redis.pcall('ZCOUNT', key, '0', '+inf')
    if type(many) ~= 'number' or many <= keep then
        return
    end
    local last = redis.call('ZRANGEBYSCORE', key, '0', '+inf', 'WITHSCORES', 'LIMIT', many - keep - 1, 1)[2]
    redis.call('ZREMRANGEBYSCORE', key, '0', last)
    redis.call('ZADD', key, 'LT', zset_negative(last), 'f')
end

-- KEYS channel-walk:{C} unread:{U}:C …; build last_seq walker chunk keep posts [ts seq]… deletes [ts]… [own_key own_ts]…
-- `keep`: how many messages are kept before these are added, 0: all.
local function zset_walk(keys, args)
    if not chunk_begin(keys[1], args) then
        return 0
    end
    local keep, posts = tonumber(args[5]), tonumber(args[6])
    local first_delete = 8 + 2 * posts
    local deletes = tonumber(args[first_delete - 1])
    local added = {unpack(args, 7, 6 + 2 * posts)}
    for i = 2, #keys do
        if keep > 0 then
            zset_trim(keys[i], keep)
        end
        if posts > 0 then
            command('ZADD', keys[i], unpack(added))
        end
        for d = first_delete, first_delete + deletes - 1 do
            command('ZREMRANGEBYSCORE', keys[i], args[d], args[d])
        end
    end
    for i = first_delete + deletes, #args - 1, 2 do
        command('ZREMRANGEBYSCORE', keys[tonumber(args[i])], args[i + 1], args[i + 1])
    end
    return 1
end

-- The build, when all events up to just `seq` of this generation are counted and nobody walks.
local function walk_at(key, gen, seq)
    local known = redis.call('HMGET', key, 'gen', 'seq', 'walking', 'build')
    if known[1] == gen and known[2] == seq and known[3] == seq then
        return known[4]
    end
end

-- The same for who knows, from Postgres, all about a member at `seq`: where nothing, or only something of a lower generation is
-- there, it begins with what they know.
local function walk_open(keys, gen, seq)
    local known = redis.call('HMGET', keys[1], 'gen', 'seq')
    local known_gen, known_seq = tonumber(known[1]), tonumber(known[2])
    if not known_gen or not known_seq or (known_gen < tonumber(gen) and known_seq <= tonumber(seq)) then
        return walk_reset(keys[1], gen, seq)
    end
    return walk_at(keys[1], gen, seq)
end

-- Nothing, when it is in no form known here, or says more than a billion members need.
local function members_shards(key)
    if redis.call('SCARD', key) > 2 then
        return nil
    end
    for _, member in ipairs(redis.call('SMEMBERS', key)) do
        local shards = tonumber(string.match(member, '^%*(%d+)$'))
        if shards and shards <= SHARDS_MAX then
            return shards
        end
    end
end

local function shard_key(key, shard)
    return string.format('%s:shard:%d', key, shard)
end

local function members_shard(key, number)
    return shard_key(key, math.floor(tonumber(number) / SHARD_SIZE))
end

-- A list that is not there stays so: whoever builds it reads of this member.
local function members_add(key, user, number)
    if redis.call('EXISTS', key) == 0 then
        return
    end
    local shards = members_shards(key)
    if not shards and redis.call('SCARD', key) > SHARDED_FROM then
        redis.call('DEL', key) -- to be built anew, in shards
    elseif not shards then
        redis.call('SADD', key, user)
    else
        local needed = math.floor(tonumber(number) / SHARD_SIZE) + 1
        if needed > shards then
            redis.call('SREM', key, '*' .. shards)
            redis.call('SADD', key, '*' .. needed)
            redis.call('SADD', members_shard(key, number), '!')
        end
        redis.call('SADD', members_shard(key, number), user)
    end
end

-- Takes a member out of every shard: the number by which they came may be another's by now. Who is in two is counted twice.
local function shards_remove(key, user)
    for shard = 0, (members_shards(key) or 0) - 1 do
        redis.call('SREM', shard_key(key, shard), user)
    end
end

-- KEYS channel:members:{C} unread:{U}:C; user number joins (0 or 1)
-- Who is taken out is counted no longer, whatever comes late.
local function members_change(keys, args)
    shards_remove(keys[1], args[1])
    if args[3] == '1' then
        members_add(keys[1], args[1], args[2])
        return 1
    end
    redis.call('DEL', keys[2])
    redis.call('SREM', keys[1], args[1])
    return 0
end

-- KEYS channel-walk:{C} channel:members:{C} unread:{U}:C; gen seq user number …
-- Begins to keep a member's state of just `seq`, of which nothing is there then: the build, or nil where it may not be kept.
local function member_open(keys, args)
    local build = walk_open(keys, args[1], args[2])
    if build then
        members_add(keys[2], args[3], args[4])
        redis.call('DEL', keys[3])
    end
    return build
end

-- KEYS channel-walk:{C} channel:members:{C} unread:{U}:C; gen seq user number n version epoch ts
local function counter_install(keys, args)
    local build = member_open(keys, args)
    if not build then
        return 0
    end
    redis.call('HSET', keys[3], 'n', args[5], 'b', build, 'v', args[6], 'e', args[7], 'ts', args[8])
    return 1
end

-- KEYS channel-walk:{C} channel:members:{C} unread:{U}:C; gen seq user number version epoch ts: the count, -1: unknown.
local function counter_read(keys, args)
    local build = walk_at(keys[1], args[1], args[2])
    local known = redis.pcall('HMGET', keys[3], 'b', 'v', 'e', 'ts', 'n')
    if not build or known.err or known[1] ~= build or known[2] ~= args[5] or known[3] ~= args[6] or known[4] ~= args[7] then
        return -1
    end
    return tonumber(known[5]) or -1
end

-- KEYS as above; gen seq user number version floor [ts seq]…: all messages that are unread after ts `floor`.
local function zset_install(keys, args)
    local build = member_open(keys, args)
    if not build then
        return 0
    end
    redis.call('ZADD', keys[3], zset_negative(build), 'b', zset_negative(args[5]), 'v', zset_negative(args[6]), 'f',
        unpack(args, 7))
    return 1
end

-- KEYS as above; gen seq user number version cursor_ts cap: how many are unread (more than `cap`: cap + 1), -1: unknown.
local function zset_read(keys, args)
    local build = walk_at(keys[1], args[1], args[2])
    if not build or zset_number(keys[3], 'b') ~= tonumber(build) or zset_number(keys[3], 'v') ~= tonumber(args[5]) then
        return -1
    end
    local many = redis.call('ZCOUNT', keys[3], '(' .. args[6], '+inf')
    if many > tonumber(args[7]) then
        return tonumber(args[7]) + 1
    end
    local floor = zset_number(keys[3], 'f')
    return floor and floor <= tonumber(args[6]) and many or -1
end

-- KEYS as above; gen seq user number version cursor_ts [ts]…: the cursor has moved; the messages given were read one by one, with
-- which `version` rose by one.
local function zset_mark(keys, args)
    if not zset_number(keys[3], 'b') then
        return 0
    end
    redis.call('ZREMRANGEBYSCORE', keys[3], '0', args[6])
    redis.call('ZADD', keys[3], 'LT', zset_negative(args[6]), 'f')
    if #args > 6 and walk_at(keys[1], args[1], args[2]) and zset_number(keys[3], 'v') == tonumber(args[5]) - 1 then
        for i = 7, #args do
            redis.call('ZREMRANGEBYSCORE', keys[3], args[i], args[i])
        end
        redis.call('ZADD', keys[3], zset_negative(args[5]), 'v')
    end
    return 1
end

-- SETBIT would double what it makes longer, and most of that would stay empty.
local function bit_set(key, number)
    local bytes, known = math.floor(number / 8) + 1, redis.call('STRLEN', key)
    if bytes > known then
        local longer = bytes + math.floor(bytes / 64)
        redis.call('SET', key, (redis.call('GET', key) or '') .. string.rep('\0', longer - known))
    end
    redis.call('SETBIT', key, number, '1')
end

-- KEYS channel-walk:{C} channel:members:{C} channel:{C}:read; gen seq user number: nothing is unread.
local function bitmap_install(keys, args)
    local before = redis.call('HGET', keys[1], 'build')
    local build = walk_open(keys, args[1], args[2])
    if not build then
        return 0
    end
    if build ~= before then
        redis.call('DEL', keys[3])
    end
    bit_set(keys[3], tonumber(args[4]))
    return 1
end

-- KEYS as above; gen seq user number: 0: nothing is unread; -1: unknown.
local function bitmap_read(keys, args)
    if walk_at(keys[1], args[1], args[2]) and redis.call('GETBIT', keys[3], args[4]) == 1 then
        return 0
    end
    return -1
end

-- KEYS channel:members:{C}; shards (0: one set): begins to fill a list that is not complete. 0: it is.
local function members_open(keys, args)
    if redis.call('EXISTS', keys[1]) == 1 and redis.call('SISMEMBER', keys[1], '?') == 0 then
        return 0
    end
    if redis.call('EXISTS', keys[1]) == 0 then
        for shard = 0, tonumber(args[1]) - 1 do -- of an earlier list: nobody kept them
            redis.call('UNLINK', shard_key(keys[1], shard))
        end
    end
    redis.call('SADD', keys[1], '?')
    if args[1] ~= '0' and not members_shards(keys[1]) then
        redis.call('DEL', keys[1])
        redis.call('SADD', keys[1], '?', '*' .. args[1])
    end
    return 1
end

-- KEYS channel:members:{C}; members: ends the filling of a list with so many. What was evicted or wiped meanwhile is not whole, and goes.
local function members_close(keys, args)
    local shards, many = members_shards(keys[1]), 0
    for shard = 0, (shards or 0) - 1 do
        many = many + redis.call('SCARD', shard_key(keys[1], shard)) - 1 -- without its "!"
    end
    redis.call('SREM', keys[1], '?') -- or it is closed: somebody else has filled it at the same time
    if (shards and many or redis.call('SCARD', keys[1])) < tonumber(args[1]) then
        redis.call('DEL', keys[1])
    end
    return 0
end

-- KEYS rate:{S}:name; microseconds
-- The calls let through for a subject last so much longer: text, the microsecond until which they last. It goes by itself then.
-- A debt is paid within ten minutes, and so is what a clock that went back would make of it. Returns how long they last from now.
local LASTS_MAX = 600000000

local function limit_take(keys, args)
    local time = redis.call('TIME')
    local now = tonumber(time[1]) * 1000000 + tonumber(time[2])
    local known = tonumber(string.match(redis.call('GET', keys[1]) or '', '^%d+$')) or 0
    local lasts = math.min(math.max(known - now, 0) + tonumber(args[1]), LASTS_MAX)
    local expires = string.format('%.0f', math.max(math.ceil(lasts / 1000), 1))
    redis.call('SET', keys[1], string.format('%.0f', now + lasts), 'PX', expires)
    return lasts
end

local function register(name, fn)
    redis.register_function(name .. '_SOURCE_HASH', fn)
end

register('heads_apply', heads_apply)
register('channel_apply', channel_apply)
register('channel_install', channel_install)
register('member_apply', member_apply)
register('members_apply', members_apply)
register('thread_apply', thread_apply)
register('walk_begin', walk_begin)
register('walk_forget', walk_forget)
register('walk_end', walk_end)
register('counter_walk', counter_walk)
register('zset_walk', zset_walk)
register('members_change', members_change)
register('members_open', members_open)
register('members_close', members_close)
register('counter_install', counter_install)
register('counter_read', counter_read)
register('zset_install', zset_install)
register('zset_read', zset_read)
register('zset_mark', zset_mark)
register('bitmap_install', bitmap_install)
register('bitmap_read', bitmap_read)
register('presence_apply', presence_apply)
register('limit_take', limit_take)
