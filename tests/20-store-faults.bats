#!/usr/bin/env bats
# What the system denies a store: space, a file system that is local, an owner who is the one who writes.

load helper

setup() {
	local dir
	clean_environment
	# A test that gives up root's rights reaches its files.
	for dir in "$TMP" "${TMP%/*}" "${TMP%/*/*}"; do
		chmod go+x "$dir"
	done
	head -c 200000 /dev/zero >zeros
}

# both TEST...: with $url on disk, then on sqlite, in the directory $where.
both() {
	for url in "disk:$where/d" "sqlite:$where/s.db"; do
		echo "# $url"
		"$@"
	done
}

# Appends lines to /log until one is refused; those that were not are in `told`. Sets status and output of the last.
fill() {
	local i
	: >told
	for i in $(seq 5000); do
		printf 'line %d %01500d\n' "$i" 0 >line
		run ag2-store -s "$url" append /log line
		[ "$status" -eq 0 ] || return 0
		cat line >>told
	done
	fail "5000 lines have room"
}

# The store is as it was, whatever is tried, and goes on when there is room again: after MORE...
full() {
	ag2-store -s "$url" write /kept <<<kept
	head -c 20000 /dev/zero | ag2-store -s "$url" write /large
	fill
	status_is 74
	has "$why"
	run -74 ag2-store -s "$url" write /kept zeros
	run -74 ag2-store -s "$url" append /log zeros
	run -74 ag2-store -s "$url" write /new/file zeros
	ag2-store -s "$url" cat /log >there
	same told there
	[ "$(ag2-store -s "$url" cat /kept)" = kept ]
	run -1 ag2-store -s "$url" exists /new
	"$@"
	ag2-store -s "$url" append /log <<<more
	echo more >>told
	ag2-store -s "$url" write /new/file zeros
	ag2-store -s "$url" cat /log >there
	same told there
	[ "$(ag2-store -s "$url" cat /kept)" = kept ]
	run -0 ag2-store -s "$url" fsck
	output_is ""
}

room_again() {
	rm "$where/filler"
}

# In namespaces of its own, the test has a small file system.
small_disk() {
	mkdir small
	mount -t tmpfs -o size=800k none small || return 99
	where=$TMP/small why="o space left"
	for url in "disk:$where/d" "sqlite:$where/s.db"; do
		head -c 650000 /dev/zero >small/filler
		full room_again
		rm -rf small/*
	done
	# Not a byte is left, which a change finds out when its log is there already: all can be read still.
	ag2-store -s "$url" write /kept <<<kept
	cat /dev/zero >small/filler 2>/dev/null || true
	run timeout 60 "$BIN/ag2-store" -s "$url" rm /kept
	status_is 74
	run timeout 60 "$BIN/ag2-store" -s "$url" cat /kept
	status_is 0
	output_is kept
	room_again
	ag2-store -s "$url" rm /kept
}

@test "a full disk loses nothing and is 74; with room again the store goes on" {
	local ns=-m
	[ "$(id -u)" -eq 0 ] || ns=-rm
	unshare $ns sh -c 'mkdir try && mount -t tmpfs none try' || skip "nothing can be mounted here"
	export -f small_disk full fill room_again run status_is has fail same output_is
	export BIN TMP
	run unshare $ns bash -c 'set -e; small_disk'
	[ "$status" -eq 0 ] || fail "$output"
}

no_limit() {
	ulimit -S -f unlimited
}

limited() {
	ulimit -S -f 100
	full no_limit
}

@test "so does a file that may not grow" {
	where=$TMP why=
	trap '' XFSZ
	both limited
}

@test "a database on a network file system is not put into WAL, and that is told, once" {
	export LD_PRELOAD=$TOOLS/power.so POWER_STATFS ASAN_OPTIONS=verify_asan_link_order=0:detect_leaks=0
	for POWER_STATFS in 0x6969 0xfe534d42 0x65735546; do
		rm -f s.db
		run --separate-stderr -0 ag2-store -s s.db append /log <<<one
		[[ $stderr == *"network file system"*"without a write-ahead log"* ]] || fail "$stderr"
		run --separate-stderr -0 ag2-store -s s.db append /log <<<two
		[ -z "$stderr" ]
		# The versions of writing and reading in the file's header: 2 is WAL.
		[ "$(od -An -tx1 -j18 -N2 s.db)" = " 01 01" ]
		[ "$(echo s.db*)" = s.db ]
		run -0 ag2-store -s s.db cat /log
		output_is $'one\ntwo'
	done
	POWER_STATFS=0xef53
	rm s.db
	run --separate-stderr -0 ag2-store -s s.db append /log <<<one
	[ -z "$stderr" ]
	[ "$(od -An -tx1 -j18 -N2 s.db)" = " 02 02" ]
}

# owners FILE...: owner, group and permissions of all of them.
owners() {
	find "$@" -type f -printf 'file %U:%G %m %f\n' -o -type d -printf 'directory %U:%G %m %f\n'
}

as_user() {
	setpriv --reuid=65534 --regid=65533 --clear-groups -- "$@"
}

others_store() {
	local name=${url#*:}
	# The root of one, and the file of the other, say what the rest is like.
	[ "${url%%:*}" = sqlite ] || as_user mkdir -m 750 "$name"
	as_user ag2-store -s "$url" write /memory/working.md <<<theirs
	[ -d "$name" ] || as_user chmod 640 "$name"
	as_user ag2-store -s "$url" append /log/s.jsonl <<<'{"type":"a","data":{}}' >/dev/null
	# What root does: files anew and in place, directories, several at once, what is ours, a compaction.
	ag2-store -s "$url" write /memory/working.md <<<roots
	ag2-store -s "$url" write /new/deep/file <<<roots
	ag2-store -s "$url" append /log/s.jsonl <<<'{"type":"b","data":{}}' >/dev/null
	ag2-store -s "$url" log user t question
	ag2-compact -s "$url" --stream s -i tail-window:1
	ag2-store -s "$url" rm /new/deep/file
	ag2-store -s "$url" write /new/deep/file <<<again
	ag2-store -s "$url" lock /x -- true
	run owners "${url#*:}"*
	hasnt ' 0:'
	hasnt ':0 '
	hasnt ' 700 '
	hasnt ' 600 '
	# The user goes on.
	as_user ag2-store -s "$url" write /memory/working.md <<<theirs
	as_user ag2-store -s "$url" append /log/t.jsonl <<<'{"type":"c","data":{}}' >/dev/null
	as_user ag2-store -s "$url" rm -r /new
	run -0 as_user ag2-store -s "$url" fsck
	output_is ""
}

@test "what root writes into a user's store is the user's" {
	[ "$(id -u)" -eq 0 ] || skip "only root may write for others"
	where=$TMP/theirs
	mkdir theirs
	chown 65534:65533 theirs
	both others_store
}
