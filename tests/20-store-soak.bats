#!/usr/bin/env bats
# Writers, readers and kills on every store, and a checker of its own. `make soak` does it as long as SOAK_OPS says; the counts
# are told on the test's output.

load helper
load redis

setup() {
	clean_environment
	if [ -n "$SOAK" ]; then
		ops=${SOAK_OPS:-100000} often=$((ops / 20))
	else
		ops=1500 often=750
	fi
}

teardown() {
	: >enough	# whoever kills the server and starts it again ends
	redis_stop
	cluster_stop
}

# soak OPTION... URL N
soak() {
	run --separate-stderr "$TOOLS/storesoak" "$@"
	[ "$status" -eq 0 ] || fail "storesoak $*:" "$output" "$stderr"
	printf '# storesoak %s\n' "$*" >&3
	printf '#   %s\n' "${lines[@]}" >&3
}

# What every store goes through: writers with the store open, commands that open it for one change, one writer that is killed often.
soak_all() {
	soak "$1" "$ops"
	soak -f -k 10 "$2" $((ops / 10))
	soak -w 1 -r 1 -p 1 -k 3 "$3" "$often"
}

@test "on disk nothing acknowledged is lost, none is twice or elsewhere, and no reader sees half" {
	soak_all "disk:$TMP/a" "disk:$TMP/b" "disk:$TMP/c"
	soak -k 20 "disk:$TMP/full?sync=full" $((ops / 20))
}

@test "so on sqlite, in either layout" {
	soak_all "sqlite:$TMP/a" "sqlite:$TMP/b" "sqlite:$TMP/c"
	soak -k 20 "sqlite:$TMP/full?sync=full" $((ops / 20))
	soak -k 20 "sqlite:$TMP/ag2?layout=ag2" $((ops / 20))
}

@test "so in memory" {
	soak memory: "$ops"
}

@test "so on a Redis server" {
	redis_start
	soak_all "$url" "$url?prefix=b" "$url?prefix=c"
}

has_loaded() {
	[ "$(rc ping)" = PONG ]
}

@test "so on a Redis server that is itself killed and comes back" {
	local killer
	redis_start --appendonly yes --appendfsync always
	(
		until [ -e enough ]; do
			sleep 0.2
			redis_stop
			redis_start --appendonly yes --appendfsync always
			wait_for 60 has_loaded
			echo >>restarts
		done
	) 3>&- >/dev/null 2>&1 & killer=$!
	# The server reads all that was written each time it comes back.
	soak -u -k 40 "$url?sync=full&timeout=60" $((SOAK ? ops / 10 : ops))
	touch enough
	wait "$killer"
	[ -s restarts ]
	echo "#   the server was killed $(wc -l <restarts) times" >&3
}

@test "so on a Redis Cluster" {
	cluster_start
	soak_all "redis://127.0.0.1:${ports[0]}/0?prefix={a}" "redis://127.0.0.1:${ports[1]}/0?prefix={b}" "redis://127.0.0.1:${ports[2]}/0?prefix={c}"
}

# Eight programs that append one after the other, four that read, with a log for all and with one for each.
beside() {
	local paths
	for paths in 1 16; do
		soak -w 8 -r 4 -p "$paths" -k 0 -o a -x "$BIN/ag2-store" "$1$paths" $((ops / 15))
	done
}

@test "eight writers and four readers, all of them programs: nothing is lost and every offset is right" {
	redis_start
	cluster_start
	beside "disk:$TMP/d"
	beside "sqlite:$TMP/s"
	beside "$url?prefix=p"
	beside "redis://127.0.0.1:${ports[0]}/0?prefix={p}"
}
