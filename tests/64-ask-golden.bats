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

# maps PROVIDER KEY FILTER: each whole history, answered ones too, as a request of it would say it. FILTER makes of a body what AG2
# was seen to send; what AG2 cannot send is 65.
maps() {
	local provider=$1 key=$2 filter=$3 line
	jq -c --arg key "$key" '.cases[] | [(.[$key].raises != null), ((.prompt[] | {type: "Prompt", data: {content: .}}), .events[])]' \
		"$GOLDEN/wire.json" >cases
	while read -r line; do
		printf '%s\n' "$line" >case
		case $line in
		'[true,'*) jq -c '.[1:][]' case | ag2-ask -n --as-ag2 -m "$provider:m" 2>/dev/null || echo $? ;;
		*) jq -c '.[1:][]' case | ag2-ask -n --as-ag2 -m "$provider:m" ;;
		esac
	done <cases >bodies
	jq -c --arg key "$key" '.cases[] | .[$key] | if .raises then 65 else with_entries(select(.value != null)) end' "$GOLDEN/wire.json" |
		jq -cS . >want
	jq -cS "if type == \"object\" then $filter else . end" bodies | diff want - || fail "$provider differs"
	[ "$(wc -l <want)" -gt 40 ]
}

@test "ag2-ask -n --as-ag2 maps whole histories to messages as AG2 does" {
	maps openai openai_chat '{messages}'
}

@test "to the input of the Responses API as well" {
	maps openai-responses openai_responses '{input} + if has("instructions") then {instructions} else {} end'
}

@test "to the messages of anthropic" {
	maps anthropic anthropic '{messages} + if has("system") then {system} else {} end'
}

@test "to the contents of gemini" {
	maps gemini gemini '{contents} + if has("systemInstruction") then {systemInstruction: .systemInstruction.parts[0].text} else {} end'
}

@test "and to the messages of ollama" {
	maps ollama ollama '{messages}'
}

@test "ag2-ask -n shows the body for a history that is answered, and sends nothing" {
	printf '%s\n' '{"type": "ModelRequest", "data": {"parts": [{"__event__": "TextInput", "content": "q"}]}}' \
		'{"type": "ModelResponse", "data": {"message": {"__event__": "ModelMessage", "content": "a"}, "tool_calls": null}}' >events
	run -0 ag2-ask -n -m openai:m --base-url http://127.0.0.1:1 <events
	[ "$(jq -r '.messages[1].content' <<<"$output")" = a ]
}
