#!lua name=tidings_v1
-- SPDX-License-Identifier: Apache-2.0
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
-- No key, no field, or a ? means unknown, never zero: readers ask Postgres then, and install what it says.

local DELETED_MAX = 256

-- {user by ord}, and the ords in order, of a packed list and further pairs (from args[first] on).
local function deleted_merge(packed, floor, args, first)
    local users, ords = {}, {}
    local function add(ord, user)
        if not users[ord] and ord > floor then
            users[ord] = user
            ords[#ords + 1] = ord
        end
    end
    for ord, user in string.gmatch(packed, '(%d+):(%S*)') do
        add(tonumber(ord), user)
    end
    for i = first, #args - 1, 2 do
        add(tonumber(args[i]), args[i + 1])
    end
    table.sort(ords)
    return users, ords
end

-- Writes the list with the pairs of args[first…] added; the lowest go when it is full, and raise the floor.
local function deleted_add(key, packed, floor, args, first)
    local users, ords = deleted_merge(packed, tonumber(floor), args, first)
    local words = {}
    for i = math.max(1, #ords - DELETED_MAX + 1), #ords do
        words[#words + 1] = string.format('%.0f:%s', ords[i], users[ords[i]])
    end
    if #ords > DELETED_MAX then
        floor = string.format('%.0f', ords[#ords - DELETED_MAX])
    end
    redis.call('HSET', key, 'deleted', table.concat(words, ' '), 'deleted_floor', floor)
end

-- Keeps of a head that is unknown that `seq` was heard of.
local function least_raise(key, seq)
    if tonumber(seq) > tonumber(redis.call('HGET', key, 'least') or 0) then
        redis.call('HSET', key, 'least', seq)
    end
end

-- KEYS channel-latest:{C}; first_seq last_seq ord [deleted_ord deleted_user]…
-- The events first_seq … last_seq, which end with this head. 1: applied; 0: nothing to do, or unknown; -1: events before
-- them are missing, so the head becomes unknown.
local function channel_apply(keys, args)
    local key = keys[1]
    local seq = redis.call('HGET', key, 'seq')
    if not seq then
        least_raise(key, args[2])
        return 0
    end
    if tonumber(seq) >= tonumber(args[2]) then
        return 0
    end
    if tonumber(seq) < tonumber(args[1]) - 1 then
        redis.call('DEL', key)
        least_raise(key, args[2])
        return -1
    end
    redis.call('HSET', key, 'seq', args[2], 'ord', args[3])
    if args[4] then
        local known = redis.call('HMGET', key, 'deleted', 'deleted_floor')
        deleted_add(key, known[1] or '', known[2] or '0', args, 4)
    end
    return 1
end

-- KEYS channel-latest:{C}; seq ord deleted_floor deleted (packed)
-- All that Postgres knew at `seq`. 1: installed; 0: a newer state is there, or was heard of.
local function channel_install(keys, args)
    local key = keys[1]
    local newest = redis.call('HMGET', key, 'seq', 'least')
    if tonumber(newest[1] or newest[2] or 0) > tonumber(args[1]) then
        return 0
    end
    redis.call('DEL', key)
    redis.call('HSET', key, 'seq', args[1], 'ord', args[2])
    deleted_add(key, args[4] or '', args[3], {}, 1)
    return 1
end

-- Places in a packed member.
local EPOCH, TS, OWN, MEMBER_SEQ, ACTIVE = 1, 2, 5, 6, 7

local function member_unpack(packed)
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

-- KEYS read_cursor:{U}; C epoch ts seq ord own member_seq active [0]
-- The whole state of a member, just read from Postgres: what was unknown is known after it. With the 0 it comes with an
-- event, which may be old: it is merged into what is known; of what is unknown it is kept as a lower bound, so that
-- whoever installs a state read before that event does not undo it. Returns the merged member.
local function member_apply(keys, args)
    local packed = redis.call('HGET', keys[1], args[1])
    local member = {unpack(args, 2, 8)}
    local known = args[9] ~= '0'
    if packed then
        local old = member_unpack(packed)
        local active = string.gsub(old[ACTIVE], '^?', '')
        known = known or active == old[ACTIVE]
        old[ACTIVE] = active
        member = member_merge(old, member)
    end
    if not known then
        member[ACTIVE] = '?' .. member[ACTIVE]
    end
    packed = table.concat(member, ' ')
    redis.call('HSET', keys[1], args[1], packed)
    return packed
end

-- KEYS thread-read:{U}:C:ts; ts seconds
-- A cursor in a thread, for so many seconds. 1: it is the furthest; 0: a later one is there.
local function thread_apply(keys, args)
    local known = redis.call('GET', keys[1])
    if known and is_above(known, args[1]) then
        return 0
    end
    redis.call('SET', keys[1], args[1], 'EX', args[2])
    return 1
end

-- KEYS session:{U}:device presence:{U}; op device connections ttl_s manual
-- What devices (gateways) of a user are connected, each for ttl_s from its last word, and what is shown for it. op: on, off,
-- look, manual. manual: 1 or 0 as Postgres has it; used for what is unknown here, and by `manual`. Returns whether active,
-- manually away, connections, and whether what is shown changed.
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
        local ends, count = string.match(devices[i + 1], '^(%d+):(%d+)$')
        if not ends or tonumber(ends) <= now then
            redis.call('HDEL', keys[1], devices[i])
        else
            connections = connections + tonumber(count)
        end
    end
    local manual = op ~= 'manual' and redis.call('HGET', keys[2], 'manual') or args[5]
    local before = redis.call('HGET', keys[2], 'shown') or 'away'
    local shown = connections > 0 and manual == '0' and 'active' or 'away'
    if connections == 0 then
        redis.call('DEL', keys[2])
    elseif op ~= 'look' then
        redis.call('HSET', keys[2], 'shown', shown, 'manual', manual)
        redis.call('EXPIRE', keys[2], ttl)
    end
    return {shown == 'active' and 1 or 0, manual == '1' and 1 or 0, connections, shown ~= before and 1 or 0}
end

redis.register_function('presence_apply', presence_apply)
redis.register_function('channel_apply', channel_apply)
redis.register_function('channel_install', channel_install)
redis.register_function('member_apply', member_apply)
redis.register_function('thread_apply', thread_apply)
