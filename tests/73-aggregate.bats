#!/usr/bin/env bats
# ag2-aggregate beyond AG2: what is given, when it is due, what a bad answer leaves, several at once.

load helper

setup() {
	clean_environment
	export AG2_STORE=disk:$TMP/s
	# Says "so" on top of what memory was, and keeps each prompt; `bad` makes it answer otherwise.
	cat >model <<-END
		#!/bin/sh
		n=0
		while ! mkdir '$TMP/taken.'\$n 2>/dev/null; do n=\$((n + 1)); done
		jq -rs '.[-1].data.parts[0].content' >'$TMP/prompt.'\$((n + 1))
		if [ -e '$TMP/bad' ]; then . '$TMP/bad'; exit; fi
		echo "memory \$((n + 1))"
	END
	chmod +x model
	export AG2_MODEL="exec:$TMP/model"
}

asked() {
	ls prompt.* 2>/dev/null | wc -l
}

# turn S N: a request and its answer.
turn() {
	ag2-store log user "$1" "question $2"
	printf '{"type": "ag2.events.types.ModelResponse", "data": {"created_at": 1.5, "message": {"__event__": "ag2.events.types.ModelMessage", "content": "answer %s"}}}\n' "$2" |
		ag2-store log append "$1"
}

# events_of N: what the model was given with prompt N.
events_of() {
	sed -n '/^User: \|^Assistant: \|^Tool: /p' "prompt.$1"
}

cursor() {
	ag2-store cat "/.ag2/aggregate/${1:-working-memory}/s"
}

@test "a run is given what came since the last, and the memory as it is" {
	turn s 1
	ag2-aggregate --stream s working-memory
	[ "$(events_of 1)" = "$(printf 'User: question 1\nAssistant: answer 1')" ]
	has "(empty)" "$(cat prompt.1)"
	turn s 2
	turn s 3
	ag2-aggregate --stream @last working_memory
	[ "$(events_of 2)" = "$(printf 'User: question 2\nAssistant: answer 2\nUser: question 3\nAssistant: answer 3')" ]
	has "memory 1" "$(cat prompt.2)"
	[ "$(ag2-store cat /memory/working.md)" = "memory 2" ]
}

@test "nothing new: no call, nothing told, nothing said; 1 with --exit-code" {
	turn s 1
	ag2-aggregate --stream s working-memory
	run -0 ag2-aggregate --stream s --status-fd 1 working-memory
	output_is ""
	run -1 ag2-aggregate --stream s --exit-code working-memory
	output_is ""
	[ "$(asked)" -eq 1 ]
}

@test "telemetry is nothing new, and neither is what an aggregation itself logs" {
	turn s 1
	ag2-aggregate --stream s working-memory
	echo '{"type": "ag2.events.types.UsageEvent", "data": {}}' | ag2-store log append s
	run -1 ag2-aggregate --stream s --exit-code working-memory
	[ "$(asked)" -eq 1 ]
}

@test "triggers count since the last success, in whatever process" {
	for i in 1 2 3 4 5 6 7; do
		turn s $i
		ag2-aggregate --stream s --every-n-turns 3 working-memory
		asked >>calls
	done
	[ "$(paste -sd ' ' calls)" = "0 0 1 1 1 2 2" ]
	[ "$(events_of 2 | grep -c User)" -eq 3 ]
}

@test "a turn with tool calls: one turn, and an event for each request, response and container" {
	call='{"__event__": "ag2.events.tool_events.ToolCallEvent", "id": "c%s", "name": "t", "arguments": "{}"}'
	response() {
		printf '{"type": "ModelResponse", "data": {"message": null, "tool_calls": {"__event__": "ToolCallsEvent", "calls": ['"$call"']}}}\n' "$1"
		printf '{"type": "ToolCallsEvent", "data": {"calls": ['"$call"']}}\n' "$1"
		printf '{"type": "ToolResultsEvent", "data": {"results": [{"__event__": "ToolResultEvent", "parent_id": "c%s", "name": "t", "result": {"parts": [{"__event__": "TextInput", "content": "r"}]}}]}}\n' "$1"
	}
	ag2-store log user s 1
	{ response 1; response 2; response 3; } | ag2-store log append s
	run -1 ag2-aggregate --stream s --exit-code --every-n-turns 2 working-memory
	run -1 ag2-aggregate --stream s --exit-code --every-n-events 11 working-memory
	run -0 ag2-aggregate --stream s --exit-code --every-n-events 10 working-memory
	turn s 2
	turn s 3
	run -1 ag2-aggregate --stream s --exit-code --every-n-turns 3 working-memory
	run -1 ag2-aggregate --stream s --exit-code --every-n-events 5 working-memory
	turn s 4
	run -0 ag2-aggregate --stream s --exit-code --every-n-turns 3 working-memory
	[ "$(asked)" -eq 2 ]
}

bad_answers() {
	local reason
	echo 'echo "printf %s"; printf "\\n \\t\\n"' >bad.blank
	echo ':' >bad.empty
	echo 'exit 3' >bad.failed
	for reason in length content_filter refusal; do
		printf '%s\n' "echo '{\"type\": \"ModelResponse\", \"data\": {\"message\": {\"__event__\": \"ModelMessage\", \"content\": \"half\"}, \"finish_reason\": \"$reason\"}}'" >bad.$reason
	done
	echo 'printf " \n\t\n"' >bad.blank
	echo "echo '{\"type\": \"ModelResponse\", \"data\": {\"message\": null}}'" >bad.null
	echo 'echo null' >bad.null-text
	echo "printf '\\302\\240\\n'" >bad.nbsp
}

@test "empty, blank, null, refused, cut-off and failed answers leave memory and cursor as they were, and the events for the next run" {
	bad_answers
	turn s 1
	ag2-aggregate --stream s working-memory
	ag2-aggregate --stream s conversation-summary
	turn s 2
	cursor >before
	ag2-store ls -R /memory >files
	for kind in bad.*; do
		echo "# $kind"
		cp "$kind" bad
		for strategy in working-memory conversation-summary; do
			run -69 --separate-stderr ag2-aggregate --stream s --status-fd 1 $strategy
			[ "$(jq -r '.type | split(".")[-1]' <<<"$output" | paste -sd ' ')" = "AggregationStarted AggregationFailed" ]
			[ "$(wc -l <<<"$stderr")" -eq 1 ] || fail "$stderr"
		done
		[ "$(ag2-store cat /memory/working.md)" = "memory 1" ]
		cursor | same before -
		ag2-store ls -R /memory | same files -
	done
	rm bad
	ag2-aggregate --stream s working-memory
	[ "$(events_of "$(asked)")" = "$(printf 'User: question 2\nAssistant: answer 2')" ]
}

@test "ten old versions are kept; a summary of a stream is one file, later than the earlier one, which it was given" {
	export AG2_NOW=1784553255
	for i in 1 2 3 4 5 6 7 8 9 10 11 12 13; do
		turn s $i
		ag2-aggregate --stream s conversation-summary
		[ "$(ag2-store ls -1 /memory/conversations | wc -l)" -eq 1 ]
		ag2-store ls -1 /memory/conversations >>names
		[ $i -eq 1 ] || has "$(printf '## Earlier summary\nmemory %s\n' $((i - 1)))" "$(cat prompt.$i)"
	done
	sort -u names | same names -
	[ "$(head -n 1 names)" = 20260720T131415_s.md ]
	[ "$(ag2-store ls -a -1 /.ag2/history/memory/conversations/s.md | wc -l)" -eq 10 ]
	AG2_NOW=1784540000 turn s 14
	AG2_NOW=1784540000 ag2-aggregate --stream s --keep-all conversation-summary
	[ "$(ag2-store ls -1 /memory/conversations | wc -l)" -eq 2 ]
	[ "$(ag2-store ls -1 /memory/conversations | tail -n 1)" = 20260720T131428_s.md ]
	hasnt "Earlier summary" "$(cat prompt.14)"
}

@test "the first fact is in the prompt of each of ten runs" {
	cat >model <<-END
		#!/bin/sh
		jq -rs '.[-1].data.parts[0].content' >'$TMP/prompt'
		grep -q 'the key is under the mat' '$TMP/prompt' || { echo 'it is gone' >&2; exit 1; }
		echo 'Summary: the key is under the mat.'
	END
	ag2-store log user s "the key is under the mat"
	for i in 1 2 3 4 5 6 7 8 9 10; do
		ag2-aggregate --stream s conversation-summary
		turn s $i
	done
	wc -c <prompt >size
	[ "$(cat size)" -lt 1200 ]
}

@test "--undo takes back output and cursor, once, and not what was changed since" {
	turn s 1
	ag2-aggregate --stream s working-memory
	cursor >before
	turn s 2
	ag2-aggregate --stream s working-memory
	ag2-aggregate --stream s --undo working-memory
	[ "$(ag2-store cat /memory/working.md)" = "memory 1" ]
	cursor | same before -
	run -1 ag2-aggregate --stream s --undo working-memory
	ag2-aggregate --stream s working-memory
	[ "$(events_of 3)" = "$(printf 'User: question 2\nAssistant: answer 2')" ]
	echo mine | ag2-store write /memory/working.md
	run -65 ag2-aggregate --stream s --undo working-memory
	[ "$(ag2-store cat /memory/working.md)" = mine ]
	ag2-aggregate --stream s conversation-summary
	ag2-aggregate --stream s --undo conversation-summary
	run -1 ag2-store exists /memory/conversations
	ag2-aggregate --stream s conversation-summary
	has "question 1" "$(cat "prompt.$(asked)")"
}

@test "--reset begins anew, --mark takes all as done" {
	turn s 1
	ag2-aggregate --stream s --mark working-memory
	run -1 ag2-aggregate --stream s --exit-code working-memory
	[ "$(asked)" -eq 0 ]
	turn s 2
	ag2-aggregate --stream s working-memory
	[ "$(events_of 1 | wc -l)" -eq 2 ]
	ag2-aggregate --stream s --reset working-memory
	[ "$(asked)" -eq 1 ]
	ag2-aggregate --stream s working-memory
	[ "$(events_of 2 | wc -l)" -eq 4 ]
}

@test "a log that others rewrote: the cursor is found again, or it is 65 until --reset" {
	for i in 1 2 3; do turn s $i; done
	ag2-aggregate --stream s working-memory
	turn s 4
	ag2-store cat /log/s.jsonl | tail -n +4 | ag2-store write /log/s.jsonl
	ag2-aggregate --stream s working-memory
	[ "$(events_of 2 | paste -sd ' ')" = "User: question 4 Assistant: answer 4" ]
	ag2-store cat /log/s.jsonl | head -n 2 | ag2-store write /log/s.jsonl
	run -65 ag2-aggregate --stream s working-memory
	has "--reset"
	[ "$(asked)" -eq 2 ]
	ag2-aggregate --stream s --reset working-memory
	ag2-aggregate --stream s working-memory
	[ "$(asked)" -eq 3 ]
}

# alike FIRST LAST: turns whose answers are the same line, byte for byte.
alike() {
	local i
	for i in $(seq -w "$1" "$2"); do
		printf '{"type": "ModelRequest", "data": {"created_at": 1.5, "parts": [{"__event__": "TextInput", "content": "question %s"}]}}\n' "$i"
		echo '{"type": "ModelResponse", "data": {"created_at": 1.5, "message": {"__event__": "ModelMessage", "content": "done"}}}'
	done | ag2-store log append s
}

@test "lines that are alike: where compaction or its --undo moved one to where another was, each event still counts once" {
	for AG2_STORE in disk:$TMP/s sqlite:$TMP/s.db; do
		rm -rf prompt.* taken.*
		alike 01 05
		ag2-aggregate --stream s working-memory
		alike 06 10
		ag2-compact --stream s -i tail-window:10
		ag2-aggregate --stream s working-memory
		[ "$(events_of 2 | grep -c '^User: question \(0[6-9]\|10\)$')" -eq 5 ]
		[ "$(events_of 2 | wc -l)" -eq 10 ]
		ag2-compact --stream s --undo
		run -1 ag2-aggregate --stream s --exit-code working-memory
		ag2-compact --stream s -i tail-window:4
		alike 11 11
		ag2-aggregate --stream s working-memory
		[ "$(events_of 3)" = "$(printf 'User: question 11\nAssistant: done')" ]
		alike 12 12
		ag2-aggregate --stream s working-memory
		[ "$(events_of 4)" = "$(printf 'User: question 12\nAssistant: done')" ]
		cursor | grep -q '^at [0-9]* [0-9]* behind 1 '
	done
}

@test "segments of a compaction are part of the history, its summary is not given besides, calls that it kept are given once" {
	turn s 1
	turn s 2
	ag2-aggregate --stream s working-memory
	turn s 3
	ag2-store cat /log/s.jsonl >log
	head -n 5 log | ag2-store write /log/s.dropped-1.jsonl
	{ echo '{"type": "ag2.events.types.CompactionSummary", "data": {"summary": "SUM", "event_count": 5}}'; tail -n +6 log; } |
		ag2-store write /log/s.jsonl
	ag2-aggregate --stream s working-memory
	[ "$(events_of 2 | paste -sd ' ')" = "User: question 3 Assistant: answer 3" ]
	hasnt SUM "$(cat prompt.2)"
	# a call without its result, which compaction keeps in front of what stays
	ag2-store log user s "question 4"
	echo '{"type": "ModelResponse", "data": {"message": {"__event__": "ModelMessage", "content": "calling"}, "tool_calls": {"__event__": "ToolCallsEvent", "calls": [{"__event__": "ToolCallEvent", "id": "c1", "name": "t", "arguments": "{}"}]}}}' | ag2-store log append s
	ag2-aggregate --stream s working-memory
	ag2-store log user s "question 5"
	ag2-store cat /log/s.jsonl >log
	grep -v calling log | head -n 3 | ag2-store write /log/s.dropped-2.jsonl
	{ echo '{"type": "CompactionSummary", "data": {"summary": "SUM2", "event_count": 3}}'; grep calling log; tail -n 1 log; } |
		ag2-store write /log/s.jsonl
	ag2-aggregate --stream s working-memory
	[ "$(events_of 4 | paste -sd ' ')" = "User: question 5" ] || fail "$(cat prompt.4)"
}

@test "exec: gets the events, what it is told, and after a failure the same again under the same name" {
	turn s 1
	strategy='exec:cat >"$AG2_RUN.events"; echo "$AG2_STREAM $AG2_STORE"; [ ! -e fail ]'
	touch fail
	run -69 ag2-aggregate --stream s "$strategy"
	turn s 2
	rm fail
	ls ./*.events >names
	run -0 --separate-stderr ag2-aggregate --stream s "$strategy"
	output_is ""
	has "s disk:$TMP/s" "$stderr"
	[ "$(wc -l <"$(cat names)")" -eq 2 ]
	[ "$(ls ./*.events | wc -l)" -eq 2 ]
	cat $(cat names) $(ls ./*.events | grep -v -F "$(cat names)") | cmp - <(ag2-store cat /log/s.jsonl)
	run -1 ag2-aggregate --stream s --exit-code "$strategy"
}

@test "as a filter: events in, text out, no store; what is not due gives back --existing" {
	unset AG2_STORE
	for i in 1 2; do
		printf '{"type": "ModelRequest", "data": {"parts": [{"__event__": "TextInput", "content": "q%s"}]}}\n' $i
	done >events
	run -0 ag2-aggregate working-memory <events
	output_is "memory 1"
	[ "$(events_of 1 | paste -sd ' ')" = "User: q1 User: q2" ]
	echo old >old
	run -0 ag2-aggregate --existing old conversation-summary <events
	has "$(printf '## Earlier summary\nold')" "$(cat prompt.2)"
	run -1 ag2-aggregate --existing old --every-n-turns 3 --exit-code working-memory <events
	output_is old
	run -0 ag2-aggregate --existing old working-memory </dev/null
	output_is old
	[ "$(asked)" -eq 2 ]
	run -0 ag2-aggregate 'exec:wc -l' <events
	output_is 2
	{ cat events; echo '{"type": "Mod'; } >torn
	run -65 --separate-stderr ag2-aggregate working-memory <torn
	output_is "memory 3"
	has "stdin:3" "$stderr"
	run -0 --separate-stderr ag2-aggregate --skip-bad working-memory <torn
	run -65 --separate-stderr ag2-aggregate --strict working-memory <torn
	output_is ""
	[ "$(asked)" -eq 4 ]
	[ ! -e "$XDG_STATE_HOME" ]
}

@test "a template: what is to be replaced is, every other brace is not" {
	turn s 1
	printf 'A {existing} B {events} C {other} {} } {existing}' >template
	ag2-store write /memory/working.md <<<'{events}'
	ag2-aggregate --stream s --template template working-memory
	[ "$(cat prompt.1)" = "$(printf 'A {events}\n B User: question 1\nAssistant: answer 1 C {other} {} } {events}')" ]
}

@test "what is too long for the model is given in parts" {
	cat >model <<-END
		#!/bin/sh
		jq -rs '.[-1].data.parts[0].content' >'$TMP/now'
		[ "\$(grep -c '^User: ' '$TMP/now')" -le 2 ] || { echo 'context_length_exceeded' >&2; exit 1; }
		grep '^User: ' '$TMP/now' >>'$TMP/given'
		echo ok
	END
	for i in 1 2 3 4 5 6 7; do turn s $i; done
	run -0 ag2-aggregate --stream s --every-n-turns 5 --status-fd 1 working-memory
	[ "$(sort -u given | wc -l)" -eq 7 ]
	[ "$(wc -l <given)" -eq 7 ]
	[ "$(grep -c Started <<<"$output")" -eq "$(grep -c Completed <<<"$output")" ]
}

# ---- the agent file ----

agent() {
	printf 'model: "%s"\nknowledge:\n' "$AG2_MODEL" >agent.yaml
	printf '  %s\n' "$@" >>agent.yaml
	chmod 600 agent.yaml
}

@test "the file's triggers rule: none is never due, on_end is anything new, the command line overrules" {
	turn s 1
	agent 'aggregate: working_memory'
	run -1 ag2-aggregate -c agent.yaml --stream s --exit-code
	agent 'aggregate: working_memory' 'aggregate_trigger: {every_n_turns: 2}'
	run -1 ag2-aggregate -c agent.yaml --stream s --exit-code
	run -0 ag2-aggregate -c agent.yaml --stream s --exit-code --every-n-turns 1
	turn s 2
	agent 'aggregate: working_memory' 'aggregate_trigger: {on_end: true}'
	run -0 ag2-aggregate -c agent.yaml --stream s --exit-code
	[ "$(asked)" -eq 2 ]
}

@test "a list of aggregates: each has its own trigger, prompt and cursor" {
	agent 'aggregate:' '- {strategy: working_memory, prompt: "W {events}", trigger: {on_end: true}}' \
		'- {strategy: conversation_summary, prompt: "C {events}", trigger: {every_n_turns: 2}}' \
		'- {strategy: working_memory, prompt: "again {events}", trigger: {on_end: true}}'
	turn s 1
	ag2-aggregate -c agent.yaml --stream s
	turn s 2
	ag2-aggregate -c agent.yaml --stream s
	[ "$(head -qn 1 prompt.* | paste -sd ,)" = "W User: question 1,again User: question 1,W User: question 2,C User: question 1,again User: question 2" ]
	turn s 3
	ag2-aggregate -c agent.yaml --stream s working-memory
	[ "$(asked)" -eq 6 ]
}

# ---- all ----

@test "--all: every stream that is due, silently; then none is" {
	for s in a b c d e; do turn $s 1; done
	run -0 ag2-aggregate --all -j 3 conversation-summary
	output_is ""
	[ "$(asked)" -eq 5 ]
	[ "$(ag2-store ls -1 /memory/conversations | wc -l)" -eq 5 ]
	run -1 ag2-aggregate --all --exit-code conversation-summary
	output_is ""
	turn b 2
	ag2-aggregate --all conversation-summary
	[ "$(asked)" -eq 6 ]
}

@test "--all: a line for each stream that failed, 69, and the others are done" {
	for s in a b c; do turn $s 1; done
	turn b fail
	echo 'if grep -q fail "$TMPDIR/prompt.$((n + 1))"; then echo no luck >&2; exit 1; fi; echo fine' >bad
	run -69 ag2-aggregate --all conversation-summary
	[ "${#lines[@]}" -eq 1 ]
	has "stream b"
	has "no luck"
	[ "$(ag2-store ls -1 /memory/conversations | wc -l)" -eq 2 ]
}

@test "--all: what concerns every stream ends it after one line" {
	for s in a b c; do turn $s 1; done
	run -77 ag2-aggregate --all -m openai:m working-memory
	[ "${#lines[@]}" -eq 1 ]
	printf 'model: {provider: openai, model: m, base_url: "http://127.0.0.1:1/v1"}\nknowledge: {aggregate: working_memory, aggregate_trigger: {on_end: true}}\n' >agent.yaml
	chmod 600 agent.yaml
	OPENAI_API_KEY=k run -69 ag2-aggregate -c agent.yaml --all
	[ "${#lines[@]}" -eq 1 ]
}

@test "--max-calls, --idle, --mark" {
	for s in a b c; do turn $s 1; done
	ag2-aggregate --all --max-calls 2 conversation-summary
	[ "$(asked)" -eq 2 ]
	turn d 1
	run -1 ag2-aggregate --all --idle 1000 --exit-code conversation-summary
	touch -d '1 hour ago' s/log/d.jsonl
	run -0 ag2-aggregate --all --idle 1000 --exit-code conversation-summary
	[ "$(asked)" -eq 3 ]
	ag2-aggregate --all --mark conversation-summary
	run -1 ag2-aggregate --all --exit-code conversation-summary
	[ "$(asked)" -eq 3 ]
}

@test "--all, having found nothing new, looks again after --undo, --reset and new events" {
	for s in a b c; do turn $s 1; done
	for i in 1 2 3; do ag2-aggregate --all working-memory; done
	[ "$(asked)" -eq 3 ]
	run -0 ag2-store cat /.ag2/seen/working-memory
	[ "${#lines[@]}" -eq 3 ]
	ag2-aggregate --stream c --undo working-memory
	ag2-aggregate --all working-memory
	[ "$(asked)" -eq 4 ]
	for i in 1 2; do ag2-aggregate --all working-memory; done
	ag2-aggregate --stream b --reset working-memory
	ag2-aggregate --all working-memory
	[ "$(asked)" -eq 5 ]
	for i in 1 2; do ag2-aggregate --all working-memory; done
	turn aa 1
	turn c 2
	ag2-aggregate --all working-memory
	[ "$(asked)" -eq 7 ]
	ag2-aggregate --all working-memory
	[ "$(asked)" -eq 7 ]
}

@test "--all notes what came and is not due yet, and finds when it is: more events, another trigger, a compaction meanwhile" {
	local all="ag2-aggregate --all --idle 0 working-memory"
	for s in a b c; do turn $s 1; done
	for i in 1 2; do $all --every-n-turns 2; done
	[ "$(asked)" -eq 0 ]
	run -0 ag2-store cat /.ag2/seen/working-memory
	[ "$(cut -d ' ' -f 1,3- <<<"$output" | paste -sd ' ')" = "a 2 1 2 b 2 1 2 c 2 1 2" ]
	turn a 2
	$all --every-n-turns 2
	[ "$(asked)" -eq 1 ]
	$all --every-n-events 2 --max-calls 1
	[ "$(asked)" -eq 2 ]
	# c is aggregated, and its log stays as it is: what was noted is too much, and is found to be
	ag2-aggregate --stream c working-memory
	[ "$(asked)" -eq 3 ]
	$all --every-n-turns 1
	[ "$(asked)" -eq 3 ]
	turn b 2
	$all --every-n-turns 3
	ag2-compact --stream b -i tail-window:1
	$all --every-n-turns 2
	[ "$(asked)" -eq 3 ]
	turn b 3
	$all --every-n-turns 2
	[ "$(asked)" -eq 4 ]
	$all --mark --every-n-turns 9
	$all
	[ "$(asked)" -eq 4 ]
}

# A model that waits until it is let go.
slow_model() {
	cat >model <<-END
		#!/bin/sh
		jq -rs '.[-1].data.parts[0].content' >'$TMP/in.'\$\$
		mv '$TMP/in.'\$\$ '$TMP/prompt.'\$\$
		for i in \$(seq 6000); do [ -e '$TMP/go' ] || sleep 0.02; done
		echo done
	END
}

@test "five --all on one host: one runs, the others end at once with 75 and say nothing" {
	slow_model
	for s in a b c; do turn $s 1; done
	ag2-aggregate --all conversation-summary 3>&- & first=$!
	wait_for 20 sh -c 'ls prompt.*'
	for i in 1 2 3 4; do
		run -75 ag2-aggregate --all conversation-summary
		output_is ""
	done
	touch go
	wait "$first"
	[ "$(asked)" -eq 3 ]
}

@test "two hosts over one store: the streams are shared out, none is done twice" {
	slow_model
	for s in a b c d; do turn $s 1; done
	AG2_HOST=one ag2-aggregate --all conversation-summary 3>&- & one=$!
	AG2_HOST=two ag2-aggregate --all conversation-summary 3>&- & two=$!
	wait_for 20 sh -c '[ "$(ls prompt.* | wc -l)" -eq 2 ]'
	touch go
	wait "$one"
	wait "$two"
	[ "$(asked)" -eq 4 ]
	[ "$(ag2-store ls -1 /memory/conversations | wc -l)" -eq 4 ]
}

@test "two runs on one stream: one call" {
	slow_model
	turn s 1
	ag2-aggregate --stream s working-memory 3>&- & one=$!
	ag2-aggregate --stream s working-memory 3>&- & two=$!
	wait_for 20 sh -c 'ls prompt.*'
	touch go
	wait "$one"
	wait "$two"
	[ "$(asked)" -eq 1 ]
}

@test "memory that is changed while the model works: it is read and merged again" {
	turn s 1
	echo 'if [ $n = 0 ]; then echo mine | ag2-store write /memory/working.md; fi; echo merged' >bad
	ag2-aggregate --stream s working-memory
	[ "$(asked)" -eq 2 ]
	has mine "$(cat prompt.2)"
	[ "$(ag2-store cat /memory/working.md)" = merged ]
}

# ---- mistakes ----

@test "mistakes of usage are 64, a store or stream that is not there 66" {
	run -64 ag2-aggregate
	run -64 ag2-aggregate nonsense
	run -64 ag2-aggregate workin-memory
	has "working-memory"
	run -64 ag2-aggregate --stream s --all working-memory
	run -64 ag2-aggregate --stream s -j 2 working-memory
	run -64 ag2-aggregate --undo working-memory
	run -64 ag2-aggregate --stream s --existing f working-memory
	run -64 ag2-aggregate --all --status-fd 77 working-memory
	run -66 ag2-aggregate --stream s working-memory
	turn s 1
	run -66 ag2-aggregate --stream other working-memory
	run -66 ag2-aggregate --stream @last --template nofile working-memory
	unset AG2_MODEL
	run -78 ag2-aggregate --stream s working-memory
	run -1 ag2-store exists /memory
}
