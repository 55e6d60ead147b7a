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
