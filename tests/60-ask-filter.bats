# ag2-ask as a filter: a stream in, text or event lines out.

load helper
load scripted

setup() {
	clean_environment
	model_init
}

U='{"type": "ag2.events.input_events.ModelRequest", "data": {"created_at": 1.5, "parts": [{"__event__": "ag2.events.input_events.TextInput", "created_at": 0.5, "metadata": {}, "content": "Hi"}]}}'
A='{"type": "ag2.events.types.ModelResponse", "data": {"created_at": 2.5, "message": {"__event__": "ag2.events.types.ModelMessage", "content": "Hello"}}}'

@test "the answer is printed, and the model got the stream and the text as the last request" {
	answer_text "You said Hi."
	printf '%s\n%s\n' "$U" "$A" >in
	run -0 ag2-ask -m "$MODEL" What did I say? <in
	output_is "You said Hi."
	head -n 2 "$MODEL_DIR/sent.1" >first
	same in first
	[ "$(sed -n 3p "$MODEL_DIR/sent.1" | jq -r .data.parts[0].content)" = "What did I say?" ]
	[ "$(wc -l <"$MODEL_DIR/sent.1")" -eq 3 ]
}

@test "without TEXT the request at the end of the stream is asked" {
	answer_text "Hello"
	run -0 ag2-ask -m "$MODEL" <<<"$U"
	output_is "Hello"
}

@test "a stream whose last request is answered is status 1, and the model is not asked" {
	run ag2-ask -m "$MODEL" < <(printf '%s\n%s\n' "$U" "$A")
	status_is 1
	output_is "ag2-ask: there is nothing to ask: the last request is answered"
	[ "$(asked)" -eq 0 ]
}

@test "an empty stream without TEXT is status 1, with TEXT it is a question" {
	run ag2-ask -m "$MODEL" </dev/null
	status_is 1
	has "no request"
	answer_text "yes"
	run -0 ag2-ask -m "$MODEL" really </dev/null
	output_is "yes"
}

@test "Prompt lines become prompts, wherever they stand" {
	answer_text x
	{
		echo '{"type": "Prompt", "data": {"content": "One", "source": "working_memory"}}'
		echo "$U"
		echo '{"type": "Prompt", "data": {"content": "Two"}}'
	} | ag2-ask -m "$MODEL"
	[ "$(jq -rs '[.[] | select(.type == "Prompt") | .data.content] | join(",")' "$MODEL_DIR/sent.1")" = "One,Two" ]
}

@test "an answer without a last newline gets one, one with it does not" {
	answer_sh 'printf abc'
	run -0 ag2-ask -m "$MODEL" x </dev/null
	answer_sh 'printf abc'
	ag2-ask -m "$MODEL" x </dev/null >got
	printf 'abc\n' >want
	same want got
	answer_calls -m 'abc
'
	ag2-ask -m "$MODEL" x </dev/null >got
	same want got
}

@test "the bytes of the answer come out of a pipe as they are" {
	answer_calls -m $'a\033[31mred\xe2\x80\xaeb\tc'
	ag2-ask -m "$MODEL" x </dev/null >got
	printf 'a\033[31mred\xe2\x80\xaeb\tc\n' >want
	same want got
}

@test "on a terminal control characters and bidi overrides of the answer are shown, not obeyed" {
	need_terminal
	answer_calls -m $'a\033[31mred\xe2\x80\xaeb\tc\nd'
	run -0 script -qec "ag2-ask -m '$MODEL' x </dev/null" /dev/null
	has 'a\x1b[31mred\xe2\x80\xaeb'
	hasnt $'\033'
}

@test "--events prints the request made from TEXT, then the response" {
	answer_text Hello
	printf '%s\n%s\n' "$U" "$A" | ag2-ask -m "$MODEL" --events again >got
	events_are got ModelRequest ModelResponse
	[ "$(jq -rs '.[0].data.parts[0].content' got)" = again ]
	[ "$(jq -rs '.[1].data.message.content' got)" = Hello ]
}

@test "--no-stream prints only the last response, --events nothing of the text of the others" {
	tool t 'echo done'
	answer_calls -m "let me see" c1 t '{}'
	answer_text "it is done"
	run -0 ag2-ask -m "$MODEL" --tool ./t --no-stream x </dev/null
	output_is "it is done"
}

@test "text that comes with tool calls is a line of its own" {
	tool t 'echo done'
	answer_calls -m "let me see" c1 t '{}'
	answer_text "it is done"
	run -0 ag2-ask -m "$MODEL" --tool ./t x </dev/null
	output_is $'let me see\nit is done'
}

@test "a bad line is named, the rest is used, and the status is 65 at the end" {
	answer_text ok
	run ag2-ask -m "$MODEL" < <(printf '{"type": "x\n%s\n' "$U")
	status_is 65
	has "ag2-ask: stdin:1: byte "
	has "ok"
	[ "$(wc -l <"$MODEL_DIR/sent.1")" -eq 1 ]
}

@test "a stream of nothing but bad lines is 65, and the model is not asked" {
	run ag2-ask -m "$MODEL" <<<garbage
	status_is 65
	has "stdin:1: "
	[ "$(asked)" -eq 0 ]
}

@test "a line that is JSON, but cannot be had, is a bad line: in any event, the question itself too" {
	answer_text Hello
	for bad in '{"type":"ag2.events.types.ModelResponse","data":{"message":{"content":"x","a\u0000":1}}}' "${U%\}}, \"a\\u0000\": 1}"; do
		run -65 ag2-ask -m "$MODEL" --strict < <(printf '%s\n%s\n' "$U" "$bad")
		has "stdin:2: byte "
		has "NUL"
		[ ! -e "$MODEL_DIR/sent.1" ]
	done
}

@test "--skip-bad makes bad lines no failure, --strict stops before the model is asked" {
	answer_text ok
	run -0 ag2-ask -m "$MODEL" --skip-bad < <(printf 'garbage\n%s\n' "$U")
	has "ok"
	run ag2-ask -m "$MODEL" --strict < <(printf 'garbage\n%s\n' "$U")
	status_is 65
	[ "$(asked)" -eq 1 ]
}

@test "what is broken only in its content is a bad line too" {
	answer_text ok
	run ag2-ask -m "$MODEL" < <(printf '{"type": "x", "data": {"a": 01}}\n%s\n' "$U")
	status_is 65
	has "stdin:1: byte "
}

@test "histories are made sendable, unless --as-ag2" {
	R='{"type": "ag2.events.tool_events.ToolResultsEvent", "data": {"created_at": 1.5, "results": [{"__event__": "ag2.events.tool_events.ToolResultEvent", "created_at": 1.5, "parent_id": "c9", "name": "t", "result": {"__dataclass__": "ag2.events.tool_events.ToolResult", "data": {"parts": [{"__event__": "ag2.events.input_events.TextInput", "content": "x"}], "final": false, "metadata": {}}}}]}}'
	answer_text ok
	answer_text ok
	run -0 ag2-ask -m "$MODEL" < <(printf '%s\n%s\n' "$R" "$U")
	events_are "$MODEL_DIR/sent.1" ModelRequest
	run -0 ag2-ask -m "$MODEL" --as-ag2 < <(printf '%s\n%s\n' "$R" "$U")
	events_are "$MODEL_DIR/sent.2" ToolResultsEvent ModelRequest
}

@test "a HaltEvent behind the last response: no call, HALTED, status 3" {
	H='{"type": "ag2.events.alert.HaltEvent", "data": {"created_at": 5.5, "reason": "FATAL: disk", "source": "m", "alerts": []}}'
	run ag2-ask -m "$MODEL" < <(printf '%s\n%s\n' "$U" "$H")
	status_is 3
	output_is "HALTED: FATAL: disk"
	[ "$(asked)" -eq 0 ]
	run ag2-ask -m "$MODEL" --events more < <(printf '%s\n%s\n' "$U" "$H")
	status_is 3
	printf '%s\n' "${lines[@]}" >got
	events_are got ModelRequest HaltEvent ModelResponse
	[ "$(sed -n 2p got)" = "$H" ]
}

@test "a HaltEvent of the log is in it once after a turn as a pipeline" {
	export AG2_STORE=disk:$TMP/st
	H='{"type": "ag2.events.alert.HaltEvent", "data": {"created_at": 5.5, "reason": "by hand", "source": "m", "alerts": []}}'
	printf '%s\n%s\n' "$U" "$H" | ag2-store log append s
	answer_text "free again"
	for text in "" next; do
		ag2-store log cat --current s | ag2-assemble alert sliding-window:80 |
			ag2-ask -m "$MODEL" --events $text | ag2-store log append s || true
	done
	ag2-store log cat s >log
	events_are log ModelRequest HaltEvent ModelResponse ModelRequest ModelResponse
	[ "$(asked)" -eq 1 ]
}

@test "a HaltEvent before the last response is obeyed no more" {
	H='{"type": "ag2.events.alert.HaltEvent", "data": {"created_at": 5.5, "reason": "FATAL: disk", "source": "m", "alerts": []}}'
	answer_text free
	run -0 ag2-ask -m "$MODEL" < <(printf '%s\n%s\n%s\n%s\n' "$U" "$H" "$A" "$U")
	output_is free
}

@test "nothing is stored" {
	answer_text ok
	run -0 ag2-ask -m "$MODEL" hi </dev/null
	[ ! -e "$XDG_STATE_HOME" ]
}

@test "no model is 78 with an example" {
	run ag2-ask hi </dev/null
	status_is 78
	has "-m openai:gpt-5"
}

@test "AG2_MODEL and the model of AG2_CONFIG are used where there is no -m; of AG2_CONFIG nothing else" {
	answer_text one
	answer_text two
	answer_text three
	AG2_MODEL=$MODEL run -0 ag2-ask hi </dev/null
	output_is one
	printf 'prompt: secret prompt\nmodel: "%s"\ntools: [./nothing]\nknowledge:\n' "$MODEL" >a.yaml
	AG2_CONFIG=a.yaml run -0 ag2-ask hi </dev/null
	output_is two
	hasnt Prompt "$(cat "$MODEL_DIR/sent.2")"
	AG2_CONFIG=a.yaml AG2_MODEL=exec:false run -0 ag2-ask -m "$MODEL" hi </dev/null
	output_is three
}

@test "usage errors are 64 and name what is wrong" {
	run ag2-ask --nosuch
	status_is 64
	run ag2-ask -m "$MODEL" --max-rounds 0 x </dev/null
	status_is 64
	run ag2-ask -m "$MODEL" --tool-timeout 0 x </dev/null
	status_is 64
	run ag2-ask -m "$MODEL" --skip-bad --strict x </dev/null
	status_is 64
	run ag2-ask -m "$MODEL" --stream s -C x
	status_is 64
	run ag2-ask -m "$MODEL" --status-fd 77 x </dev/null
	status_is 64
	run ag2-ask -m "$MODEL" '' </dev/null
	status_is 64
	run ag2-ask -m "$MODEL" - </dev/null
	status_is 64
	run ag2-ask -m nonsense x </dev/null
	status_is 64
	run ag2-ask --check
	status_is 64
	[ "$(asked)" -eq 0 ]
}

@test "text that is not UTF-8 is 65" {
	run ag2-ask -m "$MODEL" $'a\xff' </dev/null
	status_is 65
	has "byte 2"
}

@test "standard output that is full ends the call with 74, one that is closed before it too" {
	answer_sh 'echo a; sleep 0.2; echo b'
	answer_text a
	run bash -c 'ag2-ask -m "$1" x </dev/null >/dev/full' - "$MODEL"
	status_is 74
	has "No space left"
	run bash -c 'ag2-ask -m "$1" x </dev/null >&-' - "$MODEL"
	status_is 74
}

@test "a reader that goes away ends it by SIGPIPE" {
	answer_sh 'echo a; n=0; until [ -e gone ] || [ $n -gt 6000 ]; do n=$((n + 1)); sleep 0.02; done; echo b; sleep 0.5; echo c'
	run bash -c '{ ag2-ask -m "$1" x </dev/null; echo $? >status; } | { head -c 1; exec <&-; : >gone; }' - "$MODEL"
	wait_for 20 test -s status
	[ "$(cat status)" -eq 141 ] || fail "status $(cat status)"
	[ "$output" = a ]
}

@test "the model's command failing is 69 with one line" {
	answer_sh 'exit 9'
	run ag2-ask -m "$MODEL" x </dev/null
	status_is 69
	[ "${#lines[@]}" -le 2 ] || fail "$output"
}

@test "-v says which tools are called, what was used and what failed" {
	tool t 'echo no >&2; exit 4'
	answer_calls c1 t '{}'
	{
		echo '{"type": "ag2.events.types.UsageEvent", "data": {"created_at": 1.5, "kind": "model_call", "usage": {"__dataclass__": "ag2.events.types.Usage", "data": {"prompt_tokens": 10, "completion_tokens": 2, "total_tokens": 12}}}}'
		echo "$A"
	} | answer_file
	run -0 --separate-stderr ag2-ask -m "$MODEL" -v --tool ./t x </dev/null
	output_is Hello
	has "tool: t" "$stderr"
	has "tool failed: " "$stderr"
	has "tokens: 10 in, 2 out, 12 in all" "$stderr"
}

# limited KB COMMAND...: under ulimit -v, which the sanitizers cannot bear.
limited() {
	local limit=$1
	shift
	case $BIN in
	*asan*) "$@" ;;
	*) bash -c 'ulimit -v "$0"; exec "$@"' "$limit" "$@" ;;
	esac
}

@test "a line of 70 MB is a bad line, in bounded memory, and the rest is asked" {
	answer_text ok
	{
		head -c 70000000 /dev/zero | tr '\0' x
		printf '\n%s\n' "$U"
	} >big
	run --separate-stderr limited 400000 ag2-ask -m "$MODEL" <big
	status_is 65
	output_is ok
	has "stdin:1: " "$stderr"
	[ "$(wc -l <"$MODEL_DIR/sent.1")" -eq 1 ]
}

@test "a stream that is more than a call can take is 65, in bounded memory, and the model is not asked" {
	{
		printf '{"type": "ag2.events.input_events.ModelRequest", "data": {"parts": [{"__event__": "ag2.events.input_events.TextInput", "content": "'
		head -c 45000000 /dev/zero | tr '\0' x
		printf '"}]}}\n'
	} >big
	run --separate-stderr limited 800000 bash -c 'cat big big big | ag2-ask -m "$1"' - "$MODEL"
	status_is 65
	has "more than 128 MB" "$stderr"
	[ "$(asked)" -eq 0 ]
}
