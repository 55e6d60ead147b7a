#!/usr/bin/env bats
# Aggregations that die at any moment: memory is the old or the new version whole, and each event is in it once.

load helper
load redis
load crash

setup() {
	crash_setup
	# Memory as a ledger: what was there, and what is new.
	cat >model <<-'END'
		#!/bin/sh
		jq -rs '.[-1].data.parts[0].content' | sed -e '1,/^## The notes as they are/d' -e '/^(empty)$/d' -e '/^$/d' -e '/^## /d'
	END
	chmod +x model
	export AG2_MODEL="exec:$TMP/model"
	# SOAK: every call, 200 turns
	STEP=${SOAK:+1} TURNS=${SOAK:+200}
	STEP=${STEP:-13} TURNS=${TURNS:-50}
}

teardown() {
	redis_stop
}

request() {
	printf '{"type": "ag2.events.input_events.ModelRequest", "data": {"created_at": %s.5, "parts": [{"__event__": "ag2.events.input_events.TextInput", "content": "question %s"}]}}\n' "$1" "$1"
}

response() {
	printf '{"type": "ag2.events.types.ModelResponse", "data": {"created_at": %s.7, "message": {"__event__": "ag2.events.types.ModelMessage", "content": "answer %s"}}}\n' "$1" "$1"
}

call() {
	printf '{"type": "ag2.events.types.ModelResponse", "data": {"created_at": %s.6, "message": null, "tool_calls": {"__event__": "ToolCallsEvent", "calls": [{"__event__": "ToolCallEvent", "id": "c%s", "name": "call%s", "arguments": "{}"}]}}}\n' "$1" "$1" "$1"
}

result() {
	printf '{"type": "ag2.events.tool_events.ToolResultsEvent", "data": {"created_at": %s.6, "results": [{"__event__": "ToolResultEvent", "parent_id": "c%s", "name": "t", "result": {"parts": [{"__event__": "TextInput", "content": "result %s"}]}}]}}\n' "$1" "$1" "$1"
}

# What does not change by a usage event.
history() {
	ag2-store log cat s | grep -v UsageEvent
}

walk() {
	local k=1 rc old=0 new=0
	export AG2_STORE=$1
	{ request 1; response 1; } | ag2-store log append s
	ag2-aggregate --stream s working-memory
	{ request 2; response 2; request 3; response 3; } | ag2-store log append s
	ag2-store cat /memory/working.md >before
	history >log
	printf 'User: question %s\nAssistant: answer %s\n' 1 1 2 2 3 3 >after
	keep_store
	while :; do
		fresh_store
		rc=0
		"$TOOLS/killat" $k ag2-aggregate --stream s working-memory || rc=$?
		[ $rc -le 1 ] || fail "call $k: killat gave $rc"
		ag2-store cat /memory/working.md >now
		if cmp -s now before; then
			old=$((old + 1))
		else
			{ cat now; echo; } | cmp -s - after || fail "killed before call $k, memory is neither old nor new:" "$(cat now)"
			new=$((new + 1))
		fi
		history | cmp -s - log || fail "killed before call $k: the log was changed"
		ag2-aggregate --stream s working-memory || fail "killed before call $k: the next run failed"
		{ ag2-store cat /memory/working.md; echo; } >now
		same after now || fail "killed before call $k: an event is missing or twice"
		ag2-store history /memory/working.md >versions
		[ "$(wc -l <versions)" -eq 1 ] || fail "killed before call $k:" "$(cat versions)"
		[ $rc -eq 0 ] || break
		k=$((k + STEP))
	done
	echo "# $1: $k calls, memory was old $old times, new $new times"
	[ $old -gt 0 ]
	[ $new -gt 0 ]
}

@test "killed before any one of its system calls: old or new, and the next run completes it (disk)" {
	walk "disk:$TMP/s"
}

@test "killed before any one of its system calls: old or new, and the next run completes it (sqlite)" {
	walk "sqlite:$TMP/s.db"
}

# Every death there may cost the next run half a second, until it is seen.
@test "killed before any one of its system calls: old or new, and the next run completes it (redis)" {
	redis_start
	STEP=${SOAK:+1}
	STEP=${STEP:-47}
	walk "$url"
}

# maybe_killed TURN CMD...: every tenth turn the command is killed, somewhere.
maybe_killed() {
	local turn=$1
	shift
	if [ $((turn % 10)) -eq 0 ]; then
		"$TOOLS/killat" $((turn * 37 % 331 + 20)) "$@" || [ $? -le 1 ]
	else
		"$@"
	fi
}

long_run() {
	local i
	export AG2_STORE=$1
	for i in $(seq "$2"); do
		request "$i"
		# every seventh turn leaves a call open at the end, whose result comes in the next
		case $((i % 7)) in
		0) call "$i" ;;
		1) [ "$i" -eq 1 ] || result $((i - 1)); response "$i" ;;
		3) call "$i"; result "$i"; response "$i" ;;
		*) response "$i" ;;
		esac
	done >all
	while IFS= read -r line; do
		printf '%s\n' "$line" | ag2-store log append s
		case $line in
		*"question "*) i=${line##*question } i=${i%%\"*} && continue ;;
		esac
		maybe_killed "$i" ag2-aggregate --stream s working-memory
		[ $((i % 3)) -ne 0 ] && [ $((i % 10)) -ne 0 ] || maybe_killed "$i" ag2-compact --stream s -i tail-window:8
	done <all
	ag2-aggregate --stream s working-memory
	[ "$(ag2-store ls -1 /log | wc -l)" -gt 5 ]
	ag2-aggregate -m "$AG2_MODEL" working-memory <all | sort >want
	ag2-store cat /memory/working.md | sort >got
	[ "$(sort -u want | wc -l)" -eq "$(wc -l <want)" ]
	echo >>got
	sed -i '/^$/d' got
	same want got
}

@test "many turns with compaction, open calls, and a kill every tenth: each event is given once (disk)" {
	long_run "disk:$TMP/s" "$TURNS"
}

@test "many turns with compaction, open calls, and a kill every tenth: each event is given once (sqlite)" {
	long_run "sqlite:$TMP/s.db" "$TURNS"
}

@test "many turns with compaction, open calls, and a kill every tenth: each event is given once (redis)" {
	redis_start
	long_run "$url" "$TURNS"
}
