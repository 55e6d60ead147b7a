# Whole sessions of AG2 (golden/session.jsonl), turn by turn: on the store that its turn began with, the same question and the
# same model give the same events in the same order, and the same reaches the model. Upkeep is left out: it has its own tests.

load helper
load scripted

SESSION=$BATS_TEST_DIRNAME/golden/session.jsonl

setup() {
	clean_environment
	export AG2_STORE=disk:$TMP/st
	tool add 'jq ".a + .b"'
	tool warn 'args=$(cat); ag2-store log alert "$AG2_STREAM" --severity "$(echo "$args" | jq -r .severity)" --source monitor "$(echo "$args" | jq -r .message)"; printf raised'
	cat >A.yaml <<-'END'
		name: scribe
		prompt: You are a scribe.
		knowledge: {}
		tools: [./add, ./warn]
	END
	cat >B.yaml <<-'END'
		name: scribe
		prompt: You are a scribe.
		knowledge:
		  expose_tool: false
		assembly: [working-memory, episodic-memory: {max_episodes: 2}, alert, sliding-window: {max_events: 12, transparent: true}]
		tools: [./add, ./warn]
	END
	cat >C.yaml <<-'END'
		name: scribe
		prompt: You are a scribe.
		knowledge: {}
		assembly: [conversation]
	END
}

# What is not compared: times, key order, the wording of SKILL.md; AG2's add answers with a number as data, ours with its text.
normal() {
	jq -cS 'walk(if type == "object" then del(.created_at) else . end) |
		walk(if type == "object" and (.["__event__"] // "" | endswith("DataInput"))
			then {"__event__": "ag2.events.input_events.TextInput", metadata: {}, content: (.data | tostring)} else . end) |
		walk(if type == "string" and test("\n---\n.initialized") then "(SKILL.md)\n---\n" + (split("---\n")[-1]) else . end)'
}

# The store as this turn finds it.
fill_store() {
	local path
	rm -rf st
	[ "$(jq '.before | length' turn)" -eq 0 ] && return
	ag2-store init --name scribe
	jq -r '.before | keys[]' turn >paths
	while read -r path; do
		jq -j --arg p "$path" '.before[$p]' turn | ag2-store write "$path"
	done <paths
}

# The model's answers of this turn: each response with the usage before it; one that halting made is not the model's.
script_model() {
	local n i
	model_init
	jq -c '[.events[] | select(.type | test("UsageEvent|ModelResponse"))] |
		reduce .[] as $e ([[]]; .[-1] += [$e] | if $e.type | endswith("ModelResponse") then . + [[]] else . end) |
		.[] | select(length > 0) |
		select(.[-1].data.message == null or (.[-1].data.message.content | startswith("HALTED") | not))' turn >answers
	n=$(wc -l <answers)
	for i in $(seq "$n"); do
		sed -n "${i}p" answers | jq -c '.[]' | answer_file
	done
}

play() {
	local case=$1 n=$2 stream ask want before
	jq -c --arg c "$case" --argjson n "$n" 'select(.name | startswith($c)) | .stream_id as $s | .turns[$n] | .stream = $s' \
		"$SESSION" >turn
	stream=$(jq -r .stream turn)
	ask=$(jq -r .ask turn)
	fill_store
	script_model
	before=0
	if ag2-store exists "/log/$stream.jsonl"; then
		before=$(ag2-store log cat --current "$stream" | wc -l)
	fi
	want=0
	jq -e '.reply | startswith("HALTED")' turn >/dev/null && want=3
	run --separate-stderr ag2-ask --as-ag2 -c "$case.yaml" -m "$MODEL" --stream "$stream" --no-stream "$ask"
	status_is $want
	output_is "$(jq -r .reply turn)"
	ag2-store log cat --current "$stream" | tail -n "+$((before + 1))" | normal >got
	jq -c '.events[]' turn | normal >want
	diff want got
	compare_calls
	compare_paths "$stream"
}

# For each call the prompts and the classes of the events.
compare_calls() {
	local i
	[ "$(jq '.model_calls | length' turn)" -eq "$(asked)" ]
	for i in $(seq "$(asked)"); do
		diff <(jq -c ".model_calls[$((i - 1))].prompt[]" turn) \
			<(jq -c 'select(.type == "Prompt") | .data.content' "$MODEL_DIR/sent.$i")
		diff <(jq -r ".model_calls[$((i - 1))].messages[]" turn) \
			<(jq -r 'select(.type != "Prompt") | .type | split(".")[-1]' "$MODEL_DIR/sent.$i")
	done
}

# The files that the turn leaves, but for those that upkeep writes.
compare_paths() {
	diff <(jq -r '.after[]' turn | grep -v 'dropped\|^/memory') \
		<(ag2-store ls -R | grep -v '/$\|SKILL.md\|dropped\|^/memory')
}

@test "AG2's session with its defaults: text, tools, notes, a missing tool" {
	for n in 0 1 2 3 4; do
		play A $n
	done
}

@test "AG2's session with memory, episodes, alerts, a window and a halt" {
	for n in 0 1 2 3; do
		play B $n
	done
}

@test "AG2's session with the conversation policy and summaries" {
	for n in 0 1 2 3 4; do
		play C $n
	done
}

# One whole history a case, answered ones too: -n shows what a request of it would say.
@test "ag2-ask -n --as-ag2 maps whole histories to messages as AG2 does" {
	local case name i=0 n
	n=$(jq '.cases | length' "$GOLDEN/wire.json")
	while [ $((i)) -lt "$n" ]; do
		jq -c --argjson i "$i" '.cases[$i]' "$GOLDEN/wire.json" >case
		name=$(jq -r .name case)
		jq -c '(.prompt[] | {type: "Prompt", data: {content: .}}), .events[]' case >events
		if jq -e '.openai_chat.raises' case >/dev/null; then
			run ag2-ask -n --as-ag2 -m openai:m <events
			[ "$status" -eq 65 ] || fail "$name: status $status instead of 65" "$output"
		else
			jq -S '.openai_chat.messages' case >want
			ag2-ask -n --as-ag2 -m openai:m <events >body || fail "$name: status $?"
			jq -S .messages body | diff want - || fail "$name differs"
		fi
		i=$((i + 1))
	done
	[ "$i" -gt 40 ]
}

@test "ag2-ask -n shows the body for a history that is answered, and sends nothing" {
	printf '%s\n' '{"type": "ModelRequest", "data": {"parts": [{"__event__": "TextInput", "content": "q"}]}}' \
		'{"type": "ModelResponse", "data": {"message": {"__event__": "ModelMessage", "content": "a"}, "tool_calls": null}}' >events
	run -0 ag2-ask -n -m openai:m --base-url http://127.0.0.1:1 <events
	[ "$(jq -r '.messages[1].content' <<<"$output")" = a ]
}
