#!/usr/bin/env bats
# Compaction and aggregation on a disk that gets full: 74, nothing lost, nothing twice, and the next run completes.

load helper
load redis
load crash

setup() {
	clean_environment
	STEP=${SOAK:+1}	# SOAK: at every call
	STEP=${STEP:-3}
	# Memory as a ledger: what was there, and what is new.
	cat >model <<-'END'
		#!/bin/sh
		jq -rs '.[-1].data.parts[0].content' | sed -e '1,/^## The notes as they are/d' -e '/^(empty)$/d' -e '/^$/d' -e '/^## /d'
	END
	chmod +x model
	export AG2_MODEL="exec:$TMP/model"
}

teardown() {
	redis_stop
}

request() {
	printf '{"type": "ag2.events.input_events.ModelRequest", "data": {"created_at": %s.5, "parts": [{"__event__": "ag2.events.input_events.TextInput", "content": "question %s"}]}}\n' "$1" "$1"
}

requests() {
	local i
	for i in $(seq "$1" "$2"); do request "$i"; done
}

# full N COMMAND...: with a disk on which the program's change number N finds no room any more.
full() {
	local n=$1
	shift
	env LD_PRELOAD="$TOOLS/full.so" ASAN_OPTIONS=verify_asan_link_order=0:detect_leaks=0 FULL_DIR="$TMP/s" FULL_AT="$n" "$@"
}

history() {
	ag2-store log cat s | grep -v 'CompactionSummary\|UsageEvent'
}

# walk CHECK COMMAND...: CHECK is called behind each run, and with "done" behind the next one, which has room.
walk() {
	local check=$1 k=1 rc fulls=0
	shift
	keep_store
	while :; do
		fresh_store
		rc=0
		full $k "$@" 2>errors || rc=$?
		[ $rc -eq 0 ] || [ $rc -eq 74 ] || fail "no room from change $k on: status $rc" "$(cat errors)"
		[ $rc -eq 0 ] || [ "$(grep -vc 'dropping an unfinished change' errors)" -eq 1 ] || fail "no room from change $k on: told was" "$(cat errors)"
		[ $rc -eq 0 ] || fulls=$((fulls + 1))
		"$check" "no room from change $k on"
		"$@" || fail "no room from change $k on: the next run failed"
		"$check" "the run after the one without room from change $k on" done
		[ $rc -ne 0 ] || [ -s errors ] || break
		k=$((k + STEP))
		[ $k -lt 1000 ]
	done
	echo "# $AG2_STORE $*: full $fulls times of $k"
	[ $fulls -gt 0 ]
}

compacted() {
	history >now
	cmp -s all now || fail "$1: an event is missing or twice:" "$(diff all now | cut -c1-150 | head -5)"
	[ -z "$2" ] || [ "$(ag2-store log cat --current s | wc -l)" -eq 5 ] || fail "$1: not compacted"
}

walk_compact() {
	export AG2_STORE=$1
	requests 1 9 | ag2-store log append s
	ag2-compact --stream s -i tail-window:5
	requests 10 40 | ag2-store log append s
	history >all
	walk compacted ag2-compact --stream s -i tail-window:5
}

aggregated() {
	history >now
	cmp -s all now || fail "$1: the log was changed"
	ag2-store cat /memory/working.md >memory
	[ -z "$2" ] && cmp -s before memory || { cat memory; echo; } | cmp -s after - || fail "$1: memory:" "$(cat memory)"
}

walk_aggregate() {
	export AG2_STORE=$1
	requests 1 2 | ag2-store log append s
	ag2-aggregate --stream s working-memory
	ag2-store cat /memory/working.md >before
	requests 3 5 | ag2-store log append s
	history >all
	printf 'User: question %s\n' 1 2 3 4 5 >after
	walk aggregated ag2-aggregate --stream s working-memory
}

@test "compaction (disk)" {
	walk_compact "disk:$TMP/s"
}

@test "compaction (sqlite)" {
	walk_compact "sqlite:$TMP/s.db"
}

@test "aggregation (disk)" {
	walk_aggregate "disk:$TMP/s"
}

@test "aggregation (sqlite)" {
	walk_aggregate "sqlite:$TMP/s.db"
}

# A server's memory is its disk.
@test "compaction and aggregation (redis)" {
	redis_start
	export AG2_STORE=$url
	requests 1 20 | ag2-store log append s
	history >all
	rc CONFIG SET maxmemory 1 >/dev/null
	run --separate-stderr ag2-compact --stream s -i tail-window:5
	status_is 74
	[ "${#stderr_lines[@]}" -eq 1 ]
	run --separate-stderr ag2-aggregate --stream s working-memory
	status_is 74
	[ "${#stderr_lines[@]}" -eq 1 ]
	compacted "without room"
	run -1 ag2-store exists /memory/working.md
	rc CONFIG SET maxmemory 0 >/dev/null
	ag2-compact --stream s -i tail-window:5
	ag2-aggregate --stream s working-memory
	compacted "the next run" done
	printf 'User: question %s\n' $(seq 20) >after
	aggregated "the next run" done
}
