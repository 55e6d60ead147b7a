#!/usr/bin/env bats
# Compactions that die at any moment: the full history has each event once, and the next run completes.

load helper
load redis
load crash

setup() {
	crash_setup
	STEP=${SOAK:+1}	# SOAK: every call
	STEP=${STEP:-7}
	cat >model <<-'END'
		#!/bin/sh
		cat >/dev/null
		echo In short.
	END
	chmod +x model
}

teardown() {
	redis_stop
}

event() {
	printf '{"type": "ag2.events.input_events.ModelRequest", "data": {"created_at": 1.0, "parts": [{"__event__": "ag2.events.input_events.TextInput", "content": "%s"}]}}\n' "$1"
}

waiting() {
	printf '{"type": "ag2.events.types.ModelResponse", "data": {"tool_calls": {"__event__": "ag2.events.tool_events.ToolCallsEvent", "calls": [{"__event__": "ag2.events.tool_events.ToolCallEvent", "id": "p1", "name": "t", "arguments": "{}"}]}, "message": null}}\n'
}

# Events of the full history, once each, in any order: a call that waits stands before older ones.
history() {
	ag2-store log cat s | grep -v 'CompactionSummary\|UsageEvent' | sort
}

# A segment before this one, a call that waits, and enough that goes.
begin() {
	local i
	{ for i in $(seq 6); do event "first $i"; done; } | ag2-store log append s
	ag2-compact --stream s -i tail-window:2
	{ waiting; for i in $(seq 40); do event "second $i $(printf 'x%.0s' $(seq 200))"; done; } | ag2-store log append s
	keep_store
	history >all
	[ "$(wc -l <all)" -eq 47 ]
}

# check WHAT: of a store after a death or the next run.
check() {
	history >now
	cmp -s all now || fail "$1: an event is missing or twice:" "$(diff all now | cut -c1-150 | head -5)"
	ag2-store log cat --current s >current
	[ "$(grep -c CompactionSummary current)" -le 1 ] || fail "$1: more than one summary"
	ag2-store ls -1 /log | sed -n 's/.*dropped-\([0-9]*\).*/\1/p' | sort -n >numbers
	seq "$(wc -l <numbers)" | cmp -s - numbers || fail "$1: segments are not contiguous:" "$(cat numbers)"
}

walk() {
	local k=1 rc old=0 new=0
	export AG2_STORE=$1
	shift
	begin
	while :; do
		fresh_store
		rc=0
		"$TOOLS/killat" $k ag2-compact --stream s -i "$@" || rc=$?
		[ $rc -le 1 ] || fail "call $k: killat gave $rc"
		check "killed before call $k"
		if [ "$(wc -l <current)" -gt 40 ]; then old=$((old + 1)); else new=$((new + 1)); fi
		ag2-store log append s </dev/null
		ag2-compact --stream s -i "$@" || fail "killed before call $k: the next run failed"
		check "the run after the one killed before call $k"
		[ "$(grep -c 'second\|first' current)" -eq 5 ] || fail "killed before call $k: $(wc -l <current) lines after the next run"
		grep -q '"p1"' current || fail "killed before call $k: the call that waits is gone"
		[ $rc -eq 0 ] || break
		k=$((k + STEP))
	done
	echo "# $AG2_STORE $*: $k calls, the log was old $old times, new $new times"
	[ $old -gt 0 ]
	[ $new -gt 0 ]
}

walk_undo() {
	local k=1 rc
	export AG2_STORE=$1
	begin
	ag2-compact --stream s -i tail-window:5
	keep_store
	while :; do
		fresh_store
		rc=0
		"$TOOLS/killat" $k ag2-compact --stream s --undo || rc=$?
		[ $rc -le 1 ] || fail "call $k: killat gave $rc"
		check "undo killed before call $k"
		[ $rc -eq 0 ] || break
		k=$((k + STEP))
	done
	[ "$(wc -l <current)" -eq 43 ]
}

@test "killed before any one of its system calls: each event is there once, the next run completes (tail-window, disk)" {
	walk "disk:$TMP/s" tail-window:5
}

@test "killed before any one of its system calls: each event is there once, the next run completes (tail-window, sqlite)" {
	walk "sqlite:$TMP/s.db" tail-window:5
}

@test "so when a model summarizes (disk)" {
	walk "disk:$TMP/s" -m "exec:$TMP/model" summarize:5
}

@test "so when a model summarizes (sqlite)" {
	walk "sqlite:$TMP/s.db" -m "exec:$TMP/model" summarize:5
}

# Every death there costs the next run half a second, until it is seen.
@test "so on redis: tail-window, summarize, --undo" {
	redis_start
	STEP=${SOAK:+1}
	STEP=${STEP:-61}
	walk "$url" tail-window:5
	rc FLUSHALL
	walk "$url" -m "exec:$TMP/model" summarize:5
	rc FLUSHALL
	walk_undo "$url"
}

@test "so with --undo" {
	walk_undo "disk:$TMP/s"
	walk_undo "sqlite:$TMP/s.db"
}

# Others append while one compacts again and again: nothing is lost, twice or torn.
beside() {
	local i job
	export AG2_STORE=$1
	event 0 | ag2-store log append s
	{ for i in $(seq 150); do event "$i" | ag2-store log append s; done; } 3>&- & job=$!
	while kill -0 "$job" 2>/dev/null; do
		ag2-compact --stream s -i tail-window:5 || [ $? -eq 75 ]
	done
	wait "$job"
	ag2-compact --stream s -i tail-window:5
	ag2-store log cat s | jq -r '.data.parts[0].content' >got
	seq 0 150 >want
	same want got
	[ "$(ag2-store log cat --current s | wc -l)" -eq 5 ]
}

@test "a writer beside compactions: each event once and in order (disk, sqlite, redis)" {
	beside "disk:$TMP/s"
	beside "sqlite:$TMP/s.db"
	redis_start
	beside "$url"
}
