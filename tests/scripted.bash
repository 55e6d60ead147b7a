# Loaded after helper by the tests of ag2-ask: a model whose answers a test writes down beforehand.
#
# model_init starts a script; each answer_* adds the next answer; MODEL is the model. What it was sent is in sent.1, sent.2, ...
# (prompts and events as lines). Without an answer left it fails.

model_init() {
	MODEL_DIR=$TMP/model
	rm -rf "$MODEL_DIR"
	mkdir "$MODEL_DIR"
	: >"$MODEL_DIR/asked"
	cat >"$MODEL_DIR/model" <<-'END'
		dir=$1
		echo x >>"$dir/asked"
		n=$(wc -l <"$dir/asked")
		cat >"$dir/sent.$n"
		[ -e "$dir/answer.$n" ] || { echo "no answer $n" >&2; exit 9; }
		. "$dir/answer.$n"
	END
	MODEL="exec:sh $MODEL_DIR/model $MODEL_DIR"
}

# The number of the answer that is written next.
next_answer() {
	local n=1
	while [ -e "$MODEL_DIR/answer.$n" ]; do n=$((n + 1)); done
	echo $n
}

# answer_sh TEXT: shell commands that print the answer (their standard input is what the model was sent, already read).
answer_sh() {
	printf '%s\n' "$1" >"$MODEL_DIR/answer.$(next_answer)"
}

# answer_file: event lines or text on standard input are the answer.
answer_file() {
	local text
	text=$MODEL_DIR/text.$(next_answer)
	cat >"$text"
	answer_sh "cat '$text'"
}

answer_text() {
	printf '%s\n' "$1" | answer_file
}

# answer_calls [-m TEXT] [ID NAME ARGUMENTS]...: a response that calls tools.
answer_calls() {
	local message=null calls=() what
	if [ "$1" = -m ]; then
		message=$(jq -nc --arg t "$2" '{"__event__": "ag2.events.types.ModelMessage", created_at: 1.5, metadata: {}, content: $t}')
		shift 2
	fi
	while [ $# -gt 0 ]; do
		calls+=("$(jq -nc --arg i "$1" --arg n "$2" --arg a "$3" '{"__event__": "ag2.events.tool_events.ToolCallEvent",
			created_at: 1.5, vendor_metadata: {}, id: $i, name: $n, arguments: $a}')")
		shift 3
	done
	what=$(IFS=,; echo "${calls[*]}")
	jq -nc --argjson m "$message" --argjson c "[$what]" '{type: "ag2.events.types.ModelResponse", data: {created_at: 1.5,
		response_force: false, files: [], tool_calls: {"__event__": "ag2.events.tool_events.ToolCallsEvent", created_at: 1.5,
		calls: $c}, message: $m}}' | answer_file
}

# asked: how often the model was.
asked() {
	wc -l <"$MODEL_DIR/asked"
}

# types FILE: the classes of a stream's events, one a line.
types() {
	jq -r '.type | split(".")[-1]' "$1"
}

# events_are FILE TYPE...: in this order.
events_are() {
	local file=$1
	shift
	[ "$(types "$file")" = "$(printf '%s\n' "$@")" ] || fail "events:" "$(types "$file")" "instead of:" "$@"
}

# timeless FILE: the records sorted by key, without times, so that two runs can be compared.
timeless() {
	jq -cS 'walk(if type == "object" then del(.created_at) else . end)' "$1"
}

# tool NAME BODY: an executable ./NAME that declares itself; BODY is shell, the arguments are on its standard input.
tool() {
	cat >"$1" <<-END
		#!/bin/sh
		if [ "\$1" = --schema ]; then
			echo '{"name": "$1", "description": "for tests", "parameters": {"type": "object", "properties": {}}}'
			exit
		fi
		$2
	END
	chmod +x "$1"
}
