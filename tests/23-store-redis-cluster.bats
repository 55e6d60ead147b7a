#!/usr/bin/env bats
# The store on a Redis Cluster of three nodes.

load helper
load redis

setup() {
	clean_environment
	cluster_start
	first=redis://127.0.0.1:${ports[0]}/0
}

teardown() {
	cluster_stop
}

# owner PREFIX: sets slot, port (of the node that has it), other (of one that has not) and their ids.
owner() {
	local p
	slot=$(redis-cli -p "${ports[0]}" CLUSTER KEYSLOT "$1:__index")
	for p in "${ports[@]}"; do
		case $(redis-cli -p "$p" CLUSTER COUNTKEYSINSLOT "$slot") in
		0) other=$p ;;
		*) port=$p ;;
		esac
	done
	from=$(redis-cli -p "$port" CLUSTER MYID)
	to=$(redis-cli -p "$other" CLUSTER MYID)
}

@test "it does what every store does, on each of the nodes" {
	cd "$ROOT"
	for prefix in '{a}' 'x{bob}y' '{c}'; do
		AG2_TEST_STORE="$first?prefix=$prefix" run "$UNIT/store"
		[ "$status" -eq 0 ] || fail "$(grep -A3 '^not ok' <<<"$output")"
	done
	for port in "${ports[@]}"; do
		[ "$(redis-cli -p "$port" DBSIZE)" -gt 0 ] || echo "# a node has none"
	done
	[ "$(for port in "${ports[@]}"; do redis-cli -p "$port" DBSIZE; done | grep -vc '^0$')" -ge 2 ]
}

@test "a prefix without braces is 78, so is a database other than 0" {
	for port in "${ports[@]}"; do
		ag2-store -s "redis://127.0.0.1:$port/0" write /x <<<1 2>>said || echo $? >>statuses
	done
	grep -q 'needs a prefix with a {' said
	[ "$(sort -u statuses)" = 78 ]
	run -78 ag2-store -s "redis://127.0.0.1:${ports[0]}/1?prefix={a}" ls
	has "only database 0"
}

@test "while the keys are being moved changes wait, and go on at the new node" {
	export AG2_STORE="$first?prefix={a}"
	ag2-store write /x <<<1
	ag2-store write /d/y <<<1
	owner '{a}'
	redis-cli -p "$other" CLUSTER SETSLOT "$slot" IMPORTING "$from" >/dev/null
	redis-cli -p "$port" CLUSTER SETSLOT "$slot" MIGRATING "$to" >/dev/null
	# All are still there, some are, none is.
	for round in 1 2 3; do
		run -75 ag2-store -s "$AG2_STORE&timeout=0.4" append /x <<<2
		has "moving the keys"
		redis-cli -p "$port" CLUSTER GETKEYSINSLOT "$slot" $((round * 3)) >keys
		while IFS= read -r key; do
			redis-cli -p "$port" MIGRATE 127.0.0.1 "$other" "$key" 0 5000 </dev/null
		done <keys
	done
	(
		sleep 0.5
		redis-cli -p "$port" CLUSTER GETKEYSINSLOT "$slot" 100 | while IFS= read -r key; do
			redis-cli -p "$port" MIGRATE 127.0.0.1 "$other" "$key" 0 5000 </dev/null
		done
		redis-cli -p "$other" CLUSTER SETSLOT "$slot" NODE "$to"
		redis-cli -p "$port" CLUSTER SETSLOT "$slot" NODE "$to"
	) >/dev/null & mover=$!
	ag2-store append /x <<<3 >/dev/null
	wait "$mover"
	run -0 ag2-store cat /x
	output_is $'1\n3'
	run -0 ag2-store ls -R
	output_is $'/d/\n/d/y\n/x'
	[ "$(redis-cli -p "$port" CLUSTER COUNTKEYSINSLOT "$slot")" = 0 ]
}

@test "fsck looks on the node that has the store, whichever it was asked through" {
	ag2-store -s "$first?prefix={a}" write /x <<<1
	ag2-store -s "$first?prefix={a}" write /y <<<1
	owner '{a}'
	redis-cli -p "$port" ZREM '{a}:__index' /y >/dev/null
	redis-cli -p "$port" DEL '{a}:/x' >/dev/null
	for p in "${ports[@]}"; do
		run -1 ag2-store -s "redis://127.0.0.1:$p?prefix={a}" fsck
		output_is "/x: is in AG2's index and has no content
/y: has content and is not in AG2's index: no listing shows it"
	done
	run -0 ag2-store -s "redis://127.0.0.1:$other?prefix={a}" fsck --repair
	run -0 ag2-store -s "$first?prefix={a}" fsck
	output_is ""
	run -0 ag2-store -s "$first?prefix={a}" ls
	output_is y
}

@test "a node that has died is told within the timeout" {
	export AG2_STORE="$first?prefix={a}"
	ag2-store write /x <<<1
	owner '{a}'
	for i in 1 2 3; do
		[ "${ports[i - 1]}" != "$port" ] || kill -KILL "$(cat "node$i/pid")"
	done
	run ag2-store -s "redis://127.0.0.1:$other/0?prefix={a}&timeout=1" append /x <<<2
	case $status in
	69 | 75) ;;
	*) status_is 75 ;;
	esac
}
