#!/usr/bin/env bats
# AG2's own compactions, step by step: tests/golden/compaction.json through `ag2-compact --stream S -i`. What differs on
# purpose is listed in tests/DEVIATIONS.md.

load helper

setup() {
	clean_environment
	cases=$GOLDEN/compaction.json
	# The model: keeps what it was sent and answers as the case says.
	cat >model <<'X'
cat >prompt
cat reply
exit "$(cat code)"
X
}

# get FILTER: of the case.
get() {
	jq -r "$1" case
}

# A store with what the case has in it, and its events as the log.
fill_store() {
	local key
	id=$(get .stream_id)
	rm -rf store prompt
	mkdir -p store/log
	get '(.store // {}) | keys[]' >keys
	while IFS= read -r key; do
		jq -j --arg k "$key" '.store[$k]' case >"store$key"
	done <keys
	jq -c '.events[]' case >events
	cp events "store/log/$id.jsonl"
}

# The strategy as our command line has it.
strategy() {
	case $(get .strategy.strategy) in
	tail) echo "tail-window:$(get .strategy.target)" ;;
	summarize) echo "summarize:$(get .strategy.target)" ;;
	esac
}

set_model() {
	jq -j 'if .reply | type == "string" then .reply else "" end' case >reply
	if [ "$(get '.reply_raises != null')" = true ]; then
		echo 1 >code
	else
		echo 0 >code
	fi
	if [ "$(get '.reply | type')" = object ]; then
		jq -c .reply.response case >reply
	fi
}

# The cases of trigger/ run with an agent file that has the trigger, the others without thresholds.
run_case() {
	set -- -s disk:store --stream "$id" -i -m "exec:sh $TMP/model" --status-fd 3
	case $(get .name) in
	trigger/*)
		jq '{name: .agent, knowledge: {compact: {strategy: (if .strategy.strategy == "tail" then "tail_window" else "summarize" end),
			target: .strategy.target}, compact_trigger: (.trigger | with_entries(select(.value >= 0)))}}' case >agent.yaml
		chmod 600 agent.yaml
		ag2-compact -c agent.yaml "$@" 3>emitted
		;;
	*)
		ag2-compact "$@" "$(strategy)" 3>emitted
		;;
	esac
}

# What is expected, but for times: new records have another clock.
history() {
	jq -c '. as $c | .expect.history[] | if type == "number" then $c.events[.] else . end' case
}

timeless='if .type | test("Summary$") then del(.data.created_at) else . end'

check_history() {
	history | jq -cS "$timeless" >want
	jq -cS "$timeless" "store/log/$id.jsonl" >got
	same want got
}

# Lines of the log that came in are as they came.
check_bytes() {
	grep -v CompactionSummary "store/log/$id.jsonl" | while IFS= read -r line; do
		grep -qxF -e "$line" events || fail "not as it came: $line"
	done
}

check_files() {
	get '.expect.files_written // {} | keys[]' >keys
	(cd store && find log -name '*.dropped-*' | sed 's|^|/|' | sort) >there
	get '(.store // {}) | keys[] | select(test("dropped"))' >before
	sort -u keys before >want
	same want there
	while IFS= read -r key; do
		jq -r --arg k "$key" '.expect.files_written[$k]' case | jq -cS . >want
		jq -cS . "store$key" >got
		same want got
	done <keys
}

check_emitted() {
	jq -cS '.expect.emitted[] | del(.data.created_at, .data.agent)' case >want
	jq -cS 'del(.data.created_at, .data.agent)' emitted >got
	same want got
}

# The rendered events are in the prompt as AG2 renders them, one a line, at its end.
check_prompt() {
	get '.expect.summariser_prompts | length' | grep -qx 0 && return
	get '.expect.summariser_prompts[0][0] | split("\n\n") | .[1:] | join("\n\n")' >want
	jq -r '.data.parts[0].content' prompt >whole
	tail -n "$(wc -l <want)" whole >got
	same want got
}

check_case() {
	fill_store
	set_model
	run_case
	check_history
	check_bytes
	check_files
	check_emitted
	check_prompt
}

each() {
	jq -c "$1" "$cases" >list
	[ -s list ] || fail "no such case"
	while IFS= read -r line; do
		printf '%s\n' "$line" >case
		echo "# $(get .name)"
		"$2"
	done <list
}

# In which something differs on purpose, see DEVIATIONS.md.
nothing_to_do='["tail/plain_target_0", "tail/plain_target_10", "tail/plain_target_11", "tail/tool_history_target_16",
	"tail/lean_tools_target_8", "tail/snap_to_end_keeps_everything", "summarize/plain_target_0"]'
others='["tail/segment_gap_overwrites", "tail/no_store", "summarize/no_store", "summarize/empty_reply", "summarize/no_message",
	"summarize/model_raises", "trigger/empty_history"]'

@test "the trigger, the cut and the summary are AG2's: log, segment, events, prompt" {
	each ".cases[] | select(.name as \$n | ($nothing_to_do + $others) | index(\$n) | not)" check_case
}

check_nothing() {
	fill_store
	set_model
	run_case
	same events "store/log/$id.jsonl"
	check_files
	[ ! -s emitted ]
	[ ! -e prompt ]
}

@test "where nothing can go, the log is as it was and nothing is told" {
	each ".cases[] | select(.name as \$n | $nothing_to_do | index(\$n))" check_nothing
}

check_gap() {
	fill_store
	run_case
	check_history
	[ "$(cat "store/log/$id.dropped-2.jsonl")" = OLD ]
	[ "$(wc -l <"store/log/$id.dropped-3.jsonl")" -eq 6 ]
}

@test "an older segment is never overwritten" {
	each '.cases[] | select(.name == "tail/segment_gap_overwrites")' check_gap
}

check_empty() {
	jq -c ".strategy.target = 0" case >changed
	mv changed case
	check_case
}

@test "an empty history is left alone" {
	each ".cases[] | select(.name == \"trigger/empty_history\")" check_empty
}

check_filter() {
	fill_store
	set_model
	ag2-compact -m "exec:sh $TMP/model" "$(strategy)" --status-fd 3 <events 3>emitted >out
	history | jq -cS "$timeless" >want
	jq -cS "$timeless" out >got
	same want got
	check_emitted
}

@test "without a store it is a filter that keeps the same events" {
	each '.cases[] | select(.name | test("/no_store$"))' check_filter
}

check_closed() {
	fill_store
	set_model
	run run_case
	status_is 69
	same events "store/log/$id.jsonl"
	[ -z "$(find store/log -name "*.dropped-*")" ]
	[ "$(jq -r '.type | split(".") | last' emitted | tr '\n' ' ')" = "CompactionStarted CompactionFailed " ]
}

@test "an empty answer, none, and a model that fails leave the log as it was" {
	each '.cases[] | select(.name | test("empty_reply|no_message|model_raises"))' check_closed
}

# ---- turn after turn ----

check_repeated() {
	local steps n want files
	id=11111111-2222-4333-8444-555555555555
	rm -rf store
	steps=$(get '.steps | length')
	for n in $(seq 0 $((steps - 1))); do
		printf '{"type": "ag2.events.input_events.ModelRequest", "data": {"parts": [{"__event__": "ag2.events.input_events.TextInput", "content": "q%d"}]}}\n{"type": "ag2.events.types.ModelResponse", "data": {"message": {"content": "a%d"}}}\n' "$n" "$n" |
			ag2-store -s disk:store log append "$id"
		ag2-compact -s disk:store --stream "$id" -i --max-events 5 tail-window:4
		get ".steps[$n].history[]" | sed 's/^[A-Za-z]*: //' >want
		jq -r '.data.parts[0].content // .data.message.content' "store/log/$id.jsonl" >got
		same want got
		get ".steps[$n].files[]" | sort >want
		(cd store/log && ls | grep dropped | sort) >got || true
		same want got
	done
}

@test "turn after turn the newest four stay, and each compaction makes one segment" {
	each '.repeated[] | select(.name == "repeat/fresh_middleware")' check_repeated
}
