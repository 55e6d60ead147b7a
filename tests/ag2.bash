# AG2 on each kind of store: what it does there, statement by statement, without a lock of ours. `load ag2` behind backend.
#
#	ag2 open		before the others: on SQLite one connection for all, as AG2's process has it
#	ag2 put PATH TEXT	TEXT and a newline, whole
#	ag2 add PATH TEXT	its append
#	ag2 get PATH
#	ag2 del PATH		a file or what is below a directory
#	ag2 paths		of all files, in byte order
#
# $kind says on what; see backend.bash.
ag2() {
	local what=$1
	shift
	case $kind in
	disk*) "disk_$what" "$@" ;;
	sqlite*) "sqlite_$what" "$@" ;;
	*) "redis_$what" "$@" ;;
	esac
}

disk_open() { root=${AG2_STORE#disk:}; }
disk_put() { mkdir -p "$root$(dirname "$1")" && printf '%s\n' "$2" >"$root$1"; }
disk_add() { mkdir -p "$root$(dirname "$1")" && printf '%s\n' "$2" >>"$root$1"; }
disk_get() { cat "$root$1"; }
disk_del() { rm -rf "$root$1"; }
disk_paths() { (cd "$root" && find . -type f -not -path './.ag2/*' | cut -c2- | LC_ALL=C sort); }

sqlite_open() {
	local file=${AG2_STORE#sqlite:}
	rm -f to from
	mkfifo to from
	sqlite3 -batch "${file%\?*}" <to >from 2>&1 3>&- &
	exec 6>to 7<from
	echo ".timeout 20000" >&6
	sql "CREATE TABLE IF NOT EXISTS entries (path TEXT PRIMARY KEY, content BLOB NOT NULL, version INTEGER NOT NULL DEFAULT 0);"
	version=$(sql "SELECT COALESCE(MAX(version), 0) FROM entries;")
}
# sql STATEMENT...: their output.
sql() {
	local row
	printf '%s\n' "$@" "SELECT '=';" >&6
	while IFS= read -r -t 60 row <&7 && [ "$row" != = ]; do printf '%s\n' "$row"; done
	[ "$row" = = ]
}
hex() { od -An -v -tx1 | tr -d ' \n'; }
sqlite_replace() { sql "INSERT OR REPLACE INTO entries (path, content, version) VALUES ('$1', x'$2', $((++version)));"; }
sqlite_put() { sqlite_replace "$1" "$(printf '%s\n' "$2" | hex)"; }
sqlite_hex() { sql "SELECT hex(content) FROM entries WHERE path = '$1';"; }
sqlite_add() { sqlite_replace "$1" "$(sqlite_hex "$1")$(printf '%s\n' "$2" | hex)"; }
sqlite_get() { printf '%b' "$(sqlite_hex "$1" | sed 's/../\\x&/g')"; }
sqlite_del() { sql "DELETE FROM entries WHERE path = '$1';" "DELETE FROM entries WHERE path LIKE '$1/%';"; }
sqlite_paths() { sql "SELECT path FROM entries WHERE path LIKE '/%' AND path NOT LIKE '/.ag2/%' ORDER BY CAST(path AS BLOB);"; }

redis_open() { :; }
redis_put() { ag2_write "$1" "$2
"; }
# Its append, which is one command, and the index.
redis_add() {
	printf '%s\n' "$2" | rc -x APPEND "$ag2_key:$1" >/dev/null
	rc ZADD "$ag2_key:__index" "$(rc INCR "$ag2_key:__version_counter")" "$1" >/dev/null
}
redis_get() { rc --raw GET "$ag2_key:$1" | head -c -1; }
redis_paths() { rc ZRANGE "$ag2_key:__index" 0 -1 | grep '^/' | grep -v '^/\.ag2/' | LC_ALL=C sort; }
redis_del() {
	local path
	ag2_delete "$1"
	for path in $(redis_paths | grep -F "$1/" || true); do
		case $path in
		"$1"/*) ag2_delete "$path" ;;
		esac
	done
}
