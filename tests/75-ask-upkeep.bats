#!/usr/bin/env bats
# What follows the answer of a turn: aggregation, then compaction.

load helper

setup() {
	clean_environment
	log=$TMP/state/log/s.jsonl
}

# agent LINE...: lines of `knowledge`; the model answers "answer", upkeep's model what `upkeep.sh` says.
agent() {
	{
		cat <<X
name: journal
model: "exec:echo answer"
knowledge:
  store: disk:./state
  bootstrap: none
X
		printf '  %s\n' "$@"
	} >agent.yaml
	chmod 600 agent.yaml
}

ask() {
	ag2-ask -c agent.yaml --stream s "$@"
}

types() {
	jq -r '.type | split(".") | last' "$1" | tr '\n' ' '
}

@test "the turn of an agent file runs aggregation, then compaction, and tells both" {
	echo 'echo kept' >upkeep.sh
	agent 'aggregate: {strategy: working_memory, model: "exec:sh upkeep.sh"}' 'aggregate_trigger: {on_end: true}' \
		'compact: tail-window:2' 'compact_trigger: {max_events: 3}'
	run -0 --separate-stderr ask --status-fd 3 one 3>told
	output_is answer
	[ "$(types told)" = "AggregationStarted AggregationCompleted " ]
	[ "$(cat state/memory/working.md)" = kept ]
	run -0 --separate-stderr ask --status-fd 3 two 3>told
	output_is answer
	[ "$(types told)" = "AggregationStarted AggregationCompleted CompactionStarted CompactionCompleted " ]
	[ "$(jq -r '.data.parts[0].content // empty' "$log")" = two ]
	[ "$(ag2-store -s state log cat s | jq -r '.data.parts[0].content // empty' | tr '\n' ' ')" = "one two " ]
}

@test "upkeep that fails does not spoil the turn: the answer, 0, a line on stderr, the failure in log ls -l" {
	agent 'aggregate: {strategy: working_memory, model: "exec:exit 4"}' 'aggregate_trigger: {on_end: true}' \
		'compact: {strategy: summarize, target: 1, model: "exec:true"}' 'compact_trigger: {max_events: 2}'
	ask one
	run -0 --separate-stderr ask two
	output_is answer
	has "ag2-aggregate: " "$stderr"
	has "ag2-compact: " "$stderr"
	[ "$(wc -l <"$log")" -eq 4 ]
	run -0 ag2-store -s state log ls -l
	has "compaction FAILED"
	has "aggregation FAILED"
	has "status 4"
}

@test "--no-upkeep, an agent without upkeep and a turn that fails run none" {
	agent 'compact: tail-window:1' 'compact_trigger: {max_events: 2}'
	ask --no-upkeep one
	ask --no-upkeep two
	[ "$(wc -l <"$log")" -eq 4 ]
	run ask -m 'exec:exit 1' three
	status_is 69
	[ "$(wc -l <"$log")" -eq 5 ]
	ask -m 'exec:echo x'
	[ "$(wc -l <"$log")" -eq 1 ]
	ag2-ask -s state --stream s four -m 'exec:echo x'
	[ "$(wc -l <"$log")" -eq 3 ]
}

@test "the model of the command line is that of upkeep which names none, and a cassette answers for both" {
	cat >model.sh <<'X'
cat >>seen
echo short
X
	agent 'compact: "summarize:1"' 'compact_trigger: {max_events: 2}'
	ask one
	ask -m "exec:sh $TMP/model.sh" --record "$TMP/tape" two
	[ "$(grep -c ModelRequest seen)" -ge 2 ]
	[ "$(types "$log")" = "CompactionSummary ModelResponse " ]
	cp "$log" first
	rm -r state seen
	ask one
	ask -m "exec:sh $TMP/model.sh" --replay "$TMP/tape" two
	[ ! -e seen ]
	[ "$(jq -r '.data.summary // empty' "$log")" = short ]
}

@test "in a list with models of their own too; a command of upkeep is told which model the turn has" {
	agent 'aggregate:' '- {strategy: working_memory, model: "exec:echo own"}' '- conversation_summary' '- "exec:printf %s \"$AG2_MODEL\" >told"' \
		'aggregate_trigger: {on_end: true}' 'compact: {strategy: summarize, target: 1, model: "exec:echo own"}' 'compact_trigger: {max_events: 2}'
	ask -m 'exec:echo given' one
	[ "$(cat state/memory/working.md)" = own ]
	[ "$(cat state/memory/conversations/*)" = given ]
	[ "$(cat told)" = "exec:echo given" ]
	AG2_MODEL='exec:echo env' ask two
	[ "$(cat state/memory/conversations/*)" = answer ]
	[ "$(cat told)" = "exec:echo answer" ]
	[ "$(jq -r '.data.summary // empty' "$log")" = own ]
	ag2-aggregate -c agent.yaml --stream s --reset
	ag2-aggregate -c agent.yaml --stream s -m 'exec:echo all'
	[ "$(cat state/memory/working.md state/memory/conversations/*)" = allall ]
	# --base-url and certificates are for the same ones
	agent 'write_event_log: false' 'aggregate:' '- {strategy: working_memory, model: "exec:echo own"}' \
		'- {strategy: conversation_summary}' 'aggregate_trigger: {on_end: true}'
	printf '#!/bin/sh\nenv | grep ^AG2_TURN >>"%s/turn"\nexec "%s/ag2-ask" "$@"\n' "$TMP" "$BIN" >spy
	chmod +x spy
	AG2_TURN_MODEL=stale AG2_ASK=$TMP/spy ag2-ask -c agent.yaml --base-url http://x --cacert /dev/null three
	[ "$(sort -u turn | paste -sd ' ')" = "AG2_TURN_BASE_URL=http://x AG2_TURN_CACERT=/dev/null" ]
	[ "$(cat state/memory/working.md)" = own ]
}

@test "log ls -l shows the last success, an older failure, and a run that did not end" {
	export AG2_NOW=1780000000
	agent 'compact: "tail-window:1"' 'compact_trigger: {max_events: 2}'
	ask one
	ask two
	run -0 ag2-store -s state log ls -l
	has "s  compaction done 2026-05-28 20:26"
	hasnt FAILED
	AG2_NOW=1780003600 run ag2-compact -s state --stream s -i 'exec:exit 1'
	status_is 69
	run -0 ag2-store -s state log ls -l
	has "compaction done 2026-05-28 20:26; compaction FAILED 2026-05-28 21:26: exec:exit 1: exited with status 1"
	ask three
	AG2_NOW=1780010000 ag2-compact -s state --stream s -i exec:cat
	AG2_NOW=1780010000 run -0 ag2-store -s state log ls -l
	has FAILED
	AG2_NOW=1790000000 run -0 ag2-store -s state log ls -l
	hasnt FAILED
	hasnt begun
	run -0 ag2-store -s state log ls
	output_is s
	cp state/.ag2/status/s/CompactionStarted saved
	sed 's/"created_at": [0-9.]*/"created_at": 1780020000.0/' saved >state/.ag2/status/s/CompactionStarted
	run -0 ag2-store -s state log ls -l
	has "begun and not ended"
}

@test "limits of the command line hold for upkeep's model calls too, whose ever the model is" {
	printf '#!/bin/sh\nenv | grep -e ^AG2_TIMEOUT -e ^AG2_RETRIES -e ^AG2_IDLE >"%s/limits"\nexec "%s/ag2-ask" "$@"\n' "$TMP" "$BIN" >spy
	chmod +x spy
	export AG2_ASK=$TMP/spy
	agent 'aggregate: {strategy: working_memory, model: "exec:echo own"}' 'aggregate_trigger: {on_end: true}'
	ask --timeout 77.5 --retries 0 one
	[ "$(sort limits | paste -sd ' ')" = "AG2_RETRIES=0 AG2_TIMEOUT=77.5" ]
	AG2_IDLE_TIMEOUT=33 ask two
	[ "$(cat limits)" = "AG2_IDLE_TIMEOUT=33" ]
	AG2_TIMEOUT=soon run ask three
	status_is 78
	has "AG2_TIMEOUT"
	AG2_RETRIES=-1 run ask three
	status_is 78
}

# ---- without a log ----

unlogged() {
	agent 'write_event_log: false' "$@"
}

@test "write_event_log: false: aggregation sees the turn, each entry with its model and trigger, and nothing is under /log" {
	cat >notes.sh <<'X'
jq -r '.data.parts[0].content' | sed -n '/^User: \|^Assistant: \|^old/p' >>given
echo old
X
	unlogged 'aggregate:' '- {strategy: working_memory, model: "exec:sh notes.sh", trigger: {on_end: true}}' \
		'- {strategy: conversation_summary, trigger: {every_n_turns: 1}}' \
		'- {strategy: conversation_summary, trigger: {every_n_turns: 2}}' \
		'- {strategy: "exec:cat >own; echo ${AG2_STREAM-none} $AG2_NAME >>own", trigger: {every_n_events: 2}}'
	run -0 --separate-stderr ag2-ask -c agent.yaml --status-fd 3 -m 'exec:echo hi' one 3>told
	output_is hi
	[ "$stderr" = "" ] || fail "$stderr"
	[ "$(types told)" = "AggregationStarted AggregationCompleted AggregationStarted AggregationCompleted AggregationStarted AggregationCompleted " ]
	ag2-ask -c agent.yaml two
	printf '%s\n' 'User: one' 'Assistant: hi' old 'User: two' 'Assistant: answer' | same - given
	[ "$(cat state/memory/working.md)" = old ]
	[ "$(ag2-store -s state ls -1 /memory/conversations | wc -l)" -eq 2 ]
	[ "$(for f in state/memory/conversations/*; do cat "$f"; echo; done | sort | paste -sd ' ')" = "answer hi" ]
	[ "$(tail -n 1 own)" = "none journal" ]
	[ "$(head -n -1 own | jq -r '.type | split(".") | last' | paste -sd ' ')" = "ModelRequest ModelResponse" ]
	run -1 ag2-store -s state exists /log
	run -1 ag2-store -s state exists /.ag2/status
}

@test "write_event_log: false: old versions are kept, a bad answer leaves memory, another's change is merged" {
	unlogged 'aggregate: {strategy: working_memory, model: "exec:sh notes.sh"}' 'aggregate_trigger: {on_end: true}'
	for i in 1 2 3; do
		echo "echo notes $i" >notes.sh
		ag2-ask -c agent.yaml $i
	done
	[ "$(ag2-store -s state history /memory/working.md | wc -l)" -eq 2 ]
	cp state/memory/working.md before
	echo 'printf " "' >notes.sh
	run -0 --separate-stderr ag2-ask -c agent.yaml --status-fd 3 four 3>told
	output_is answer
	has "working-memory: the model's answer is" "$stderr"
	[ "$(types told)" = "AggregationStarted AggregationFailed " ]
	same before state/memory/working.md
	echo 'cat >seen; [ -e once ] || { >once; echo mine | ag2-store -s state write /memory/working.md; }; echo merged' >notes.sh
	run -0 --separate-stderr ag2-ask -c agent.yaml --status-fd 3 five 3>told
	[ "$(types told)" = "AggregationStarted AggregationCompleted " ]
	has mine "$(cat seen)"
	[ "$(cat state/memory/working.md)" = merged ]
	rm notes.sh
	run -0 --separate-stderr ag2-ask -c agent.yaml --no-upkeep six
	[ "$stderr" = "" ]
	run -69 ag2-ask -c agent.yaml -m 'exec:exit 1' seven
	hasnt working-memory
}

# ---- what never runs ----

@test "--check names what will never run, and is 1" {
	agent 'compact: tail-window:100' 'aggregate:' '- working_memory' '- {strategy: conversation_summary, trigger: {on_end: true}}'
	run -1 ag2-ask -c agent.yaml --check
	[ "${#lines[@]}" -eq 2 ] || fail "$output"
	has "compact (tail-window) has no trigger"
	has "aggregate (working-memory) has no trigger"
	agent 'compact: tail-window:100' 'compact_trigger: {max_events: 0}' 'aggregate_trigger: {on_end: true}'
	run -1 ag2-ask -c agent.yaml --check
	has "compact (tail-window) has no trigger"
	has "'aggregate_trigger' starts nothing"
	agent 'compact_trigger: {max_events: 5}'
	run -1 ag2-ask -c agent.yaml --check
	has "'compact_trigger' starts nothing"
	unlogged 'aggregate: working_memory' 'aggregate_trigger: {every_n_turns: 10}'
	run -1 ag2-ask -c agent.yaml --check
	has "waits for 10"
	agent 'compact: tail-window:100' 'compact_trigger: {max_tokens: 9}' 'aggregate: working_memory' 'aggregate_trigger: {every_n_turns: 10}'
	run -0 ag2-ask -c agent.yaml --check
	output_is ""
}

@test "--check of a stream names alerts that no policy delivers" {
	agent 'expose_tool: false'
	ask one
	run -0 ag2-ask -c agent.yaml --check --stream s
	output_is ""
	ag2-store -s state log alert s --severity warning --source x "look out"
	run -1 ag2-ask -c agent.yaml --check -C
	has "no alert policy"
	run -66 ag2-ask -c agent.yaml --check --stream other
	run -0 ag2-ask -c agent.yaml --check
	echo 'assembly: [alert]' >>agent.yaml
	run -0 ag2-ask -c agent.yaml --check -C
}
