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

# owner PREFIX: sets slot, port and node (of the one that has it), other (the port of one that has not) and their ids.
owner() {
	local p
	slot=$(redis-cli -p "${ports[0]}" CLUSTER KEYSLOT "$1:__index")
	for p in "${ports[@]}"; do
		case $(redis-cli -p "$p" CLUSTER COUNTKEYSINSLOT "$slot") in
		0) other=$p ;;
		*) port=$p ;;
		esac
	done
	for node in 1 2 3; do
		[ "${ports[node - 1]}" != "$port" ] || break
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
	ag2-store -s "$AG2_STORE&timeout=60" append /x <<<3 >/dev/null
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

# move_slot A B: with all its keys, from the node at port A to the one at B.
move_slot() {
	local key a b
	a=$(redis-cli -p "$1" CLUSTER MYID)
	b=$(redis-cli -p "$2" CLUSTER MYID)
	redis-cli -p "$2" CLUSTER SETSLOT "$slot" IMPORTING "$a"
	redis-cli -p "$1" CLUSTER SETSLOT "$slot" MIGRATING "$b"
	while [ "$(redis-cli -p "$1" CLUSTER COUNTKEYSINSLOT "$slot")" -gt 0 ]; do
		redis-cli -p "$1" CLUSTER GETKEYSINSLOT "$slot" 100 | while IFS= read -r key; do
			redis-cli -p "$1" MIGRATE 127.0.0.1 "$2" "$key" 0 5000 </dev/null
		done
	done
	redis-cli -p "$2" CLUSTER SETSLOT "$slot" NODE "$b"
	redis-cli -p "$1" CLUSTER SETSLOT "$slot" NODE "$b"
}

@test "writers and readers go on while the keys move from node to node under them" {
	local soak moves=0
	ag2-store -s "$first?prefix={a}" write /x <<<1
	owner '{a}'
	"$TOOLS/storesoak" -k 100 "$first?prefix={a}&timeout=60" ${SOAK:+20}2000 >said 2>&1 & soak=$!
	while kill -0 "$soak" 2>/dev/null && [ "$moves" -lt 100 ]; do
		# Who waits comes back twice a second, and needs a while in which nothing moves.
		move_slot "$port" "$other" >/dev/null
		sleep 0.7
		move_slot "$other" "$port" >/dev/null
		sleep 0.7
		moves=$((moves + 1))
	done
	wait "$soak" || fail "$(cat said)"
	[ "$moves" -gt 0 ]
	run -0 ag2-store -s "$first?prefix={a}" cat /x
	output_is 1
}

@test "a node that has died, or is stopped, is told within the timeout; the other stores go on" {
	export AG2_STORE="$first?prefix={a}"
	ag2-store write /x <<<1
	owner '{a}'
	# Of one whose keys are on another node.
	for p in '{b}' '{c}' '{d}' '{e}'; do
		elsewhere="redis://127.0.0.1:$other?prefix=$p"
		ag2-store -s "$elsewhere" write /x <<<1
		[ "$(redis-cli -p "$port" --scan --pattern "$p*" | wc -l)" -ne 0 ] || break
	done
	node_kill -STOP "$node"
	for command in 'append /x' 'cat /x' ls 'rm /x' 'lock -w 0 /x -- true'; do
		# shellcheck disable=SC2086
		run timeout 20 ag2-store -s "redis://127.0.0.1:$other/0?prefix={a}&timeout=0.5" $command <<<2
		status_is 75
	done
	# A cluster that misses a node for longer than its own timeout is down, for all who have it told to be.
	for p in "${ports[@]}"; do
		[ "$p" = "$port" ] || redis-cli -p "$p" CONFIG SET cluster-require-full-coverage no >/dev/null
	done
	run -0 ag2-store -s "$elsewhere" append /x <<<2
	node_kill -CONT "$node"
	run -0 ag2-store -s "$AG2_STORE&timeout=60" append /x <<<3
	node_kill -KILL "$node"
	run timeout 20 ag2-store -s "redis://127.0.0.1:$other/0?prefix={a}&timeout=1" append /x <<<2
	case $status in
	69 | 75) ;;
	*) status_is 75 ;;
	esac
	run -0 ag2-store -s "$elsewhere" cat /x
	output_is $'1\n2'
}

@test "a node that comes back empty has no store" {
	export AG2_STORE="$first?prefix={a}&timeout=60"
	ag2-store write /x <<<1
	owner '{a}'
	node_kill -KILL "$node"
	node_start "$node"
	wait_for 60 nodes_answer
	wait_for 60 nodes_agree
	run -66 ag2-store cat /x
	has "no store"
	run -0 ag2-store append /x <<<2
	output_is 0
}

has_replica() {
	redis-cli -p "${ports[3]}" INFO replication | grep -q master_link_status:up
}

# replica_has N: bytes of /x. (WAIT is only for what its own connection wrote.)
replica_has() {
	[ "$(printf 'READONLY\nSTRLEN {a}:/x\n' | redis-cli -p "${ports[3]}" | tail -n 1)" = "$1" ]
}

@test "when a replica takes over for a node that died, changes wait for it and go on there" {
	export AG2_STORE="redis://127.0.0.1:PORT/0?prefix={a}"
	ag2-store -s "$first?prefix={a}" write /x <<<1
	owner '{a}'
	AG2_STORE=${AG2_STORE/PORT/$other}
	ports+=($((10000 + RANDOM % 12000)))
	node_start 4
	wait_for 60 nodes_answer
	redis-cli --cluster add-node "127.0.0.1:${ports[3]}" "127.0.0.1:$port" --cluster-slave --cluster-master-id "$from" >/dev/null
	wait_for 60 has_replica
	ag2-store append /x <<<2
	wait_for 60 replica_has 4
	node_kill -KILL "$node"
	run timeout 20 ag2-store -s "$AG2_STORE&timeout=0.5" append /x <<<no
	[ "$status" -eq 69 ] || status_is 75
	run -0 ag2-store -s "$AG2_STORE&timeout=60" append /x <<<3
	run -0 ag2-store cat /x
	output_is $'1\n2\n3'
	[ "$(redis-cli -p "${ports[3]}" ROLE | head -n 1)" = master ]
}

@test "a lock excludes others for as long as its holder lives, whichever node they came through, also when the keys are moved" {
	export AG2_STORE="$first?prefix={a}"
	ag2-store write /x <<<1
	owner '{a}'
	AG2_STORE="redis://127.0.0.1:$other?prefix={a}" ag2-store lock /l -- sh -c 'echo $$; exec sleep 100' >out 2>said & holder=$!
	wait_for 30 test -s out
	for p in "${ports[@]}"; do
		run -75 ag2-store -s "redis://127.0.0.1:$p?prefix={a}" lock -w 1 /l -- true
	done
	redis-cli -p "$other" CLUSTER SETSLOT "$slot" IMPORTING "$from" >/dev/null
	redis-cli -p "$port" CLUSTER SETSLOT "$slot" MIGRATING "$to" >/dev/null
	redis-cli -p "$port" CLUSTER GETKEYSINSLOT "$slot" 100 | while IFS= read -r key; do
		redis-cli -p "$port" MIGRATE 127.0.0.1 "$other" "$key" 0 5000 </dev/null
	done
	redis-cli -p "$other" CLUSTER SETSLOT "$slot" NODE "$to"
	redis-cli -p "$port" CLUSTER SETSLOT "$slot" NODE "$to"
	run -75 ag2-store lock -w 1.5 /l -- true
	kill -0 "$holder"
	[ ! -s said ]
	kill "$holder"
	wait "$holder" || true
	ag2-store lock -w 30 /l -- true
	# The death of one that is seen frees it at once.
	ag2-store lock /l -- sh -c 'echo again; exec sleep 100' >out 2>said & holder=$!
	wait_for 30 grep -q again out
	kill -KILL "$holder"
	wait "$holder" || true
	ag2-store lock -w 60 /l -- true
}
