/*
 * The scripts that a Redis server runs for a store: each operation is one, so that it is whole for everybody else.
 * Their KEYS are the index, which tells a cluster where to run them, and a key that is never there: while a cluster moves
 * the keys, a part of them is here and a part there, and for two of which one is missing it says so (TRYAGAIN) instead of
 * running a script on what it has. ARGV[1] is always the prefix.
 *
 * The keys below PREFIX: are AG2's
 *	:/path			a file
 *	:__index		sorted set: each path with its version
 *	:__version_counter	the last version
 * and our own
 *	:__ag2:names		sorted set of the paths by their bytes, so that listing a directory does not look at others
 *	:__ag2:synced		the counter as of our last change: another value means that AG2 has written since
 *	:__ag2:files		hash: for each path "BASE VERSION TIME" as of our last change: only appended to since BASE
 *	:__ag2:client:ID	"SERIAL ANSWER" of that client's last change, for some time
 *	:__ag2:lock:/path	the holder's token
 *	:__ag2:changed		no key: a channel, which each of our changes is told on
 *	:__ag2:old:BASE:/path	a large value that was replaced, for some time: others may be reading it
 */
#ifndef AG2_REDIS_SCRIPT_H
#define AG2_REDIS_SCRIPT_H

enum redis_script {
	/* prefix → 0 when there is no store */
	REDIS_THERE,
	/*
	 * prefix path "w"|"r" N → "f" SIZE VERSION BASE TIME CONTENT (empty when larger than N), or "d" for a directory, or "".
	 * With "r" nothing is changed but our names, if there are any, when AG2 has written.
	 */
	REDIS_STAT,
	/*
	 * prefix path FROM "y"|"n" "w"|"r" N → NEXT, then for each child its name, a directory's with '/', with "y" also SIZE
	 * VERSION TIME. NEXT is the FROM for what is left after N words, "" at the end (and at the beginning). Not always in order.
	 */
	REDIS_LIST,
	/* prefix path BASE SIZE OFFSET N KEEP_MS → bytes; nil when the file with that BASE is no longer to be had */
	REDIS_RANGE,
	/*
	 * prefix CLIENT SERIAL REMEMBER_MS KEEP_ABOVE KEEP_MS MOST LOCKS (path token)... (kind path data version upto sha1)...
	 * → "ok" "VERSION OFFSET ..."; or, with nothing changed, "conflict" path · "lock" path (it is not held) · "directory"
	 * path · "file" path above · "large" path size · "counter" key. Kinds: write append delete expect prefix.
	 */
	REDIS_COMMIT,
	/* prefix SINCE → COUNTER COUNT, then path and version of each file with a version above SINCE */
	REDIS_CHANGES,
	/* prefix path TOKEN TTL_MS DEAD → "" taken, else the holder's token. A holder DEAD is replaced. */
	REDIS_TAKE,
	/* prefix path TOKEN TTL_MS → 1, 0 when it is not ours */
	REDIS_RENEW,
	/* prefix path TOKEN → 1, 0 when it was not ours */
	REDIS_RELEASE,
	/*
	 * prefix path → what is wrong with a file: "" · value (it has none) · index (AG2 does not list it) · version (it can be none) · name (we do not) · type (it
	 * is no string) · both (it is a directory, too) · info (what we know of it is of no file).
	 */
	REDIS_JUDGE,
	/*
	 * prefix CURSOR N PATTERN → CURSOR, then names of what may be wrong; "0" is the beginning and the end, as SCAN has it. INDEX:
	 * paths that REDIS_JUDGE finds fault with, or no command can name. KEYS, of those that match: what follows "prefix:"
	 * in the names of files that are not in the index, and of keys of ours that should expire and do not. INFO: paths of
	 * which we know something and which are no files.
	 */
	REDIS_SCAN_INDEX, REDIS_SCAN_KEYS,
	REDIS_SCAN_INFO,
	/* prefix → nothing or, of the keys that there is one of, "counter" or the key's name, and what is wrong with it for a person */
	REDIS_JUDGE_STORE,
	/* prefix WHAT path TTL_MS → 1 when this, said by REDIS_JUDGE ("counter": by REDIS_JUDGE_STORE; "expiry": of a key), was so and no longer is */
	REDIS_MEND,
	REDIS_SCRIPTS
};

extern const char *const redis_script_text[REDIS_SCRIPTS];

#endif
