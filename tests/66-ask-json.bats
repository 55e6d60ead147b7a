# ag2-ask --json, --schema and --confirm.

load helper
load scripted

setup() {
	clean_environment
	model_init
	export AG2_STORE=disk:$TMP/st
	echo '{"type":"object","properties":{"name":{"type":"string"},"age":{"type":"integer"}},"required":["name","age"],"additionalProperties":false}' >person
}

teardown() {
	[ ! -e web/pid ] || kill "$(cat web/pid)" 2>/dev/null || true
}

ask() {
	ag2-ask -m "$MODEL" --stream s "$@"
}

@test "--json prints one object with the answer and what was called" {
	tool add 'jq ".a + .b"'
	tool no 'echo broken >&2; exit 1'
	answer_calls c1 add '{"a": 2, "b": 3}' c2 no '{}'
	answer_text "It is 5."
	run -0 --separate-stderr ask --json --tool ./add --tool ./no 2+3
	[ "${#lines[@]}" -eq 1 ]
	[ "$(jq -r .text <<<"$output")" = "It is 5." ]
	[ "$(jq -c '.calls[0]' <<<"$output")" = '{"id":"c1","name":"add","arguments":{"a":2,"b":3},"result":"5"}' ] || fail "$output"
	[ "$(jq -r '.calls[1].error' <<<"$output" | grep -c broken)" -eq 1 ]
	[ "$(jq -r .stream <<<"$output")" = s ]
}

@test "--json prints nothing after a failure, and excludes --events" {
	run --separate-stderr ag2-ask -m 'exec:exit 3' --json q </dev/null
	status_is 69
	output_is ''
	run ask --json --events q
	status_is 64
}

@test "an answer that fits the schema is printed" {
	answer_text '{"name": "Ada", "age": 36}'
	run -0 --separate-stderr ask --schema person "Who?"
	output_is '{"name": "Ada", "age": 36}'
	[ "$(asked)" -eq 1 ]
}

@test "one that does not is asked for once more, and told why; only what fits is printed" {
	answer_text '{"name": "Ada", "age": "old"}'
	answer_text '{"name": "Ada", "age": 36}'
	run -0 --separate-stderr ask --schema person "Who?"
	output_is '{"name": "Ada", "age": 36}'
	[ "$(asked)" -eq 2 ]
	tail -n 1 "$MODEL_DIR/sent.2" | grep -q 'age: no integer'
	ag2-store log cat --current s >log
	events_are log ModelRequest ModelResponse ModelRequest ModelResponse
}

@test "after the second one that does not fit it is 69, and nothing is printed" {
	answer_text 'Sure!'
	answer_text '{"name": "Ada"}'
	run --separate-stderr ask --schema person "Who?"
	status_is 69
	output_is ''
	has "'age' is missing" "$stderr"
	[ "$(asked)" -eq 2 ]
}

@test "what a schema refers to is checked; what is not in it is 65 before anything is asked" {
	echo '{"type":"array","items":{"$ref":"#/$defs/p"},"$defs":{"p":{"oneOf":[{"type":"integer","minimum":3},{"const":"none"}]}}}' >list
	answer_text '[4, 2]'
	answer_text '[4, "none"]'
	run -0 --separate-stderr ask --schema list "Which?"
	output_is '[4, "none"]'
	tail -n 1 "$MODEL_DIR/sent.2" | grep -q 'fits none of what it may be'
	echo '{"$ref":"https://e/s.json"}' >away
	run ask --schema away "Which?"
	status_is 65
	has "'away': the schema refers to 'https://e/s.json', which is not in it"
	[ "$(asked)" -eq 2 ]
}

@test "a schema that is not there is 66, one that is none 65; -n shows how it is sent" {
	run ask --schema nowhere q
	status_is 66
	echo '[]' >list
	run ask --schema list q
	status_is 65
	ag2-ask -n -m anthropic:m --schema person q </dev/null >body
	[ "$(jq -c .output_config.format.schema body)" = "$(cat person)" ]
}

@test "--confirm asks on the terminal before each call, and no is an error result" {
	need_terminal
	tool mark 'echo ran >>marks; echo done'
	answer_calls c1 mark '{"a": 1}'
	answer_text "first"
	answer_calls c2 mark '{"a": 2}'
	answer_text "second"
	export MODEL
	echo y | script -qec 'ag2-ask -m "$MODEL" --stream s --confirm --tool ./mark q' /dev/null >shown
	grep -q 'run mark {"a": 1}?' shown
	[ "$(cat marks)" = ran ]
	echo n | script -qec 'ag2-ask -m "$MODEL" --stream s --confirm --tool ./mark q' /dev/null >shown
	[ "$(wc -l <marks)" -eq 1 ]
	ag2-store log cat --current s | grep -q 'the user did not allow this call'
}

@test "--confirm asks on a line of its own, behind text that did not end one" {
	need_terminal
	tool mark 'echo done'
	mkdir web
	printf '%s\n' 'head 200 text/event-stream' 'data {"choices":[{"index":0,"delta":{"content":"Let me look"}}]}' \
		'data {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c","function":{"name":"mark","arguments":"{}"}}]}}]}' \
		'data {"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}' 'data [DONE]' >web/1
	printf '%s\n' 'head 200 text/event-stream' 'data {"choices":[{"index":0,"delta":{"content":"It is done"},"finish_reason":"stop"}]}' >web/2
	"$TOOLS/httpd" -d -t 600 "$TMP/web" >/dev/null
	export OPENAI_API_KEY=k URL=http://127.0.0.1:$(cat web/port)
	echo y | script -qec 'ag2-ask -m openai:m --base-url "$URL" --stream s --confirm --tool ./mark q' /dev/null | tr -d '\r' >shown
	grep -qx 'Let me look' shown || fail "$(cat shown)"
	grep -q '^ag2-ask: run mark {}? ' shown || fail "$(cat shown)"
}

@test "--confirm: the end of the input is no, and an interrupt at the question ends the turn" {
	need_terminal
	tool mark 'echo ran >>marks; echo done'
	answer_calls c1 mark '{"a": 1}'
	answer_text "first"
	answer_calls c2 mark '{"a": 2}'
	export MODEL
	printf '\004' | script -qec 'ag2-ask -m "$MODEL" --stream s --confirm --tool ./mark q' /dev/null >shown
	grep -q first shown
	[ ! -e marks ]
	# The question stands there, then the signal comes, and no line; the pipe that nobody writes to keeps the terminal open.
	mkfifo quiet
	exec 7<>quiet
	timeout 20 script -qec 'echo $$ >pid; exec ag2-ask -m "$MODEL" --stream s --confirm --tool ./mark q' /dev/null <quiet >shown 7>&- &
	asking=$!
	wait_for 20 grep -q 'run mark' shown
	kill -TERM "$(cat pid)"
	rc=0
	wait $asking || rc=$?
	exec 7>&-
	[ "$rc" -eq 143 ] || fail "$rc: $(cat shown)"
	[ ! -e marks ]
	ag2-store log cat --current s | tail -n 1 | grep -q '"ag2.events.tool_events.ToolCallEvent"'
}

@test "--confirm without a terminal is 78" {
	tool mark 'echo done'
	run setsid -w ag2-ask -m "$MODEL" --stream s --confirm --tool ./mark q </dev/null
	status_is 78
	has "needs a terminal"
}
