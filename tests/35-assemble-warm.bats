#!/usr/bin/env bats
# What keeps a provider's prompt cache warm: cuts that move in steps, and what changes often at the end.
load helper
load assemble
load scripted

# turns N: a stream of N turns and a question.
turns() {
	local i
	for ((i = 1; i <= $1; i++)); do U $i; A a$i; done
	U now
}

@test "a window with a step holds between N-K and N events, and its cut moves K at a time" {
	turns 20 >all
	for n in $(seq 1 2 41); do
		head -n "$n" all | ag2-assemble sliding-window:10,step=4 2>/dev/null >got
		held=$(wc -l <got)
		[ "$n" -le 10 ] && [ "$held" -eq "$n" ] && continue
		[ "$held" -gt 6 ] && [ "$held" -le 10 ] || fail "of $n it holds $held"
		[ $(((n - held) % 4)) -eq 0 ] || fail "of $n it dropped $((n - held))"
	done
}

@test "a step does not count telemetry" {
	{ U 1; usage; A 2; usage; U 3; usage; A 4; U 5; } | shapes "U(3) usage A(4) U(5)" sliding-window:4,step=2
}

@test "a budget with a step moves its cut by tokens, holds what it can, and keeps the question" {
	for i in $(seq 1 30); do U "$(printf %08d "$i")"; A "$(printf %08d "$i")"; done >all
	for n in $(seq 1 2 59); do
		head -n "$n" all | ag2-assemble token-budget:40,step=16,chars_per_token=1 >got
		tokens=$(($(wc -l <got) * 8))
		[ "$tokens" -le 40 ] || fail "of $n: $tokens tokens"
		[ $((n * 8)) -le 40 ] || [ "$tokens" -ge 24 ] || fail "of $n only $tokens tokens"
		[ $(((n * 8 - tokens) % 16)) -eq 0 ] || fail "of $n it dropped $((n * 8 - tokens)) tokens"
		[ "$(tail -n 1 got)" = "$(sed -n "${n}p" all)" ] || fail "of $n the last is not there"
	done
}

@test "a budget whose step would cut the question or the open tool turn cuts less" {
	{ U 11111111; A 22222222; U 33333333; C c1; R c1=44444444; } >in
	ag2-assemble token-budget:30,step=30,chars_per_token=1 <in | shape >got
	[ "$(cat got)" = "U(33333333) C(c1) R(c1=44444444)" ] || fail "$(cat got)"
}

@test "a step that is negative or larger than the window is a usage error" {
	for policy in sliding-window:10,step=-1 sliding-window:10,step=11 token-budget:10,step=11 sliding-window:10,step=x; do
		run --separate-stderr ag2-assemble "$policy" </dev/null
		status_is 64
		has step "$stderr"
	done
}

@test "a stream is read whole for a window with a step: the cut is the same as through a pipe" {
	turns 200 >log
	mkdir -p st/log && cp log st/log/s.jsonl
	ag2-assemble -s st --stream s sliding-window:10,step=7 >a
	ag2-assemble sliding-window:10,step=7 <log >b
	same a b
}

@test "layout=cache marks memory, alerts and notes, and nothing else" {
	mkdir -p st/memory/conversations
	echo mem >st/memory/working.md
	echo epi >st/memory/conversations/1.md
	{ echo '{"type": "Prompt", "data": {"content": "came"}}'; U 1; AL warning x hot; A 2; AL warning x new; U 3; } >in
	ag2-assemble -s st --prompt sys --layout=cache working-memory episodic-memory alert sliding-window:2,transparent=true inject:'echo own' <in |
		jq -r 'select(.type == "Prompt") | .data | "\(.source) \(.place)"' >got
	printf '%s\n' 'null null' 'null null' 'working_memory end' 'episodic_memory end' 'episodic_memory end' 'alert end' \
		'sliding_window end' 'inject end' | diff - got
	ag2-assemble -s st --layout=ag2 working-memory <in | grep -c place && fail "a mark in AG2's layout"
	run ag2-assemble --layout=cash </dev/null
	status_is 64
	run ag2-assemble --as-ag2 --layout=cache </dev/null
	status_is 64
}

@test "marks pass through another assembler and through exec:" {
	echo '{"type": "Prompt", "data": {"content": "m", "source": "working_memory", "place": "end"}}' >p
	U q >u
	cat p u | ag2-assemble conversation exec:cat token-budget:1000 | head -n 1 | diff p -
	cat p u | ag2-assemble exec:'jq -c .' | head -n 1 | jq -e '.data.place == "end"'
}

@test "ag2-ask sends what is marked as one context block before the question" {
	{ echo '{"type": "Prompt", "data": {"content": "sys"}}'
	  echo '{"type": "Prompt", "data": {"content": "one", "place": "end"}}'
	  echo '{"type": "Prompt", "data": {"content": "two", "place": "end"}}'
	  U 1; A 2; U 3; } >in
	ag2-ask -n -m openai:x <in >body
	[ "$(jq -c '.messages | map([.role, .content])' body)" = '[["system","sys"],["user","1"],["assistant","2"],["user",[{"type":"text","text":"<context>\none\n\ntwo\n</context>"},{"type":"text","text":"3"}]]]' ] || fail "$(cat body)"
	ag2-ask -n -m openai:x --layout=ag2 <in >body
	[ "$(jq -c '.messages | map(.content)' body)" = '["sys\none\ntwo","1","2","3"]' ] || fail "$(cat body)"
	ag2-ask -n -m openai:x --as-ag2 <in | jq -e '.messages[0].content == "sys\none\ntwo"'
	run ag2-ask -n -m openai:x --layout=x q </dev/null
	status_is 64
}

@test "behind tool results the context is the last message, and what came before it stays byte for byte" {
	{ U q; C c1 c2; } >in
	R c1=x c2=y >results
	echo '{"type": "Prompt", "data": {"content": "mem", "place": "end"}}' >p
	cat p in results | ag2-ask -n -m openai:x | jq -c '.messages[-2:] | map([.role, .content])' >got
	echo '[["tool","y"],["user","<context>\nmem\n</context>"]]' | diff - got
	cat in results | ag2-ask -n -m openai:x >without
	cat p in results | ag2-ask -n -m openai:x >with
	whole=$(cat without)
	has "${whole%\]\}}" "$(cat with)"
}

@test "an exec: model gets the context inside the request, the log does not" {
	model_init
	answer_text fine
	mkdir -p st/memory
	echo remember >st/memory/working.md
	cat >agent.yaml <<-END
		model: "$MODEL"
		prompt: sys
		knowledge: {store: st, bootstrap: none, expose_tool: false}
		assembly: [working_memory, {sliding_window: {max_events: 8, step: 4}}]
		layout: cache
	END
	ag2-ask -c agent.yaml --stream s "what?"
	shape <model/sent.1 >got
	[ "$(cat got)" = "P(sys) U(<context> ## Working Memory  remember  </context>|what?)" ] || fail "$(cat got)"
	hasnt context "$(cat st/log/s.jsonl)"
}

@test "200 turns: 90 % of what is sent repeats the call before, and nothing is missing from the last one" {
	mkdir calls
	"$TOOLS/session" make calls 200
	PATH=$TOOLS:$PATH
	warm=$(sh "$ROOT/tests/tools/warm.sh" "$TMP/calls" 80,step=40 cache)
	[ "${warm%.*}" -ge 90 ] || fail "only $warm %"
	# the newest 40 events, the memory and the alerts that wait are all in the last body
	body=$(ls calls/bodies/* | tail -n 1)
	cat calls/*.events | grep -e ModelRequest -e ModelResponse -e ToolResults | tail -n 40 |
		grep -o -e 'Question [0-9]*' -e 'Answer [0-9]*' -e 'Result [0-9]*' >newest
	while read -r what; do has "$what" "$(cat "$body")"; done <newest
	has "Memory 191" "$(cat "$body")"
	call=$(grep -l 'Alert 196' calls/*.events)
	has "Alert 196" "$(cat "calls/bodies/$(basename "$call" .events)")"
	plain=$(sh "$ROOT/tests/tools/warm.sh" "$TMP/calls" 80 ag2)
	[ "${plain%.*}" -lt "${warm%.*}" ]
}
