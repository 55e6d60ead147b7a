#!/usr/bin/env bats
# --compare: where a request begins to differ; -n -v and refusals: which line a message comes from.
load helper
load assemble
load scripted

teardown() {
	[ ! -e "$TMP/web/pid" ] || kill "$(cat "$TMP/web/pid")" 2>/dev/null || true
}

@test "the first byte that differs, its part and the tokens behind it are told" {
	{ U q; A a; U two; } >in
	ag2-ask -n -m openai:x <in >before
	run --separate-stderr ag2-ask -n -m openai:x --compare before <in
	has "compare: all $(($(wc -c <before) - 1)) bytes are those of before" "$stderr"
	{ U q; A a; U twO; } | ag2-ask -n -m openai:x --compare before 2>err >after
	at=$(cmp before after | sed 's/.*byte \([0-9]*\),.*/\1/')
	has "compare: byte $at of " "$(cat err)"
	has ", in messages[2]; " "$(cat err)"
	tokens=$((($(wc -c <after) - 1 - at + 1) / 4))
	has "; $tokens tokens from there on" "$(cat err)"
	ag2-ask -n -m openai:y --compare before <in 2>err >/dev/null
	has ', in "model"; ' "$(cat err)"
	cat in - <<<"$(A b; U new)" | ag2-ask -n -m openai:x --compare before 2>err >/dev/null
	has ', in messages[3]; ' "$(cat err)"
	run ag2-ask -n -m openai:x --compare nothing <in
	status_is 66
}

@test "ag2-assemble compares with what it wrote before, line by line" {
	{ U q; A a; U two; } >in
	ag2-assemble sliding-window:2 <in >before
	ag2-assemble --compare before sliding-window:2 <in 2>err | same before /dev/stdin
	has 'bytes are those of before' "$(cat err)"
	{ U q; A a; U other; } | ag2-assemble --compare before sliding-window:2 2>err >/dev/null
	has ', in line 2; ' "$(cat err)"
	U q | ag2-assemble >before
	{ U q; A a; } | ag2-assemble | tee longer | ag2-assemble --compare before 2>err >/dev/null
	has ', in line 2; ' "$(cat err)"
	ag2-assemble --compare longer <before 2>err >/dev/null
	has "compare: all $(wc -c <before) bytes are the beginning of longer, which has $(($(wc -c <longer) - $(wc -c <before))) more" "$(cat err)"
	ag2-assemble --compare before </dev/null 2>err
	has "compare: nothing came out, where before has $(wc -c <before) bytes" "$(cat err)"
	run --separate-stderr ag2-assemble --compare last <in
	status_is 64
	has 'ag2-ask' "$stderr"
}

@test "--compare last keeps what is sent, and compares each call with the one before" {
	model_init
	printf 'echo "answer %d"\n' 1 >model/answer.1
	cp model/answer.1 model/answer.2
	ag2-ask -s st --stream s -m "$MODEL" one 2>err >/dev/null
	[ ! -e st/.ag2/sent ] || fail "kept without being asked"
	ag2-ask -s st --stream s -m "$MODEL" --compare last two 2>err >/dev/null
	has 'no earlier request' "$(cat err)"
	cmp st/.ag2/sent/s model/sent.2
	cp model/answer.1 model/answer.3
	ag2-ask -n -s st --stream s -m "$MODEL" --compare last three 2>err >dry
	has "byte $(($(wc -c <model/sent.2) + 1)) of" "$(cat err)"
	cmp st/.ag2/sent/s model/sent.2
	ag2-ask -s st --stream s -m "$MODEL" --compare last three 2>err >/dev/null
	has ", in line 4; " "$(cat err)"
	cmp st/.ag2/sent/s model/sent.3
	[ -z "$(ag2-store -s st ls | grep ag2)" ]
	ag2-store -s st log rm s
	[ -z "$(ag2-store -s st ls -aR | grep sent)" ] || fail "$(ag2-store -s st ls -aR)"
	run ag2-ask -n -m openai:x --compare last q </dev/null
	status_is 64
}

# origins PROVIDER: message and line, for each.
origins() {
	ag2-ask -n -v -m "$1:x" 2>&1 >/dev/null | sed -n 's/^ag2-ask: message \([0-9]*\): \(lines* \)*\([^,]*\).*/\1=\3/p' | tr '\n' ' '
}

@test "-n -v names the line of each message, for each provider" {
	{ U q; A a; usage; U 2; C c1 c2; R c1=v c2=w; A done; U 'what now?'; } >in
	[ "$(origins openai <in)" = '0=1 1=2 2=4 3=5 4=6 5=6 6=7 7=8 ' ] || fail "$(origins openai <in)"
	[ "$(origins anthropic <in)" = '0=1 1=2 2=4 3=5 4=6 5=7 6=8 ' ] || fail "$(origins anthropic <in)"
	[ "$(origins gemini <in)" = '0=1 1=2 2=4 3=5 4=6 5=7 6=8 ' ] || fail "$(origins gemini <in)"
	[ "$(origins openai-responses <in)" = '0=1 1=2 2=4 3=5 4=5 5=6 6=6 7=7 8=8 ' ] || fail "$(origins openai-responses <in)"
	[ "$(origins ollama <in)" = '0=1 1=2 2=4 3=5 4=6 5=6 6=7 7=8 ' ] || fail "$(origins ollama <in)"
	{ echo '{"type": "Prompt", "data": {"content": "s"}}'; echo '{"type": "Prompt", "data": {"content": "m", "place": "end"}}'; U q; C c1; R c1=x; } >in
	[ "$(origins openai <in)" = '0=the prompts 1=3 2=4 3=5 4=the context ' ] || fail "$(origins openai <in)"
}

@test "-n -v names the line of each message of a history of any length, and what repaired events were made of" {
	jq -cn 'range(6001) | {type: "ModelRequest", data: {parts: [{__event__: "TextInput", content: "q"}]}},
		{type: "ModelResponse", data: {message: {content: "a"}}}' >in
	U last >>in
	[ "$(wc -l <in)" -eq 12003 ]
	for p in openai anthropic; do
		[ "$(origins $p <in)" = "$(seq 0 12002 | awk '{ printf "%d=%d ", $1, $1 + 1 }')" ] || fail "$p: $(origins $p <in | tail -c 200)"
	done
	{ U q; C a b; r a=1; r b=2; U next; C c; A ok; R c=late; U last; } >in
	[ "$(origins openai <in)" = '0=1 1=2 2=3 3=4 4=5 5=6 6=8 7=7 8=9 ' ] || fail "$(origins openai <in)"
	[ "$(origins anthropic <in)" = '0=1 1=2 2=3-4 3=5 4=6 5=8 6=7 7=9 ' ] || fail "$(origins anthropic <in)"
	cat >a.yaml <<-'END'
		model: {provider: anthropic, model: x, cache: true}
	END
	chmod go-w a.yaml
	ag2-store -s st log append s <in
	ag2-ask -n -v -s st -c a.yaml --stream s again 2>&1 >sent | grep -o 'message [0-9]*: [^,]*' >got
	diff - got <<-'END'
		message 0: line 1
		message 1: line 2
		message 2: lines 3-4
		message 3: line 5
		message 4: line 6
		message 5: line 8
		message 6: line 7
		message 7: line 9
		message 8: new
	END
}

@test "-n -v names the line of each result that came alone, also late, and of none that was made" {
	{ U q; C a b c; r c=1; U x; r a=late; C a d; r d=2; U y; } >in
	for p in openai ollama; do
		[ "$(origins $p <in)" = '0=1 1=2 2=5 3=new 4=3 5=4 6=6 7=new 8=7 9=8 ' ] || fail "$p: $(origins $p <in)"
	done
	for p in anthropic gemini; do
		ag2-ask -n -v -m $p:x <in 2>&1 >/dev/null | grep ': message ' >got
		diff - got <<-'END'
			ag2-ask: message 0: line 1, ModelRequest
			ag2-ask: message 1: line 2, ModelResponse
			ag2-ask: message 2: line 5, ToolResultEvent; new, ToolResultsEvent; line 3, ToolResultEvent
			ag2-ask: message 3: line 4, ModelRequest
			ag2-ask: message 4: line 6, ModelResponse
			ag2-ask: message 5: new, ToolResultsEvent; line 7, ToolResultEvent
			ag2-ask: message 6: line 8, ModelRequest
		END
	done
	ag2-ask -n -m openai:x --explain=json <in 2>&1 >/dev/null | grep '^{' | jq -r 'select(.type == "ToolResultEvent") | "\(.line) \(.action) \(.why)"' >got
	diff - got <<-'END'
		3 dropped its result is in the container made for its round
		5 dropped its result is in the container made for its round
		7 dropped its result is in the container made for its round
	END
}

@test "-n -v names some of the lines of a message that is made of many" {
	calls=$(seq -f 'c%g' 20)
	{ U q; C $calls; for c in $calls; do r "$c=x"; usage; done; U y; } >in
	ag2-ask -n -v -m anthropic:x <in 2>&1 >/dev/null | grep ': message 2: ' >got
	[[ $(cat got) = "ag2-ask: message 2: line 3, ToolResultEvent; line 5, ToolResultEvent; "*"; and 12 more" ]] || fail "$(cat got)"
	{ U q; C $calls; for c in $calls; do r "$c=x"; done; U y; } >in
	ag2-ask -n -v -m anthropic:x <in 2>&1 >/dev/null | grep ': message 2: ' >got
	[ "$(cat got)" = "ag2-ask: message 2: lines 3-22, ToolResultEvent" ] || fail "$(cat got)"
}

# refusal N TEXT: connection N is refused with this body.
refusal() {
	mkdir -p web
	printf 'head 400 application/json\nsend %s\n' "$2" >"web/$1"
}

@test "a refusal that names a message is told with its line, each provider's way" {
	refusal 1 '{"error": {"message": "Invalid value for messages[3].content", "type": "invalid_request_error"}}'
	refusal 2 '{"error": {"message": "A message with role tool must follow its calls.", "type": "invalid_request_error", "param": "messages.[3].role", "code": null}}'
	refusal 3 '{"error": {"message": "Invalid type: expected a string.", "type": "invalid_request_error", "param": "input[2].content[0]", "code": "invalid_type"}}'
	refusal 4 '{"type": "error", "error": {"type": "invalid_request_error", "message": "messages.2.content.0: unexpected tool_use_id"}}'
	refusal 5 '{"error": {"code": 400, "message": "* GenerateContentRequest.contents[2].parts: contents.parts must not be empty.", "status": "INVALID_ARGUMENT"}}'
	refusal 6 '{"error": {"code": 400, "message": "Request contains an invalid argument.", "status": "INVALID_ARGUMENT", "details": [{"@type": "t"}, {"fieldViolations": [{"field": "contents[2].parts[0]", "description": "d"}]}]}}'
	refusal 7 '{"error": "messages[3]: no such image"}'
	"$TOOLS/httpd" -d -t 60 "$TMP/web" >/dev/null
	{ U q; A a; usage; U 2; } | ag2-assemble --prompt sys >in
	export OPENAI_API_KEY=k ANTHROPIC_API_KEY=k GEMINI_API_KEY=k
	for case in "openai messages[3].content 3" "openai messages.[3].role 3" "openai-responses input[2].content[0] 2" "anthropic messages.2.content.0 2" \
		"gemini contents[2].parts 2" "gemini contents[2].parts[0] 2" "ollama messages[3] 3"; do
		set -- $case
		run --separate-stderr ag2-ask -m "$1:m" --base-url "http://127.0.0.1:$(cat web/port)" <in
		[ "$status" -eq 69 ] || [ "$status" -eq 65 ] || fail "$case: status $status"
		has "$2" "$stderr"
		has "(message $3: line 5, ModelRequest)" "$stderr"
	done
}
