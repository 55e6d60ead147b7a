#include "store/redis_script.h"

/* Lua 5.1, in the sandbox of Redis 6 and later: no globals. A script is atomic but is not undone when it fails. */

#define COMMON \
	"local P, call = ARGV[1], redis.call\n" \
	"local INDEX, COUNTER = P..':__index', P..':__version_counter'\n" \
	"local NAMES, SYNCED, FILES = P..':__ag2:names', P..':__ag2:synced', P..':__ag2:files'\n" \
	"local function key(path) return P..':'..path end\n" \
	"local function fmt(n) return string.format('%.0f', n) end\n" \
	"local function exists(path) return call('EXISTS', key(path)) == 1 end\n" \
	"-- Versions stay below this: the numbers of a script have gaps soon after, and INCR has an end.\n" \
	"local END = 2^52\n" \
	"-- The last version; nil when it cannot be counted on from there.\n" \
	"local function counter()\n" \
	"\tlocal text = call('GET', COUNTER)\n" \
	"\tlocal n = tonumber(text or 0)\n" \
	"\tif n and n >= 0 and n < END and fmt(n) == (text or '0') then return n end\n" \
	"end\n" \
	"-- The greatest version that a file has.\n" \
	"local function top()\n" \
	"\tlocal found = call('ZREVRANGEBYSCORE', INDEX, '('..fmt(END), '-inf', 'WITHSCORES', 'LIMIT', 0, 1)\n" \
	"\treturn math.max(0, math.floor(tonumber(found[2] or 0)))\n" \
	"end\n" \
	"-- base: the version since which the file was only appended to; version: 1 while AG2 is between its SET and its ZADD.\n" \
	"local function describe(path)\n" \
	"\tlocal score, info = call('ZSCORE', INDEX, path), call('HGET', FILES, path)\n" \
	"\tlocal version = math.max(1, math.floor(math.min(tonumber(score or 1), END)))\n" \
	"\tlocal base, last, mtime = string.match(info or '', '^(%d+) (%d+) (%S+)$')\n" \
	"\tif score and tonumber(last) == version then return version, tonumber(base), mtime end\n" \
	"\treturn version, version, '-1'\n" \
	"end\n" \
	"local function all_names()\n" \
	"\tlocal n = call('ZCARD', INDEX)\n" \
	"\treturn call('ZCARD', NAMES) == n and call('ZCOUNT', NAMES, 0, 0) == n\n" \
	"end\n" \
	"local function in_step()\n" \
	"\treturn call('GET', SYNCED) == call('GET', COUNTER) and all_names()\n" \
	"end\n" \
	"local function add_names(list)\n" \
	"\tfor i = 1, #list, 1000 do\n" \
	"\t\tlocal args = {}\n" \
	"\t\tfor k = i, math.min(i + 999, #list) do\n" \
	"\t\t\targs[#args + 1] = 0\n" \
	"\t\t\targs[#args + 1] = list[k]\n" \
	"\t\tend\n" \
	"\t\tcall('ZADD', NAMES, unpack(args))\n" \
	"\tend\n" \
	"end\n" \
	"-- After a change by AG2: what it wrote is at the top of its index; what it deleted shows in the count. The 1000 are\n" \
	"-- for a writer that took its version long before it adds the name.\n" \
	"local function sync()\n" \
	"\tif in_step() then return end\n" \
	"\tlocal since = (tonumber(call('GET', SYNCED) or 0) or 0) - 1000\n" \
	"\tadd_names(call('ZRANGEBYSCORE', INDEX, '('..fmt(since), '+inf'))\n" \
	"\tif not all_names() then\n" \
	"\t\tfor _, path in ipairs(call('ZRANGE', NAMES, 0, -1)) do\n" \
	"\t\t\tif not call('ZSCORE', INDEX, path) then\n" \
	"\t\t\t\tcall('ZREM', NAMES, path)\n" \
	"\t\t\t\tcall('HDEL', FILES, path)\n" \
	"\t\t\tend\n" \
	"\t\tend\n" \
	"\tend\n" \
	"\tif not all_names() then\n" \
	"\t\tcall('DEL', NAMES)\n" \
	"\t\tadd_names(call('ZRANGE', INDEX, 0, -1))\n" \
	"\tend\n" \
	"\tlocal last = call('GET', COUNTER)\n" \
	"\tif last then call('SET', SYNCED, last) else call('DEL', SYNCED) end\n" \
	"end\n" \
	"-- Before names are looked up; false when they cannot be. A reader makes nothing that is not there yet, and need not be able to.\n" \
	"local function catch_up(may_make)\n" \
	"\tif in_step() then return true end\n" \
	"\tif may_make or call('EXISTS', NAMES, SYNCED) > 0 then pcall(sync) end\n" \
	"\treturn in_step()\n" \
	"end\n" \
	"-- The first file that is there between two bounds of ZRANGEBYLEX.\n" \
	"local function first(from, to)\n" \
	"\tlocal limit = 2\n" \
	"\twhile true do\n" \
	"\t\tlocal names = call('ZRANGEBYLEX', NAMES, from, to, 'LIMIT', 0, limit)\n" \
	"\t\tfor _, name in ipairs(names) do\n" \
	"\t\t\tif exists(name) then return name end\n" \
	"\t\tend\n" \
	"\t\tif #names < limit then return nil end\n" \
	"\t\tfrom, limit = '('..names[#names], math.min(limit * 2, 1000)\n" \
	"\tend\n" \
	"end\n" \
	"-- Two pairs of bounds: of all that lies below a directory, without what is ours below the root. '0' is behind '/'.\n" \
	"local function bounds(dir)\n" \
	"\tif dir == '/' then return '[/', '(/.ag2/', '[/.ag20', '(0' end\n" \
	"\treturn '['..dir..'/', '('..dir..'0'\n" \
	"end\n" \
	"local function below(dir)\n" \
	"\tlocal a, b, c, d = bounds(dir)\n" \
	"\treturn first(a, b) or c and first(c, d)\n" \
	"end\n"

#define NEXT_VERSION \
	"local function next_version()\n" \
	"\tlocal v = call('INCR', COUNTER)\n" \
	"\tlocal most = top()\n" \
	"\tif most >= v then\n" \
	"\t\tv = most + 1\n" \
	"\t\tcall('SET', COUNTER, fmt(v))\n" \
	"\tend\n" \
	"\treturn v\n" \
	"end\n" \
	"local now = call('TIME')\n" \
	"now = string.format('%d.%06d', tonumber(now[1]), tonumber(now[2]))\n"

#define JUDGE \
	"-- '', or what is wrong with it, and behind that what shows that somebody is at work: it is then another one the next time.\n" \
	"local function judge(path)\n" \
	"\tlocal kind, score = call('TYPE', key(path)).ok, call('ZSCORE', INDEX, path)\n" \
	"\tif kind == 'none' then return score and 'value '..score or call('HEXISTS', FILES, path) == 1 and in_step() and 'info' or '' end\n" \
	"\tif kind ~= 'string' then return 'type' end\n" \
	"\tif not score then return 'index '..call('STRLEN', key(path)) end\n" \
	"\tif tonumber(score) < 0 or tonumber(score) >= END then return 'version' end\n" \
	"\tif not in_step() then return '' end\n" \
	"\tif not call('ZSCORE', NAMES, path) then return 'name' end\n" \
	"\treturn below(path) and 'both' or ''\n" \
	"end\n"

const char *const redis_script_text[REDIS_SCRIPTS] = {

[REDIS_THERE] = COMMON
	"return call('EXISTS', INDEX) + call('EXISTS', COUNTER)\n",

[REDIS_STAT] = COMMON
	"local path = ARGV[2]\n"
	"local n = path ~= '/' and call('STRLEN', key(path)) or 0\n"
	"if n > 0 or path ~= '/' and exists(path) then\n"
	"\tlocal version, base, mtime = describe(path)\n"
	"\tlocal small = n <= tonumber(ARGV[4]) and call('GET', key(path)) or ''\n"
	"\treturn {'f', tostring(n), fmt(version), fmt(base), mtime, small}\n"
	"end\n"
	"if catch_up(ARGV[3] == 'w') then return {below(path) and 'd' or ''} end\n"
	"local base = path == '/' and '/' or path..'/'\n"
	"for _, name in ipairs(call('ZRANGE', INDEX, 0, -1)) do\n"
	"\tif string.sub(name, 1, #base) == base and (path ~= '/' or string.sub(name, 1, 6) ~= '/.ag2/') then\n"
	"\t\tif exists(name) then return {'d'} end\n"
	"\tend\n"
	"end\n"
	"return {''}\n",

[REDIS_LIST] = COMMON
	"local dir, from, details, most = ARGV[2], ARGV[3], ARGV[4] == 'y', tonumber(ARGV[6])\n"
	"local base = dir == '/' and '/' or dir..'/'\n"
	"local out = {''}\n"
	"local function file(name, path)\n"
	"\tout[#out + 1] = name\n"
	"\tif not details then return end\n"
	"\tlocal version, _, mtime = describe(path)\n"
	"\tout[#out + 1] = tostring(call('STRLEN', key(path)))\n"
	"\tout[#out + 1] = fmt(version)\n"
	"\tout[#out + 1] = mtime\n"
	"end\n"
	"local function directory(name)\n"
	"\tout[#out + 1] = name..'/'\n"
	"\tif details then out[#out + 1], out[#out + 2], out[#out + 3] = '0', '0', '-1' end\n"
	"end\n"
	"if not catch_up(ARGV[5] == 'w') then\n"
	"\tlocal seen = {}\n"
	"\tfor _, path in ipairs(call('ZRANGE', INDEX, 0, -1)) do\n"
	"\t\tif string.sub(path, 1, #base) == base then\n"
	"\t\t\tlocal rest = string.sub(path, #base + 1)\n"
	"\t\t\tlocal slash = string.find(rest, '/', 1, true)\n"
	"\t\t\tlocal name = slash and string.sub(rest, 1, slash) or rest\n"
	"\t\t\tif not seen[name] and exists(path) then\n"
	"\t\t\t\tseen[name] = true\n"
	"\t\t\t\tif slash then directory(string.sub(name, 1, -2)) else file(name, path) end\n"
	"\t\t\tend\n"
	"\t\tend\n"
	"\tend\n"
	"\treturn out\n"
	"end\n"
	"if from == '' then from = '['..base end\n"
	"local to, limit = '('..string.sub(base, 1, -2)..'0', 2\n"
	"while true do\n"
	"\tlocal names, skip = call('ZRANGEBYLEX', NAMES, from, to, 'LIMIT', 0, limit), false\n"
	"\tfor _, path in ipairs(names) do\n"
	"\t\tfrom = '('..path\n"
	"\t\tif exists(path) then\n"
	"\t\t\tlocal rest = string.sub(path, #base + 1)\n"
	"\t\t\tlocal slash = string.find(rest, '/', 1, true)\n"
	"\t\t\tif slash then\n"
	"\t\t\t\tlocal name = string.sub(rest, 1, slash - 1)\n"
	"\t\t\t\tdirectory(name)\n"
	"\t\t\t\tfrom, skip = '['..base..name..'0', true\n"
	"\t\t\t\tbreak\n"
	"\t\t\tend\n"
	"\t\t\tfile(rest, path)\n"
	"\t\tend\n"
	"\tend\n"
	"\tif not skip and #names < limit then return out end\n"
	"\tif #out > most then\n"
	"\t\tout[1] = from\n"
	"\t\treturn out\n"
	"\tend\n"
	"\tlimit = skip and 2 or math.min(limit * 2, 1000)\n"
	"end\n",

[REDIS_RANGE] = COMMON
	"local path, base, size, offset, n, keep = ARGV[2], ARGV[3], tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6]), ARGV[7]\n"
	"local k = key(path)\n"
	"local version, now = describe(path)\n"
	"if not (exists(path) and fmt(now) == base and call('STRLEN', k) >= size) then\n"
	"\tk = P..':__ag2:old:'..base..':'..path\n"
	"\tif call('EXISTS', k) == 0 then return false end\n"
	"\tpcall(call, 'PEXPIRE', k, keep)\n"
	"end\n"
	"return call('GETRANGE', k, fmt(offset), fmt(offset + n - 1))\n",

[REDIS_COMMIT] = COMMON
	"local CLIENT, serial, remember, keep_above, keep_for, most = P..':__ag2:client:'..ARGV[2], ARGV[3], ARGV[4], tonumber(ARGV[5]), ARGV[6], tonumber(ARGV[7])\n"
	"-- Sent a second time because the answer was lost: answered as the first time.\n"
	"local was, answer = string.match(call('GET', CLIENT) or '', '^(%d+) (.*)$')\n"
	"if was == serial then return {'ok', answer} end\n"
	"local at = 9\n"
	"for _ = 1, tonumber(ARGV[8]) do\n"
	"\tif call('GET', P..':__ag2:lock:'..ARGV[at]) ~= ARGV[at + 1] then return {'lock', ARGV[at]} end\n"
	"\tat = at + 2\n"
	"end\n"
	"local ops = {}\n"
	"while at + 5 <= #ARGV do\n"
	"\tops[#ops + 1] = {kind = ARGV[at], path = ARGV[at + 1], data = ARGV[at + 2], version = ARGV[at + 3], upto = tonumber(ARGV[at + 4]), sum = ARGV[at + 5]}\n"
	"\tat = at + 6\n"
	"end\n"
	"-- All that can fail comes before the first change: a script is not undone.\n"
	"sync()\n"
	"call('HLEN', FILES)\n"
	"if not counter() then return {'counter', COUNTER} end\n"
	"for _, op in ipairs(ops) do\n"
	"\tlocal path = op.path\n"
	"\top.size = path ~= '/' and call('STRLEN', key(path)) or 0\n"
	"\top.there = op.size > 0 or path ~= '/' and exists(path)\n"
	"\tif op.kind == 'expect' then\n"
	"\t\tif fmt(op.there and (describe(path)) or 0) ~= op.version then return {'conflict', path} end\n"
	"\telseif op.kind == 'prefix' then\n"
	"\t\tif not op.there or op.size < op.upto then return {'conflict', path} end\n"
	"\t\tlocal head = op.upto > 0 and call('GETRANGE', key(path), 0, fmt(op.upto - 1)) or ''\n"
	"\t\tif redis.sha1hex(head) ~= op.sum then return {'conflict', path} end\n"
	"\t\tif op.size - op.upto + #op.data > most then return {'large', path, fmt(op.size - op.upto + #op.data)} end\n"
	"\telseif op.kind ~= 'delete' then\n"
	"\t\tif op.kind == 'append' and op.size + #op.data > most then return {'large', path, fmt(op.size + #op.data)} end\n"
	"\t\tif not op.there then\n"
	"\t\t\tif below(path) then return {'directory', path} end\n"
	"\t\t\tlocal above = path\n"
	"\t\t\twhile true do\n"
	"\t\t\t\tabove = string.match(above, '^(.+)/[^/]*$')\n"
	"\t\t\t\tif not above then break end\n"
	"\t\t\t\tif exists(above) then return {'file', path, above} end\n"
	"\t\t\tend\n"
	"\t\tend\n"
	"\tend\n"
	"end\n"
	NEXT_VERSION
	"-- A large value stays for a while for those who are reading it.\n"
	"local function put_away(path, size)\n"
	"\tif size <= keep_above then return call('DEL', key(path)) end\n"
	"\tlocal _, base = describe(path)\n"
	"\tlocal old = P..':__ag2:old:'..fmt(base)..':'..path\n"
	"\tcall('RENAME', key(path), old)\n"
	"\tcall('PEXPIRE', old, keep_for)\n"
	"\treturn 1\n"
	"end\n"
	"local changed = false\n"
	"local function forget(path)\n"
	"\tput_away(path, call('STRLEN', key(path)))\n"
	"\tcall('ZREM', INDEX, path)\n"
	"\tcall('ZREM', NAMES, path)\n"
	"\tcall('HDEL', FILES, path)\n"
	"\tchanged = true\n"
	"end\n"
	"local function forget_between(from, to)\n"
	"\twhile true do\n"
	"\t\tlocal names = call('ZRANGEBYLEX', NAMES, from, to, 'LIMIT', 0, 1000)\n"
	"\t\tfor _, name in ipairs(names) do forget(name) end\n"
	"\t\tif #names < 1000 then return end\n"
	"\tend\n"
	"end\n"
	"local answers = {}\n"
	"for _, op in ipairs(ops) do\n"
	"\tlocal path, version, offset = op.path, 0, 0\n"
	"\tif op.kind == 'delete' then\n"
	"\t\tif op.there then forget(path) end\n"
	"\t\tlocal a, b, c, d = bounds(path)\n"
	"\t\tforget_between(a, b)\n"
	"\t\tif c then forget_between(c, d) end\n"
	"\telseif op.kind ~= 'expect' then\n"
	"\t\tversion = next_version()\n"
	"\t\tlocal _, base = describe(path)\n"
	"\t\tif op.kind == 'append' then\n"
	"\t\t\toffset = call('APPEND', key(path), op.data) - #op.data\n"
	"\t\t\tif not op.there then base = version end\n"
	"\t\telse\n"
	"\t\t\tlocal data = op.data\n"
	"\t\t\tif op.kind == 'prefix' and op.size > op.upto then data = data..call('GETRANGE', key(path), fmt(op.upto), -1) end\n"
	"\t\t\tif op.size > keep_above then put_away(path, op.size) end\n"
	"\t\t\tcall('SET', key(path), data)\n"
	"\t\t\tbase = version\n"
	"\t\tend\n"
	"\t\tif call('ZADD', INDEX, fmt(version), path) == 1 then call('ZADD', NAMES, 0, path) end\n"
	"\t\tcall('HSET', FILES, path, fmt(base)..' '..fmt(version)..' '..now)\n"
	"\t\tchanged = true\n"
	"\tend\n"
	"\tanswers[#answers + 1] = fmt(version)..' '..fmt(offset)\n"
	"end\n"
	"answer = table.concat(answers, ' ')\n"
	"if changed then\n"
	"\tlocal last = call('GET', COUNTER)\n"
	"\tif last then call('SET', SYNCED, last) end\n"
	"\tcall('SET', CLIENT, serial..' '..answer, 'PX', remember)\n"
	"\tpcall(call, 'PUBLISH', P..':__ag2:changed', serial)\n"
	"end\n"
	"return {'ok', answer}\n",

[REDIS_CHANGES] = COMMON
	"local out = {call('GET', COUNTER) or '0', tostring(call('ZCARD', INDEX))}\n"
	"local list = call('ZRANGEBYSCORE', INDEX, '('..ARGV[2], '+inf', 'WITHSCORES')\n"
	"for i = 1, #list do out[#out + 1] = i % 2 == 1 and list[i] or fmt(math.max(1, tonumber(list[i]))) end\n"
	"return out\n",

[REDIS_TAKE] = COMMON
	"local k = P..':__ag2:lock:'..ARGV[2]\n"
	"local holder = call('GET', k)\n"
	"if holder == ARGV[3] then return '' end\n"
	"if holder and holder ~= ARGV[5] then return holder end\n"
	"call('SET', k, ARGV[3], 'PX', ARGV[4])\n"
	"return ''\n",

[REDIS_RENEW] = COMMON
	"local k = P..':__ag2:lock:'..ARGV[2]\n"
	"if call('GET', k) ~= ARGV[3] then return 0 end\n"
	"return call('PEXPIRE', k, ARGV[4])\n",

[REDIS_RELEASE] = COMMON
	"local k = P..':__ag2:lock:'..ARGV[2]\n"
	"if call('GET', k) ~= ARGV[3] then return 0 end\n"
	"return call('DEL', k)\n",

[REDIS_JUDGE] = COMMON JUDGE
	"return judge(ARGV[2])\n",

[REDIS_SCAN_INDEX] = COMMON JUDGE
	"local function odd(path)\n"
	"\tfor name in string.gmatch(path, '[^/]+') do\n"
	"\t\tif #name > 255 or name == '.' or name == '..' then return true end\n"
	"\tend\n"
	"\treturn string.sub(path, 1, 1) ~= '/' or path == '/' or string.find(path..'/', '//', 1, true) or string.find(path, '%z') or #path > 4096\n"
	"end\n"
	"local found = call('ZSCAN', INDEX, ARGV[2], 'COUNT', ARGV[3])\n"
	"local out = {found[1]}\n"
	"for i = 1, #found[2], 2 do\n"
	"\tlocal path = found[2][i]\n"
	"\tif odd(path) or judge(path) ~= '' then out[#out + 1] = path end\n"
	"end\n"
	"return out\n",

[REDIS_SCAN_KEYS] = COMMON
	"local found = call('SCAN', ARGV[2], 'MATCH', ARGV[4], 'COUNT', ARGV[3])\n"
	"local out = {found[1]}\n"
	"for _, k in ipairs(found[2]) do\n"
	"\tlocal name = string.sub(k, #P + 2)\n"
	"\tif string.sub(name, 1, 1) == '/' then\n"
	"\t\tif not call('ZSCORE', INDEX, name) then out[#out + 1] = name end\n"
	"\telseif string.match(name, '^__ag2:[a-z]+:') and call('PTTL', k) == -1 then\n"
	"\t\tout[#out + 1] = name\n"
	"\tend\n"
	"end\n"
	"return out\n",

[REDIS_SCAN_INFO] = COMMON
	"local found = call('HSCAN', FILES, ARGV[2], 'COUNT', ARGV[3])\n"
	"local out = {found[1]}\n"
	"for i = 1, #found[2], 2 do\n"
	"\tif not call('ZSCORE', INDEX, found[2][i]) then out[#out + 1] = found[2][i] end\n"
	"end\n"
	"return out\n",

[REDIS_JUDGE_STORE] = COMMON
	"local kinds = {[INDEX] = 'zset', [COUNTER] = 'string', [NAMES] = 'zset', [SYNCED] = 'string', [FILES] = 'hash'}\n"
	"for k, want in pairs(kinds) do\n"
	"\tlocal kind = call('TYPE', k).ok\n"
	"\tif kind ~= 'none' and kind ~= want then return {k, 'is a '..kind..', not a '..want} end\n"
	"end\n"
	"local text, last, most = call('GET', COUNTER), counter(), top()\n"
	"if not last and not tonumber(text) then return {'counter', 'the counter of versions is no number: nothing can be written'} end\n"
	"if not last then return {'counter', 'the counter of versions is at '..text..', from where none can follow: nothing can be written'} end\n"
	"if last < most then return {'counter', 'versions would fall: the counter is at '..fmt(last)..', a file has '..fmt(most)} end\n"
	"return {}\n",

[REDIS_MEND] = COMMON NEXT_VERSION JUDGE
	"local what, path = ARGV[2], ARGV[3]\n"
	"if what == 'expiry' then return call('PEXPIRE', P..':'..path, ARGV[4]) end\n"
	"if what == 'counter' then\n"
	"\tif (counter() or -1) < top() then call('SET', COUNTER, fmt(top())) end\n"
	"\tsync()\n"
	"\treturn 1\n"
	"end\n"
	"if judge(path) ~= what then return 0 end\n"
	"what = string.match(what, '^%a+')\n"
	"if what == 'value' then\n"
	"\tcall('ZREM', INDEX, path)\n"
	"\tcall('ZREM', NAMES, path)\n"
	"\tcall('HDEL', FILES, path)\n"
	"elseif what == 'index' or what == 'version' then\n"
	"\tlocal v = fmt(next_version())\n"
	"\tcall('ZADD', INDEX, v, path)\n"
	"\tcall('HSET', FILES, path, v..' '..v..' '..now)\n"
	"elseif what == 'name' then\n"
	"\tcall('DEL', NAMES)\n"
	"elseif what == 'info' then\n"
	"\tcall('HDEL', FILES, path)\n"
	"end\n"
	"sync()\n"
	"return 1\n",
};
