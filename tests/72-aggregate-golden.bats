#!/usr/bin/env bats
# One aggregation step after another as AG2 makes them: due or not, what the model is given, what is written, what is told.
# What differs is in DEVIATIONS.md.

load helper
load golden

setup() {
	clean_environment
	export AG2_STORE=disk:$TMP/s AG2_NOW=1784553255
}

# The cases as files: case.N, one object each.
cases() {
	jq -c '.cases[]' "$GOLDEN/aggregation.json" | split -l 1 -a 3 -d - case.
	[ "$(ls case.* | wc -l)" -eq 39 ] || fail "there are $(ls case.* | wc -l) cases"
}

# The model answers what the case says and keeps what it was given.
scripted() {
	jq -r 'if (.reply | type) == "string" then {type: "ag2.events.types.ModelResponse", data: {created_at: 1.5,
		message: {"__event__": "ag2.events.types.ModelMessage", created_at: 1.5, metadata: {}, content: .reply}}}
		elif .reply.response then .reply.response else "" end | tojson' "$1" >reply
	cat >model <<-END
		#!/bin/sh
		jq -j '.data.parts[0].content' >>'$TMP/given'
		echo x >>'$TMP/asked'
		grep -q '^""' '$TMP/reply' && { echo 'bad key' >&2; exit 1; }
		cat '$TMP/reply'
	END
	chmod +x model
	: >asked
}

strategy_of() {
	case $(jq -r .strategy "$1") in
	working) echo working-memory ;;
	conversation) echo conversation-summary ;;
	esac
}

# The trigger as arguments, in `trigger`. {} is an agent file: on the command line no trigger means anything new.
trigger_of() {
	trigger=()
	case $(jq -c .trigger "$1") in
	'{}')
		printf 'model: "exec:%s"\nknowledge: {aggregate: working_memory, aggregate_trigger: {}}\n' "$TMP/model" >agent.yaml
		chmod 600 agent.yaml
		trigger=(-c agent.yaml) ;;
	'{"every_n_turns":'*) trigger=("--every-n-turns=$(jq .trigger.every_n_turns "$1")") ;;
	'{"every_n_events":'*) trigger=("--every-n-events=$(jq .trigger.every_n_events "$1")") ;;
	esac
}

# Appends the lines of a file a turn at a time, with the aggregation that is due or not behind each.
replay() {
	local line
	: >turn
	while IFS= read -r line; do
		case $line in
		*input_events.ModelRequest*) if [ -s turn ]; then one_turn; fi ;;
		esac
		printf '%s\n' "$line" >>turn
	done <"$1"
	if [ -s turn ]; then one_turn; fi
}

one_turn() {
	ag2-store log append "$stream" <turn
	: >turn
	ag2-aggregate --stream "$stream" --all-events "${trigger[@]}" -m "exec:$TMP/model" "$strategy" || :
}

# sh-style exceptions: case NAME, what is so instead of AG2's.
check_case() {
	local c=$1 name fired n
	name=$(jq -r .name "$c")
	echo "# $name"
	rm -rf s given told
	: >given
	stream=$(jq -r .stream_id "$c") strategy=$(strategy_of "$c")
	scripted "$c"
	trigger_of "$c"
	jq -j '.store["/memory/working.md"] // empty' "$c" >memory
	jq -c '.before[]' "$c" >before
	jq -c '.during[]' "$c" >during
	case $name in
	trigger/*) replay before; [ ! -e s ] || ag2-store rm -rf /memory ;;
	*) ag2-store log append "$stream" <before ;;
	esac
	[ ! -s memory ] || ag2-store write /memory/working.md memory
	: >given
	: >asked
	[ ! -s during ] || ag2-store log append "$stream" <during
	template=()
	if jq -e 'has("template") and .template != null' "$c" >/dev/null; then
		jq -j .template "$c" >template
		template=(--template template)
	fi
	run -0 --separate-stderr bash -c 'ag2-aggregate --stream "$@" --status-fd 3 3>told; echo "$?"' sh "$stream" --all-events \
		"${trigger[@]}" "${template[@]}" -m "exec:$TMP/model" "$strategy"
	fired=$(jq .expect.fired "$c")
	if [ "$fired" = false ]; then
		[ ! -s told ] || fail "$name: it ran:" "$(cat told)"
		return
	fi
	[ -s told ] || fail "$name: nothing was due: $output $stderr"
	check_prompt "$c" "$name"
	check_files "$c" "$name"
	check_told "$c" "$name"
}

check_prompt() {
	local c=$1 name=$2
	case $name in
	working/custom_unknown_placeholder | working/custom_unbalanced | working/custom_positional)
		# AG2 fails; every other brace is left alone
		jq -j '.template | split("{events}") | join("User: q1\nAssistant: a1")' "$c" >want ;;
	working/custom_format_spec) jq -j .template "$c" >want ;;
	*) jq -j '.expect.prompts[0][0] // ""' "$c" >want ;;
	esac
	inserted want >want.parts
	inserted given >given.parts
	same want.parts given.parts || fail "$name: the prompt"
}

check_files() {
	local c=$1 name=$2 path
	case $name in
	conversation/empty_reply) path= ;;	# AG2 writes an empty episode
	working/custom_un* | working/custom_pos*) path=/memory/working.md ;;
	*) path=$(jq -r '.expect.files_written | keys[0] // ""' "$c") ;;
	esac
	if [ -n "$path" ]; then
		jq -j --arg p "$path" '.expect.files_written[$p] // .reply' "$c" >want
		ag2-store cat "$path" >got || fail "$name: $path was not written; $(ag2-store ls -R /)"
		same want got || fail "$name: $path"
	elif [ -s memory ]; then
		ag2-store cat /memory/working.md | cmp - memory || fail "$name: memory was changed"
	else
		run -1 ag2-store exists /memory
	fi
}

# Types, strategy and counts; times aside.
told_of() {
	jq -c '[.type, .data.strategy, .data.event_count, .data.llm_calls, (.data.usage // {})]' "$1"
}

check_told() {
	local c=$1 name=$2 end
	case $name in
	working/no_message_keeps_existing | conversation/empty_reply) end=AggregationFailed ;;	# for AG2 completed
	working/custom_un* | working/custom_pos*) end=AggregationCompleted ;;			# for AG2 failed
	*) end=$(jq -r '.expect.emitted[-1].type | split(".")[-1]' "$c") ;;
	esac
	[ "$(jq -r '.type | split(".")[-1]' told | paste -sd ' ')" = "AggregationStarted $end" ] || fail "$name: told:" "$(cat told)"
	jq -c '.expect.emitted[] | select(.type | test("Aggregation"))' "$c" >want
	head -n 1 told >got
	[ "$(head -n 1 want >w; told_of w)" = "$(told_of got)" ] || fail "$name: told:" "$(cat told)"
	if [ "$end" = AggregationCompleted ] && tail -n 1 want | grep -q Completed; then
		tail -n 1 want >w
		tail -n 1 told >got
		[ "$(told_of w)" = "$(told_of got)" ] || fail "$name: told:" "$(cat told)"
	fi
	jq -c '.expect.emitted[] | select(.type | test("UsageEvent")) | del(.data.created_at)' "$c" | jq -cS . >want
	ag2-store cat "/log/$stream.jsonl" | tail -n +"$(($(cat before during | wc -l) + 1))" | jq -cS 'del(.data.created_at)' >got
	same want got || fail "$name: the log"
}

@test "every golden aggregation: due or not, the prompt, the files, what is told, what it cost" {
	cases
	for c in case.*; do
		check_case "$c"
	done
}
