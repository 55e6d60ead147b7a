# The tool loop of ag2-ask: the knowledge tool, executables, and what goes wrong with them.

load helper
load scripted

setup() {
	clean_environment
	model_init
	export AG2_STORE=disk:$TMP/st
}

# result N: what the model read as results on its Nth call, one a line: class, parent id, text.
results() {
	jq -r 'select(.type | endswith("ToolResultsEvent")) | .data.results[] |
		[(.["__event__"] | split(".")[-1]), .parent_id, (.result.data.parts[0].content)] | join("|")' "$MODEL_DIR/sent.$1"
}

ask() {
	ag2-ask -m "$MODEL" "$@"
}

@test "an executable gets the arguments as JSON, and its output without the last newline is the result" {
	tool add 'jq ".a + .b"'
	answer_calls c1 add '{"a": 2, "b": 3}'
	answer_text "It is 5."
	run -0 ask --tool ./add 2+3 </dev/null
	output_is "It is 5."
	[ "$(results 2)" = "ToolResultEvent|c1|5" ]
}

@test "several calls of one response: results in the order of the calls, then the container of all" {
	tool a 'sleep 0.1; echo one'
	tool b 'echo two'
	answer_calls c1 a '{}' c2 b '{}' c3 a '{}'
	answer_text ok
	run -0 ask --tool ./a --tool ./b --stream s x
	ag2-store log cat --current s >log
	events_are log ModelRequest ModelResponse ToolCallsEvent ToolCallEvent ToolCallEvent ToolCallEvent \
		ToolResultEvent ToolResultEvent ToolResultEvent ToolResultsEvent ModelResponse
	[ "$(jq -rs '[.[] | select(.type | endswith("ToolResultEvent")) | .data.parent_id] | join(",")' log)" = c1,c2,c3 ]
	[ "$(results 2)" = $'ToolResultEvent|c1|one\nToolResultEvent|c2|two\nToolResultEvent|c3|one' ]
}

@test "calls are in the log before a tool starts, and each result when its tool ends" {
	tool a 'ag2-store log cat --current s | wc -l >seen.a'
	tool b 'ag2-store log cat --current s | wc -l >seen.b'
	answer_calls c1 a '{}' c2 b '{}'
	answer_text ok
	run -0 ask --tool ./a --tool ./b --stream s x
	[ "$(cat seen.a)" -eq 5 ]	# request, response, calls, call, call
	[ "$(cat seen.b)" -eq 6 ]	# and the result of a
}

@test "a missing tool is a ToolNotFoundEvent, and the model goes on" {
	answer_calls c1 nowhere '{}'
	answer_text ok
	run -0 ask x </dev/null
	[[ "$(results 2)" == "ToolNotFoundEvent|c1|"*"nowhere"* ]]
}

@test "a tool that fails is an error result with its status and what it said on stderr, else on stdout" {
	tool loud 'echo out; echo "no such city" >&2; exit 4'
	tool quiet 'echo "only this"; exit 1'
	answer_calls c1 loud '{}' c2 quiet '{}'
	answer_text ok
	run -0 --separate-stderr ask --tool ./loud --tool ./quiet x </dev/null
	[ -z "$stderr" ] || fail "$stderr"
	results 2 >got
	grep -q '^ToolErrorEvent|c1|.*status 4' got
	grep -q 'no such city' got
	grep -q '^ToolErrorEvent|c2|.*status 1' got
	grep -q 'only this' got
}

@test "what a tool that did not fail says on stderr is not part of its result" {
	tool t 'echo note >&2; echo result'
	answer_calls c1 t '{}'
	answer_text ok
	run -0 ask --tool ./t x </dev/null
	[ "$(results 2)" = "ToolResultEvent|c1|result" ]
}

@test "a tool that hangs is ended at its limit with all it started, and is an error result" {
	tool t 'sleep 300 & echo $! >child; echo $$ >self; wait'
	answer_calls c1 t '{}'
	answer_text ok
	run -0 ask --tool ./t --tool-timeout 5 x </dev/null
	[[ "$(results 2)" == "ToolErrorEvent|c1|"* ]]
	for pid in $(cat child self); do
		wait_for 20 gone "$pid"
	done
}

# A process that has ended, whether or not anybody has asked for its status.
gone() {
	! kill -0 "$1" || grep -q "^State:.Z" "/proc/$1/status"
}

@test "kill -9 of ag2-ask ends its tool with all it started, also what does not hear SIGTERM" {
	tool t 'sleep 300 & echo $! >child; sh -c "trap \"\" TERM; echo \$\$ >deaf; while :; do sleep 1; done" & echo $$ >self; wait'
	answer_calls c1 t '{}'
	ag2-ask -m "$MODEL" --tool ./t x </dev/null >out 2>err &
	pid=$!
	wait_for 20 test -s self -a -s child -a -s deaf
	kill -KILL $pid
	wait $pid 2>/dev/null || true
	for left in $(cat child self deaf); do
		wait_for 20 gone "$left"
	done
}

@test "a tool that prints more than 1 MB is ended, and is an error result" {
	tool t 'yes'
	answer_calls c1 t '{}'
	answer_text ok
	run -0 ask --tool ./t x </dev/null
	[[ "$(results 2)" == "ToolErrorEvent|c1|"* ]]
	[ "$(wc -c <"$MODEL_DIR/sent.2")" -lt 100000 ]
}

@test "arguments that are not a JSON object run nothing, and are an error result; none at all are {}" {
	tool t 'cat >>ran; echo done'
	answer_calls c1 t '{"a": ' c2 t '[1]' c3 t '"x"' c4 t ''
	answer_text ok
	run -0 ask --tool ./t x </dev/null
	[ "$(cat ran)" = '{}' ]
	[ "$(results 2 | grep -c '^ToolErrorEvent|c[123]|')" -eq 3 ]
	results 2 | grep -qx 'ToolResultEvent|c4|done'
}

@test "big integers and NULs in arguments reach the tool as they were written" {
	tool t 'cat'
	answer_calls c1 t '{"id": 2512292042121000001,  "x": "a\u0000b"}'
	answer_text ok
	run -0 ask --tool ./t x </dev/null
	[ "$(results 2)" = 'ToolResultEvent|c1|{"id": 2512292042121000001,  "x": "a\u0000b"}' ]
}

@test "output that is not UTF-8 becomes text, an empty result is one" {
	tool bytes 'printf "a\377b"'
	tool nothing 'true'
	answer_calls c1 bytes '{}' c2 nothing '{}'
	answer_text ok
	run -0 ask --tool ./bytes --tool ./nothing x </dev/null
	results 2 | grep -qx $'ToolResultEvent|c1|a\xef\xbf\xbdb'
	results 2 | grep -q '^ToolResultEvent|c2|'
}

@test "a tool need not read its arguments" {
	tool t 'exec <&-; echo done'
	answer_calls c1 t "{\"a\": \"$(printf '%100000s' '')\"}"
	answer_text ok
	run -0 ask --tool ./t x </dev/null
	[ "$(results 2)" = "ToolResultEvent|c1|done" ]
}

@test "tools and the answer never hold a key: not in environments, arguments, logs or messages" {
	tool t 'env >tool.env; tr "\0" " " </proc/$$/cmdline >tool.argv'
	cat >a.yaml <<-END
		model: {model: "$MODEL", api_key_env: MY_SECRET}
		knowledge: {store: "disk:st", aggregate: {strategy: working_memory, model: {model: "openai:m", api_key_env: OTHER_SECRET}}}
		tools: [./t]
	END
	answer_calls c1 t '{}'
	answer_text ok
	OPENAI_API_KEY=sk-1 ANTHROPIC_AUTH_TOKEN=sk-2 MY_SECRET=sk-3 OTHER_SECRET=sk-4 WEATHER_KEY=mine \
		run -0 ag2-ask -c a.yaml -v --stream s x
	grep -qx WEATHER_KEY=mine tool.env
	run grep -rl 'sk-[1234]' tool.env tool.argv st "$MODEL_DIR"
	status_is 1
	hasnt sk-
}

@test "the tool's name, description and parameters reach the model" {
	cat >t <<-'END'
		#!/bin/sh
		echo '{"name": "find_city", "description": "Finds one.", "parameters": {"type": "object", "properties": {"q": {"type": "string"}}}}'
	END
	chmod +x t
	run -0 ag2-ask -m openai:gpt-5 --tool ./t -n x </dev/null
	[ "$(jq -c '.tools[0].function | [.name, .description, .parameters.properties]' <<<"$output")" = '["find_city","Finds one.",{"q":{"type":"string"}}]' ]
}

@test "a declaration in the agent file needs no --schema" {
	printf '#!/bin/sh\n[ $# -eq 0 ] || exit 9\ncat\n' >t
	chmod +x t
	printf 'model: "%s"\ntools:\n- {name: echo, description: Says it, parameters: {type: object}, exec: "./t | tr a-z A-Z"}\n' "$MODEL" >a.yaml
	answer_calls c1 echo '{"a": "b"}'
	answer_text ok
	run -0 ag2-ask -c a.yaml --stream s x
	[ "$(results 2)" = 'ToolResultEvent|c1|{"A": "B"}' ]
}

@test "a tool that declares nothing usable is 78, and the model is not asked" {
	printf '#!/bin/sh\nexit 3\n' >fails
	printf '#!/bin/sh\necho hello\n' >text
	printf '#!/bin/sh\necho "{}"\n' >empty
	printf '#!/bin/sh\necho "{\\"name\\": \\"a b\\"}"\n' >badname
	chmod +x fails text empty badname
	for t in fails text empty badname nowhere; do
		run ask --tool ./$t x </dev/null
		status_is 78
		[ "${#lines[@]}" -eq 1 ] || fail "$t: $output"
	done
	has "ended with status 127: " "$output"
	has "not found" "$output"
	tool a 'true'
	run ask --tool ./a --tool ./a x </dev/null
	status_is 78
	has "two tools are called 'a'"
	[ "$(asked)" -eq 0 ]
}

@test "a tool's name without a slash is a file here, else a program of PATH" {
	mkdir bin
	(cd bin && tool where 'echo in PATH')
	PATH=$TMP/bin:$PATH
	answer_calls c1 where '{}'
	answer_text ok
	run -0 ask --tool where x </dev/null
	[ "$(results 2)" = "ToolResultEvent|c1|in PATH" ]
	tool where 'echo here'
	model_init
	answer_calls c1 where '{}'
	answer_text ok
	run -0 ask --tool where x </dev/null
	[ "$(results 2)" = "ToolResultEvent|c1|here" ]
	mkdir 'a dir'
	(cd 'a dir' && tool "it" 'echo quoted')
	model_init
	answer_calls c1 it '{}'
	answer_text ok
	run -0 ask --tool "a dir/it" x </dev/null
	[ "$(results 2)" = "ToolResultEvent|c1|quoted" ]
}

@test "the knowledge tool reads and writes the store, and not its log" {
	answer_calls c1 knowledge '{"action": "write", "path": "/notes/n.md", "content": "a note"}' \
		c2 knowledge '{"action": "read", "path": "/notes/n.md"}' \
		c3 knowledge '{"action": "write", "path": "/log/x.jsonl", "content": "x"}' \
		c4 knowledge '{"action": "delete", "path": "/"}'
	answer_text ok
	run -0 ask --tool knowledge --stream s x
	[ "$(ag2-store cat /notes/n.md)" = "a note" ]
	results 2 >got
	sed -n 1p got | grep -qxF 'ToolResultEvent|c1|Written to /notes/n.md'
	sed -n 2p got | grep -qxF 'ToolResultEvent|c2|a note'
	run ag2-store exists /log/x.jsonl
	status_is 1
	ag2-store exists /log/s.jsonl
}

@test "the knowledge tool is there with knowledge in the file, unless expose_tool is false, and once" {
	names() {
		ag2-ask -c a.yaml -n "$@" x | jq -r '[.tools // [] | .[].function.name] | join(",")'
	}
	printf 'model: openai:m\nknowledge: {store: "disk:st"}\n' >a.yaml
	[ "$(names)" = knowledge ]
	[ "$(names --tool knowledge)" = knowledge ]
	printf 'model: openai:m\nknowledge: {store: "disk:st", expose_tool: false}\n' >a.yaml
	[ "$(names)" = "" ]
	[ "$(names --tool knowledge)" = knowledge ]
	printf 'model: openai:m\n' >a.yaml
	[ "$(names)" = "" ]
}

@test "after --max-rounds calls without an answer the status is 69, the last tools have run, and -C goes on" {
	tool t 'echo x >>ran'
	for i in 1 2 3; do answer_calls "c$i" t '{}'; done
	answer_text "at last"
	run ask --tool ./t --max-rounds 3 --stream s x
	status_is 69
	has "3 rounds"
	[ "$(wc -l <ran)" -eq 3 ]
	[ "$(asked)" -eq 3 ]
	run -0 ask --tool ./t -C
	output_is "at last"
}

@test "an interrupt while a tool runs ends the tool; the turn goes on from there with -C" {
	tool t 'echo $$ >pid; exec sleep 300'
	answer_calls c1 t '{}'
	answer_text "went on"
	set -m
	ag2-ask -m "$MODEL" --tool ./t --stream s x >out 2>&1 &
	pid=$!
	wait_for 20 test -s pid
	kill -INT $pid
	status=0
	wait $pid || status=$?
	status_is 130
	wait_for 20 gone "$(cat pid)"
	ag2-store log cat --current s >log
	events_are log ModelRequest ModelResponse ToolCallsEvent ToolCallEvent
	run -0 --separate-stderr ask --tool ./t -C
	output_is "went on"
}
