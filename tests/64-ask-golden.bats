# Whole sessions of AG2 (golden/session.jsonl): the same questions, the same model and the same upkeep give the same events in
# the same order and the same store after each turn, and the same reaches the models.

load helper
load scripted
load golden

SESSION=$BATS_TEST_DIRNAME/golden/session.jsonl

setup() {
	clean_environment
	export AG2_STORE=disk:$TMP/st
	tool add 'jq ".a + .b"'
	tool warn 'args=$(cat); ag2-store log alert "$AG2_STREAM" --severity "$(echo "$args" | jq -r .severity)" --source monitor "$(echo "$args" | jq -r .message)"; printf raised'
}

# begin CASE [LINE...]: LINEs are lines of `knowledge` in the agent file; the model of upkeep answers what is in upkeep.N, and
# keeps what it was given.
begin() {
	jq -c --arg c "$1" 'select(.name | startswith($c))' "$SESSION" >case
	shift
	{
		printf '%s\n' 'name: scribe' 'prompt: You are a scribe.' 'knowledge:' '  expose_tool: true'
		[ $# -eq 0 ] || printf '  %s\n' "$@"
	} >agent.yaml
	cat >upkeep.sh <<-'END'
		echo x >>upkept
		n=$(wc -l <upkept)
		jq -j '.data.parts[0].content' >"upkeep.given.$n"
		cat "upkeep.$n"
	END
	rm -f upkept upkeep.*[0-9]
	stream=$(jq -r .stream_id case)
}

# upkeep_says TEXT...: a call after the other.
upkeep_says() {
	local n=1
	for text; do
		printf '%s' "$text" >"upkeep.$n"
		n=$((n + 1))
	done
}

# What is not compared: times, key order, the wording of SKILL.md; AG2's add answers with a number as data, ours with its text.
normal() {
	jq -cS 'walk(if type == "object" then del(.created_at) else . end) |
		walk(if type == "object" and (.["__event__"] // "" | endswith("DataInput"))
			then {"__event__": "ag2.events.input_events.TextInput", metadata: {}, content: (.data | tostring)} else . end) |
		walk(if type == "string" and test("\n---\n.initialized") then "(SKILL.md)\n---\n" + (split("---\n")[-1]) else . end)'
}

# The model's answers of this turn: each response with the usage before it; one that halting made is not the model's.
script_model() {
	local n i
	model_init
	jq -c '[.events[] | select(.type | test("UsageEvent|ModelResponse")) | select(.data.kind != "compaction")] |
		reduce .[] as $e ([[]]; .[-1] += [$e] | if $e.type | endswith("ModelResponse") then . + [[]] else . end) |
		.[] | select(length > 0) |
		select(.[-1].data.message == null or (.[-1].data.message.content | startswith("HALTED") | not))' turn >answers
	n=$(wc -l <answers)
	for i in $(seq "$n"); do
		sed -n "${i}p" answers | jq -c '.[]' | answer_file
	done
}

play() {
	local n=$1 ask want=0
	jq -c --argjson n "$n" '.turns[$n]' case >turn
	ask=$(jq -r .ask turn)
	script_model
	paid=$(ag2-store cat "/log/$stream.jsonl" 2>/dev/null | grep -c '"kind": "compaction"' || true)
	jq -e '.reply | startswith("HALTED")' turn >/dev/null && want=3
	run --separate-stderr bash -c 'exec ag2-ask --as-ag2 -c agent.yaml --status-fd 3 "$@" 3>told' sh -m "$MODEL" --stream "$stream" --no-stream "$ask"
	status_is $want
	output_is "$(jq -r .reply turn)"
	[ "$stderr" = "" ] || fail "$stderr"
	compare_calls
	compare_told
	compare_store
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

# A compaction sees what the one before it cost: `paid` usage events more than AG2's.
compare_told() {
	diff <(jq -c --argjson n "$paid" '.events[] | select(.type | test("lifecycle")) |
		if .type | test("Compaction") then .data |= with_entries(if .key | test("event_count|events_before") then .value += $n else . end)
		else . end' turn | normal) <(normal <told)
}

# Every file that the turn leaves, its events in the order of the log. Ours also logs what a compaction cost.
compare_store() {
	jq -r '.store | keys[]' turn | same_names >want.names
	ag2-store ls -R -1 | grep -v '/$' | grep -v 'SKILL.md$' | sed 's|^/*|/|' >paths
	same_names <paths >got.names
	diff want.names got.names
	paste <(jq -r '.store | keys[]' turn) paths >pairs
	while IFS="$(printf '\t')" read -r want got; do
		jq -j --arg p "$want" '.store[$p]' turn >want
		ag2-store cat "$got" >got
		case $got in
		/log/*)
			normal <want >want.events
			jq -c 'select(.data.kind != "compaction")' got | normal | diff want.events - || fail "turn: $got" ;;
		*) diff want got || fail "turn: $got" ;;
		esac
	done <pairs
}

# An episode has the time in its name.
same_names() {
	sed 's/[0-9]*T[0-9]*_/TIME_/'
}

# The prompts of aggregation: what was put in.
compare_given() {
	local i n
	n=$(jq '.aggregate_prompts | length' case)
	[ "$(wc -l <upkept)" -eq "$n" ]
	for i in $(seq "$n"); do
		jq -j ".aggregate_prompts[$((i - 1))]" case | inserted /dev/stdin | rendered >want
		inserted "upkeep.given.$i" | rendered >got
		diff want got || fail "prompt $i"
	done
}

# AG2's add answers with data, and the wording of SKILL.md is not compared, whole or shortened.
rendered() {
	sed -e "s/DataInput(data=5)/TextInput(content='5')/g" -e "s/# scribe Knowledge Store[^']*' (len=[0-9]*)/SKILL'/g" \
		-e 's/# scribe Knowledge Store.*\\n---\\n/SKILL\\n---\\n/'
}

@test "AG2's session with its defaults: text, tools, notes, a missing tool, memory after each turn, and a tail of events" {
	begin A 'compact: tail-window:6' 'compact_trigger: {max_events: 10}' \
		'aggregate: {strategy: working-memory, model: "exec:sh upkeep.sh"}' 'aggregate_trigger: {on_end: true}'
	echo 'tools: [./add, ./warn]' >>agent.yaml
	upkeep_says 'MEM v1' 'MEM v2' 'MEM v3' 'MEM v4' 'MEM v5'
	for n in 0 1 2 3 4; do
		play $n
	done
	compare_given
	# Another stream of the same store: memory, episodes, alerts, a window and a halt.
	begin B 'aggregate: {strategy: conversation-summary, model: "exec:sh upkeep.sh"}' 'aggregate_trigger: {every_n_turns: 2}'
	sed -i 's/expose_tool: true/expose_tool: false/' agent.yaml
	echo 'assembly: [working-memory, episodic-memory: {max_episodes: 2}, alert, sliding-window: {max_events: 12, transparent: true}]' >>agent.yaml
	echo 'tools: [./add, ./warn]' >>agent.yaml
	upkeep_says 'MEM B1' 'MEM B2' 'MEM B3'
	for n in 0 1 2 3; do
		play $n
	done
	[ "$(wc -l <upkept)" -eq 2 ]
}

@test "AG2's session with the conversation policy and summaries" {
	begin C 'compact: {strategy: summarize, target: 2, model: "exec:sh upkeep.sh"}' 'compact_trigger: {max_events: 4}'
	echo 'assembly: [conversation]' >>agent.yaml
	jq -nc '{type: "ag2.events.types.ModelResponse", data: {message: {"__event__": "ag2.events.types.ModelMessage", content: "SUM 1"},
		model: "scripted-1", provider: "scripted", usage: {"__dataclass__": "ag2.events.types.Usage", data: {total_tokens: 9}}}}' >usage
	upkeep_says "$(cat usage)" 'SUM 2' 'SUM 3'
	for n in 0 1 2 3 4; do
		play $n
	done
	[ "$(wc -l <upkept)" -eq 3 ]
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
