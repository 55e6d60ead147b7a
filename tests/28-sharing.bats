#!/usr/bin/env bats
# A store shared with AG2, at the same time: a client that does exactly what AG2 does (its statements over one connection that
# stays open, its commands, its files written whole and appended to, all without a lock of ours), our writers, our readers.

load helper
load redis
load backend
load ag2

kinds=$everywhere

setup() {
	clean_environment
	hammer=$TOOLS/storehammer
}

line() {
	printf '{"type": "ag2.events.input_events.ModelRequest", "data": {"content": "%s"}}\n' "$1"
}

# ---- what goes on at the same time ----

# An AG2 process; what it does to a path of its own is seen by itself at once.
ag2_works() {
	local i
	ag2 open
	for i in $(seq 40); do
		ag2 put "/memory/ag2-$((i % 5))" "value $i" || return 1
		[ "$(ag2 get "/memory/ag2-$((i % 5))")" = "value $i" ] || return 2
		ag2 add /log/agent.jsonl "$(line "agent $i")" || return 3
		ag2 put "/artifacts/gone-$i" x && ag2 del "/artifacts/gone-$i" || return 4
	done
}

we_write() {
	local i
	for i in $(seq 40); do
		ag2-store log user ours "message $i" || return 1
		ag2-store write /memory/working.md <<<"version $i" || return 2
	done
}

# Whole records, whole lines, and never an error, from the first file on.
we_read() {
	local n
	while [ ! -e stop ]; do
		ag2-store exists /memory/records || return 1
		n=$(ag2-store cat /memory/records | wc -c) || return 2
		[ "$((n % 200))" -eq 0 ] || { echo "$n bytes"; return 3; }
		ag2-store cat /memory/working.md >working || return 4
		[ "$(wc -l <working)" -eq 1 ] && grep -q '^version [0-9]*$' working || return 5
		ag2-store ls /memory >names || return 6
		grep -qx records names || return 7
		ag2-store log cat ours >seen || return 8
		ag2-store log tail -n 3 ours >tail || return 9
		[ "$(jq -r .data.parts[0].content <tail | sed 's/[0-9]*$//' | sort -u)" = "message " ] || return 10
	done 2>errors
	[ ! -s errors ]
}

share() {
	local pids=() p bad=0 i
	ag2-store init >/dev/null
	"$hammer" append "$AG2_STORE" /memory/records first 1 200 >first
	we_write >/dev/null & pids+=($!)
	wait_for 20 ag2-store exists /memory/working.md
	(we_read) >read.out 2>&1 3>&- & reader=$!
	"$hammer" append "$AG2_STORE" /memory/records one 150 200 >one 3>&- & pids+=($!)
	"$hammer" append "$AG2_STORE" /memory/records two 150 200 >two 3>&- & pids+=($!)
	(ag2_works) >ag2.out 2>&1 3>&- & pids+=($!)
	for p in "${pids[@]}"; do wait "$p" || bad=$?; done
	touch stop
	wait "$reader" || fail "a reader: $? $(cat read.out errors)"
	rm stop
	[ "$bad" -eq 0 ] || fail "a writer: $bad $(cat ag2.out)"
	# Nothing of ours is lost, every offset was right.
	"$hammer" check "$AG2_STORE" /memory/records | sort >there
	sort first one two | diff - there
	[ "$(ag2-store log cat ours | jq -r .data.parts[0].content | xargs)" = "$(printf 'message %s ' $(seq 40) | xargs)" ]
	run -0 ag2-store cat /memory/working.md
	output_is "version 40"
	# Nothing of AG2's either, and each sees what the other wrote.
	[ "$(ag2-store log cat agent | jq -r .data.content | xargs)" = "$(printf 'agent %s ' $(seq 40) | xargs)" ]
	for i in 36 37 38 39 40; do
		[ "$(ag2-store cat "/memory/ag2-$((i % 5))")" = "value $i" ]
	done
	run -0 ag2-store ls /artifacts
	output_is SKILL.md
	ag2 open
	ag2 get /log/ours.jsonl >ours
	ag2-store log cat ours | diff - ours
	run -0 ag2-store fsck
	output_is ""
	# AG2 writes a log from its own memory, as it was ten messages ago: that is lost, which fsck tells.
	ag2-aggregate --stream ours -m exec:'cat >/dev/null; echo remembered' working-memory
	ag2 put /log/ours.jsonl "$(head -n 30 ours)"
	run -1 ag2-store fsck
	has "/log/ours.jsonl: is shorter than its cursor"
	[ "${#lines[@]}" -eq 1 ]
	ag2-store log user ours "goes on"
	[ "$(ag2-store log cat ours | wc -l)" -eq 31 ]
	ag2 add /log/ours.jsonl "$(line "so does AG2")"
	run -0 ag2-store log tail -n 2 ours
	has "goes on"
	has "so does AG2"
}

# on KIND: where AG2_TEST_STORE does not exclude it.
on() {
	case " $everywhere " in
	*" $1 "*) ;;
	*) skip "AG2_TEST_STORE is $everywhere" ;;
	esac
	kind=$1
	backend_use "$kind"
}

@test "a directory: AG2 writes files whole and appends to them beside our writers and readers" {
	on disk
	share
}

@test "a database: AG2's statements over its one connection beside our writers and readers" {
	on sqlite
	ag2 open	# which makes AG2's table
	share
}

@test "a database that keeps AG2's table: the same" {
	on sqlite-ag2
	share
	[ "$(sqlite3 store.db "SELECT group_concat(name) FROM sqlite_master WHERE type <> 'index'")" = entries ]
}

@test "a Redis server: AG2's commands beside our writers and readers" {
	on redis
	share
}

@test "a Redis Cluster: the same" {
	on cluster
	share
}
