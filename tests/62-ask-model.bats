# ag2-ask with a Chat Completions server and with cassettes. By its other name over TLS.
load helper
load tls

KEY=sk-test-0123456789abcdef

setup() {
	clean_environment
	mkdir web
	export OPENAI_API_KEY=$KEY
	# Nothing of a test may leave this machine.
	export https_proxy=http://127.0.0.1:1 http_proxy=http://127.0.0.1:1 no_proxy=127.0.0.1
	over_tls
	URL=$SCHEME://127.0.0.1:$("$TOOLS/httpd" -d -t 600 "${TLS[@]}" "$TMP/web")/v1
	M=(-m openai:gpt-5 --base-url "$URL")
}

teardown() {
	[ ! -e "$TMP/web/pid" ] || kill "$(cat "$TMP/web/pid")"
}

# script N: the answer to request N, on standard input.
script() {
	cat >"web/$1"
}

# piece TEXT, finish [REASON], call ID NAME ARGUMENTS: steps of a script.
piece() {
	jq -nr --arg t "$1" '"data " + ({choices: [{delta: {content: $t}}]} | tojson | gsub("\\\\"; "\\\\"))'
}

finish() {
	jq -nr --arg r "${1-stop}" '"data " + ({choices: [{delta: {}, finish_reason: $r}]} | tojson)'
	echo 'data {"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":2,"total_tokens":9}}'
	echo 'data [DONE]'
}

call() {
	jq -nr --arg i "$1" --arg n "$2" --arg a "$3" '"data " + ({choices: [{delta: {tool_calls: [{index: 0, id: $i, type: "function",
		function: {name: $n, arguments: $a}}]}}]} | tojson | gsub("\\\\"; "\\\\"))'
}

stream() {
	echo head 200 text/event-stream
}

responses() {
	jq -s '[.[] | select(.type | endswith("ModelResponse"))] | length' "$1"
}

@test "the answer is printed as it arrives" {
	{ stream; piece 'Read '; echo wait go; piece Calvino.; finish; } | script 1
	ag2-ask "${M[@]}" 'What next?' </dev/null >out 3>&- &
	wait_for 20 grep -q 'Read ' out
	[ "$(cat out)" = 'Read ' ]
	: >web/go
	wait $!
	[ "$(cat out)" = 'Read Calvino.' ]
}

@test "with --no-stream nothing is printed before the answer is complete" {
	{ echo head 200 application/json; echo 'send {"choices":[{"message":'; echo touch half; echo wait go
	  echo 'send {"content":"all"},"finish_reason":"stop"}]}'; } | script 1
	ag2-ask "${M[@]}" --no-stream q </dev/null >out 3>&- &
	wait_for 20 test -e web/half
	[ ! -s out ]
	: >web/go
	wait $!
	[ "$(cat out)" = all ]
	[ "$(jq -c 'has("stream")' web/1.body)" = false ]
}

@test "the body that -n prints is the one that is sent" {
	{ stream; piece a; finish; } | script 1
	ag2-ask "${M[@]}" -n 'What next?' </dev/null >body
	ag2-ask "${M[@]}" 'What next?' </dev/null
	[ "$(jq -Sc . body)" = "$(jq -Sc . web/1.body)" ]
	[ ! -e web/2.body ]
	run -0 env -u OPENAI_API_KEY ag2-ask -m openai:gpt-5 -n q </dev/null
	[ "$(jq -r '.messages[0].content' <<<"$output")" = q ]
}

@test "usage and reason are in the events" {
	{ stream; piece a; finish length; } | script 1
	ag2-ask "${M[@]}" --events q </dev/null >events
	[ "$(jq -r '.type | split(".")[-1]' events)" = $'ModelRequest\nUsageEvent\nModelResponse' ]
	[ "$(jq -r 'select(.type | endswith("Response")).data | [.finish_reason, .provider, .model, .usage.data.total_tokens] | join(" ")' events)" \
		= 'length openai gpt-5 9' ]
}

@test "a tool is called with the arguments as they came, and its result sent back" {
	printf '#!/bin/sh\n[ "$1" = --schema ] && { echo %s; exit; }\ncat >args\necho fine\n' \
		"'{\"name\": \"t\", \"parameters\": {\"type\": \"object\", \"properties\": {}}}'" >t
	chmod +x t
	{ stream; call c9 t '{"id":2512292042121000001}'; finish tool_calls; } | script 1
	{ stream; piece done; finish; } | script 2
	run -0 ag2-ask "${M[@]}" --tool ./t q </dev/null
	output_is done
	[ "$(cat args)" = '{"id":2512292042121000001}' ]
	[ "$(jq -r '.messages[-1] | [.role, .tool_call_id, .content] | join(" ")' web/2.body | tr -d '\n')" = 'tool c9 fine' ]
	[ "$(jq -r '.messages[-2].tool_calls[0].function.arguments' web/2.body)" = '{"id":2512292042121000001}' ]
	[ "$(jq -r '.tools[0].function.name' web/2.body)" = t ]
}

@test "a stream that is cut is 69, and the log holds the request alone until -C asks it again" {
	{ stream; piece 'half an'; } | script 1
	{ stream; piece whole; finish; } | script 2
	export AG2_STORE=disk:$TMP/s
	run -69 --separate-stderr ag2-ask "${M[@]}" --stream x q
	output_is 'half an'
	has incomplete "$stderr"
	[ "${#stderr_lines[@]}" -eq 1 ]
	ag2-store log cat x >log
	[ "$(wc -l <log)" -eq 1 ]
	[ "$(responses log)" -eq 0 ]
	run -0 ag2-ask "${M[@]}" -C
	output_is whole
	ag2-store log cat x >log
	[ "$(responses log)" -eq 1 ]
}

@test "a connection that is reset, garbage, and a login page are 69 with one line" {
	{ stream; piece a; echo pause 20; echo reset; } | script 1
	printf 'head 200 text/event-stream\nsend oops\n' | script 2
	printf 'head 200 text/html\nsend <html>log in</html>\n' | script 3
	: >web/4
	for n in 1 2 3 4; do
		run -69 --separate-stderr ag2-ask "${M[@]}" q </dev/null
		[ "${#stderr_lines[@]}" -eq 1 ]
	done
	[ -e web/4.head ]
}

@test "a key that is refused is 77, a limit 75, a failure 69, each with the server's words" {
	printf 'head 401 application/json\nsend {"error":{"message":"bad key %s"}}\n' "$KEY" | script 1
	printf 'head 429 application/json\nsend {"error":{"message":"slow down"}}\n' | script 2
	printf 'head 500 application/json\nsend {"error":{"message":"on \\x1b[31mfire"}}\n' | script 3
	run -77 ag2-ask "${M[@]}" q </dev/null
	has 'bad key [key]'
	run -75 ag2-ask "${M[@]}" --retries 0 q </dev/null
	has 'slow down'
	run -69 ag2-ask "${M[@]}" --retries 0 q </dev/null
	hasnt $'\x1b'
	[ "${#lines[@]}" -eq 1 ]
}

@test "no server is 69, no key 77, an http: address elsewhere 78" {
	run -69 ag2-ask -m openai:gpt-5 --base-url http://127.0.0.1:1/v1 q </dev/null
	[ "${#lines[@]}" -eq 1 ]
	run -77 env -u OPENAI_API_KEY ag2-ask -m openai:gpt-5 q </dev/null
	has OPENAI_API_KEY
	run -78 ag2-ask -m openai:gpt-5 --base-url http://192.0.2.1/v1 q </dev/null
	hasnt "$KEY"
}

@test "a server that echoes the key gets it into no output, log, cassette or tool" {
	printf '#!/bin/sh\n[ "$1" = --schema ] && { echo %s; exit; }\ntee args\nenv >env.tool\n' \
		"'{\"name\": \"t\", \"parameters\": {\"type\": \"object\", \"properties\": {}}}'" >t
	chmod +x t
	encoded=$(printf 'x:%s' "$KEY" | base64 -w 0)
	{ stream; piece "your key is $KEY, isn't it"; call c1 t "{\"a\":\"$KEY\",\"b\":\"$encoded\"}"; finish tool_calls; } | script 1
	{ stream; for ((i = 0; i < ${#KEY}; i++)); do piece "${KEY:i:1}"; done; piece " $encoded"; finish; } | script 2
	export AG2_STORE=disk:$TMP/s
	ag2-ask "${M[@]}" -v --tool ./t --record tape --stream x q >out 2>err
	grep -q 'your key is \[key\], isn' out
	[ -s tape ] && [ -s args ]
	for file in out err tape args env.tool s/log/x.jsonl; do
		! grep -F "${KEY:4}" $file || fail $file
	done
	! grep -F "${encoded:8:20}" tape args s/log/x.jsonl
	grep -qF "Bearer $KEY" web/2.head
}

@test "an error that quotes the key, in whatever form, is shown without it" {
	percent=$(printf '%s' "$KEY" | od -An -v -tx1 | tr -d '\n' | tr ' ' %)
	n=1
	for form in "$KEY" "$(base64 -w 0 <<<"x:$KEY")" "$percent" "${KEY:0:12} and ${KEY:12}"; do
		{ echo head 401 application/json; echo "send {\"error\":{\"message\":\"no such key: $form\"}}"; } | script $n
		{ echo head 500 text/plain; echo "send said $form"; } | script $((n + 1))
		{ stream; echo "data {\"error\":{\"message\":\"key $form\"}}"; } | script $((n + 2))
		{ stream; echo "send data: key $form\\n\\n"; } | script $((n + 3))
		for i in 1 2 3 4; do
			run ag2-ask "${M[@]}" -v --retries 0 q </dev/null
			[ "$status" -ne 0 ]
			has '[key]'
			hasnt "${KEY:4:12}"
			hasnt "${KEY:13:9}"
			hasnt "${form:10:16}"
		done
		n=$((n + 4))
	done
}

@test "no tool can look into what has the key" {
	cat >t <<-'END'
		#!/bin/sh
		[ "$1" = --schema ] && { echo '{"name": "t", "parameters": {"type": "object", "properties": {}}}'; exit; }
		p=$$
		until [ "$(cat /proc/$p/comm)" = ag2-ask ]; do p=$(sed -n 's/^PPid:[[:space:]]*//p' /proc/$p/status); done
		cat /proc/$p/environ >/dev/null 2>&1 && echo seen
		stat -c %u /proc/$p/environ
	END
	chmod +x t
	{ stream; call c1 t '{}'; finish tool_calls; } | script 1
	{ stream; piece done; finish; } | script 2
	as=()
	if [ "$(id -u)" -eq 0 ]; then	# root may look anywhere
		as=(setpriv --reuid=65534 --regid=65534 --clear-groups)
		chmod 755 "$BATS_RUN_TMPDIR" "$TMP"
		"${as[@]}" sh -c 'exec 2>/dev/null; test -x "$1" && test -x ./t' - "$BIN/ag2-ask" || skip "nobody else can run it here"
	fi
	run -0 "${as[@]}" ag2-ask "${M[@]}" --tool ./t q </dev/null
	[ "$(jq -r '.messages[-1].content' web/2.body)" = 0 ] || fail "$(jq -c '.messages[-1]' web/2.body)"
}

@test "a signal while the server is silent ends the call, and nothing half is logged" {
	{ stream; piece 'half an'; echo hold; } | script 1
	export AG2_STORE=disk:$TMP/s
	# A shell gives its background children an ignored SIGINT; SIGTERM is the same handler.
	ag2-ask "${M[@]}" --stream x q >out 2>err 3>&- &
	wait_for 20 grep -q half out
	kill -TERM $!
	status=0
	wait $! || status=$?
	status_is 143
	ag2-store log cat x >log
	[ "$(wc -l <log)" -eq 1 ]
}

# ---- cassettes ----

@test "a recorded turn replays without network or key, as it was" {
	{ stream; piece 'Read '; piece Calvino.; finish; } | script 1
	ag2-ask "${M[@]}" --events --record tape q </dev/null >first
	kill "$(cat web/pid)"
	unset OPENAI_API_KEY
	ag2-ask -m openai:gpt-5 --events --replay tape q </dev/null >second
	jq -cS 'walk(if type == "object" then del(.created_at) else . end)' first >first.timeless
	jq -cS 'walk(if type == "object" then del(.created_at) else . end)' second >second.timeless
	same first.timeless second.timeless
	AG2_REPLAY=tape run -0 ag2-ask -m openai:gpt-5 q </dev/null
	output_is 'Read Calvino.'
	"$TOOLS/httpd" -d -t 600 web >/dev/null	# for teardown
}

@test "a tool loop replays, with ids that the server did not give" {
	printf '#!/bin/sh\n[ "$1" = --schema ] && { echo %s; exit; }\necho fine\n' \
		"'{\"name\": \"t\", \"parameters\": {\"type\": \"object\", \"properties\": {}}}'" >t
	chmod +x t
	{ stream; call '' t '{}'; finish tool_calls; } | script 1
	{ stream; piece done; finish; } | script 2
	ag2-ask "${M[@]}" --tool ./t --record tape q </dev/null
	[ "$(wc -l <tape)" -eq 2 ]
	run -0 env -u OPENAI_API_KEY ag2-ask -m openai:gpt-5 --tool ./t --replay tape q </dev/null
	output_is done
}

@test "a request that is not in the cassette is 69 and names where it differs" {
	echo '{"ask": "What next?", "reply": {"text": "Calvino."}}' >tape
	run -0 ag2-ask -m openai:gpt-5 --replay tape 'What next?' </dev/null
	output_is Calvino.
	run -69 ag2-ask -m openai:gpt-5 --replay tape 'What now?' </dev/null
	has 'tape'
	has 'What next?'
	has 'What now?'
	[ "${#lines[@]}" -eq 1 ]
}

@test "a cassette serves exec: models as well, at another time" {
	AG2_NOW=1 ag2-ask -m 'exec:echo $((6 * 7))' --record tape q </dev/null
	AG2_NOW=2 run -0 ag2-ask -m 'exec:echo $((6 * 7))' --replay tape q </dev/null
	output_is 42
	[ "$(wc -l <tape)" -eq 1 ]
}

@test "cassettes that cannot be: both at once is 64, none there 66, a bad line 65" {
	run -64 ag2-ask -m openai:gpt-5 --record a --replay b q </dev/null
	run -66 ag2-ask -m openai:gpt-5 --replay absent q </dev/null
	echo '{"reply": 1' >bad
	run -65 ag2-ask -m openai:gpt-5 --replay bad q </dev/null
	has 'bad:1'
}

@test "eight jobs of make replay one cassette, and record one, as one job after the other does" {
	for i in 1 2 3 4 5 6 7 8; do
		echo "{\"ask\": \"q$i\", \"reply\": {\"text\": \"answer $i\"}}"
		echo '{"ask": "the same", "reply": {"text": "'"time $i"'"}}'
	done >tape
	cat >Makefile <<-'END'
		.RECIPEPREFIX = >
		all: $(foreach i,1 2 3 4 5 6 7 8,$(OUT)/$(i))
		$(OUT)/%:
		>mkdir -p $(OUT)
		>ag2-ask -m openai:gpt-5 $(CASSETTE) q$* </dev/null >$@
		>ag2-ask -m openai:gpt-5 $(CASSETTE) "$(SAME)" </dev/null >>$@
	END
	unset OPENAI_API_KEY
	env -u MAKEFLAGS make -s -j1 OUT=one CASSETTE='--replay tape' SAME='the same'
	env -u MAKEFLAGS make -s -j8 OUT=eight CASSETTE='--replay tape' SAME='the same'
	diff -r one eight
	[ "$(cat eight/3)" = "$(printf 'answer 3\ntime 1')" ]
	{ stream; piece hello; finish; } | script any
	OPENAI_API_KEY=sk-secret env -u MAKEFLAGS make -s -j8 OUT=recorded CASSETTE="--base-url $URL --record made" SAME=x
	[ "$(wc -l <made)" -eq 16 ]
	jq -e . made >/dev/null
	env -u MAKEFLAGS make -s -j8 OUT=again CASSETTE='--replay made' SAME=x
	diff -r recorded again
}

@test "a bad line of a cassette is named by its place, however it is spoilt" {
	good='{"ask": "q", "reply": {"text": "a"}}'
	while IFS='|' read -r line says; do
		printf '%s\n%b\n' "$good" "$line" >tape
		run -65 --separate-stderr ag2-ask -m openai:gpt-5 --replay tape q </dev/null
		[ -z "$output" ]
		[[ "$stderr" = *"tape:2: "*"$says"* ]] || fail "$line" "$stderr"
		[ "${#stderr_lines[@]}" -eq 1 ]
	done <<-'END'
		{"ask": "q", "reply": {"te|byte 27: it ends inside a string
		{"ask": "q", "reply": {"text": "a"}} {}|byte 38: something stands behind the value
		\xff\xfe|byte 1
		[]|no object
		{"ask": "q"}|no reply
		{"ask": "q", "reply": {"txet": "a"}}|'txet'
		{"request": 1, "reply": {}}|the request is no object
		{"reply": {"text": "\x00"}}|byte 21: a NUL byte
	END
}

@test "upkeep's calls are in the cassette, and a turn with all of it is replayed to the same bytes" {
	cat >agent.yaml <<-END
		model: {provider: openai, model: gpt-5, base_url: $URL}
		knowledge:
		  store: disk:$TMP/k
		  bootstrap: none
		  compact: summarize:2
		  compact_trigger: {max_events: 3}
		  aggregate: working_memory
		  aggregate_trigger: {on_end: true}
	END
	chmod 600 agent.yaml
	{ stream; piece 'a long enough answer to be worth a summary'; finish; } | script any
	turns() {
		for i in 1 2 3; do AG2_NOW=1780000000+1 ag2-ask -c agent.yaml --stream s "question $i, which is of some length as well" "$@" || return; done
	}
	turns --record tape >first
	mv k recorded
	asked=$(wc -l <tape)
	[ "$asked" -gt 6 ]
	kill "$(cat web/pid)"
	unset OPENAI_API_KEY
	turns --replay tape >second
	diff first second
	diff -r -x .ag2 recorded k
	AG2_REPLAY=tape run -69 --separate-stderr ag2-ask -c agent.yaml --stream s "another question"
	[[ "$stderr" = *"recorded '"*"', asked '"* ]] || fail "$stderr"
	"$TOOLS/httpd" -d -t 600 web >/dev/null	# for teardown
}
