# ag2-ask and a model behind HTTP: what is printed, what is logged, and how it ends. By its other name over TLS.

load helper
load scripted
load tls

setup() {
	clean_environment
	mkdir web
	over_tls
	export AG2_STORE=disk:$TMP/st
}

teardown() {
	[ ! -e "$TMP/web/pid" ] || kill "$(cat "$TMP/web/pid")" 2>/dev/null || true
}

# serve: the scripts in web/ (see tools/httpd.c); URL is where.
serve() {
	"$TOOLS/httpd" -d -t 600 "${TLS[@]}" "$TMP/web" >/dev/null
	URL=$SCHEME://127.0.0.1:$(cat "$TMP/web/port")/v1
}

ask() {
	ag2-ask -m openai:m --base-url "$URL" "$@"
}

# chat N TEXT...: connection N answers with these pieces.
chat() {
	local n=$1
	shift
	{
		echo 'head 200 text/event-stream'
		for piece; do
			echo "data $(jq -nc --arg t "$piece" '{choices: [{index: 0, delta: {content: $t}, finish_reason: null}]}' | sed 's/\\/\\\\/g')"
		done
		echo 'data {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}'
		echo 'data {"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":2,"total_tokens":9}}'
		echo 'data [DONE]'
	} >"web/$n"
}

@test "an answer over HTTP is printed and logged with its usage" {
	chat 1 Hel lo
	serve
	OPENAI_API_KEY=sk-secret run -0 --separate-stderr ask --stream s Hi
	output_is Hello
	[ -z "$stderr" ] || fail "$stderr"
	ag2-store log cat --current s >log
	events_are log ModelRequest UsageEvent ModelResponse
	[ "$(jq -s '.[1].data.usage.data.total_tokens' log)" -eq 9 ]
	[ "$(jq -rs '.[2].data.message.content' log)" = Hello ]
	grep -qi '^Authorization: Bearer sk-secret' web/1.head
	run grep -rl sk-secret st
	status_is 1
}

@test "the text is printed as it arrives" {
	cat >web/1 <<-'END'
		head 200 text/event-stream
		data {"choices":[{"index":0,"delta":{"content":"first"},"finish_reason":null}]}
		wait seen
		data {"choices":[{"index":0,"delta":{"content":" second"},"finish_reason":"stop"}]}
		data [DONE]
	END
	serve
	ask --stream s Hi >out 2>err &
	pid=$!
	wait_for 20 grep -q first out
	[ "$(cat out)" = first ]
	: >web/seen
	wait $pid
	[ "$(cat out)" = "first second" ]
}

@test "with --no-stream nothing is printed before the answer is complete" {
	cat >web/1 <<-'END'
		head 200 application/json
		send {"choices":[{"index":0,"message":{"role":"assistant","content":"all
		touch half
		wait seen
		send \sof it"},"finish_reason":"stop"}]}
	END
	serve
	ask --no-stream --stream s Hi >out 2>err &
	pid=$!
	wait_for 20 test -e web/half
	[ ! -s out ]
	: >web/seen
	wait $pid
	[ "$(cat out)" = "all of it" ]
	[ "$(jq .stream <web/1.body)" != true ]
}

@test "Ctrl-C in the middle of an answer: the request is in the log, nothing half, 130, and -C asks it again" {
	cat >web/1 <<-'END'
		head 200 text/event-stream
		data {"choices":[{"index":0,"delta":{"content":"half an ans"},"finish_reason":null}]}
		hold
	END
	chat 2 "whole answer"
	serve
	set -m	# or the shell has it ignore SIGINT
	ag2-ask -m openai:m --base-url "$URL" --stream s Hi >out 2>err &
	pid=$!
	wait_for 20 grep -q half out
	kill -INT $pid
	status=0
	wait $pid || status=$?
	status_is 130
	ag2-store log cat --current s >log
	events_are log ModelRequest
	run -0 ask -C
	output_is "whole answer"
	[ "$(jq -c '[.messages[] | [.role, .content]]' <web/2.body)" = '[["user","Hi"]]' ]
	ag2-store log cat --current s >log
	events_are log ModelRequest UsageEvent ModelResponse
}

@test "an answer that is cut off is 69, was printed as far as it came, and is not in the log" {
	cat >web/1 <<-'END'
		head 200 text/event-stream
		data {"choices":[{"index":0,"delta":{"content":"half"},"finish_reason":null}]}
	END
	serve
	run --separate-stderr ask --stream s Hi
	status_is 69
	output_is half
	[ "${#stderr_lines[@]}" -eq 1 ] || fail "$stderr"
	ag2-store log cat --current s >log
	events_are log ModelRequest
}

@test "an answer that its model did not finish, and one that says nothing, are told; they are answers" {
	n=1
	for case in 'length|half|cut off (finish_reason length)' 'content_filter|a|filtered or refused (finish_reason content_filter)' \
		'stop||empty (finish_reason stop)' 'length|  |empty (finish_reason length)' 'stop|fine|'; do
		IFS='|' read -r reason text line <<<"$case"
		chat $n "$text"
		sed -i "s/\"finish_reason\":\"stop\"/\"finish_reason\":\"$reason\"/" web/$n
		n=$((n + 1))
	done
	serve
	n=1
	for case in 'half|cut off (finish_reason length)' 'a|filtered or refused (finish_reason content_filter)' '|empty (finish_reason stop)' \
		'  |empty (finish_reason length)' 'fine|'; do
		run -0 --separate-stderr ask --stream "s$n" Hi
		output_is "${case%%|*}"
		[ "$stderr" = "${case#*|}" ] || [ "$stderr" = "ag2-ask: the answer is ${case#*|}" ] || [ "$stderr" = "ag2-ask: the answer was ${case#*|}" ] ||
			fail "$case: $stderr"
		ag2-store log cat "s$n" >log
		events_are log ModelRequest UsageEvent ModelResponse
		n=$((n + 1))
	done
}

@test "a server that is not there, refuses, or answers nonsense: one line and 69; one that says come back: 75" {
	URL=$SCHEME://127.0.0.1:1/v1	# nobody listens there
	run --separate-stderr ask --stream s Hi
	status_is 69
	[ "${#stderr_lines[@]}" -eq 1 ] || fail "$stderr"
	printf 'head 400 application/json\nsend {"error":{"message":"no such model"}}\n' >web/1
	printf 'head 200 text/html\nsend <html>log in</html>\n' >web/2
	printf 'head 200 text/event-stream\nsend oops\n' >web/3
	printf 'head 200 application/json\n' >web/4
	printf 'head 429 application/json\nheader Retry-After: 3600\nsend {"error":{"message":"slow down"}}\n' >web/5
	printf 'head 401 application/json\nsend {"error":{"message":"bad key"}}\n' >web/6
	serve
	for want in 69 69 69 69 75 77; do
		OPENAI_API_KEY=sk-secret run --separate-stderr ask --stream s Hi
		status_is $want
		output_is ''
		[ "${#stderr_lines[@]}" -eq 1 ] || fail "$stderr"
		hasnt sk-secret "$stderr"
	done
	ag2-store log cat --current s >log
	[ "$(types log | sort -u)" = ModelRequest ]
}

@test "a header larger than libcurl takes is told as that, once, and 69" {
	long=$(printf '%01000d' 0)
	{ echo 'head 200 text/event-stream'; for i in $(seq 400); do echo "header X-$i: $long"; done; echo 'data [DONE]'; } >web/1
	printf 'head 200 text/event-stream\nheader X-Long: ' >web/2
	head -c 150000 /dev/zero | tr '\0' a >>web/2
	printf '\ndata [DONE]\n' >>web/2
	serve
	export OPENAI_API_KEY=k
	for n in 1 2; do
		run ask hi </dev/null
		status_is 69
		[[ $output == "ag2-ask: no answer from "*": its header is larger than is taken (100 kB a line, 300 kB in all)" ]] || fail "$output"
	done
}

@test "Google's list of one error is that error, as a refusal and in an answer" {
	printf 'head 400 application/json\nsend [{"error":{"code":400,"message":"no such model"}}]\n' >web/1
	printf 'head 429 application/json\nsend [{"error":{"message":"slow","details":[{"retryDelay":"3600s"}]}}]\n' >web/2
	printf 'head 200 application/json\nsend [{"error":{"code":503,"message":"overloaded","status":"UNAVAILABLE"}}]\n' >web/3
	printf 'head 200 text/event-stream\ndata {"choices":[{"delta":{"content":"a"}}]}\ndata [{"error":{"code":503,"message":"overloaded"}}]\n' >web/4
	serve
	for want in '69 status 400: no such model' '75 come back in 3600 s: slow' '75 an error: overloaded' '75 an error: overloaded'; do
		run --separate-stderr ask --stream s Hi
		status_is "${want%% *}"
		has "${want#* }" "$stderr"
		hasnt '[' "$stderr"
	done
	ag2-store log cat --current s >log
	[ "$(types log | sort -u)" = ModelRequest ]
}

@test "the password of a proxy whose address cannot be used is not shown" {
	for proxy in 'http://user:hunter2@[::1' 'gopher://user:hunter2@127.0.0.1:1' 'http://user:hunter2@127.0.0.1:x'; do
		https_proxy=$proxy run --separate-stderr ag2-ask -m openai:m --base-url https://model.invalid/v1 --retries 0 Hi </dev/null
		status_is 69
		hasnt hunter2 "$stderr"
	done
}

@test "a server that only sends comments behind a complete answer is left" {
	{
		printf 'head 200 text/event-stream\ndata {"choices":[{"delta":{"content":"a"},"finish_reason":"stop"}]}\n'
		for ((i = 0; i < 240; i++)); do printf 'send : ping\\n\\n\npause 250\n'; done
	} >web/any
	serve
	run -0 --separate-stderr timeout 50 ag2-ask -m openai:m --base-url "$URL" --stream s Hi
	output_is a
	[ -z "$stderr" ] || fail "$stderr"
}

@test "[DONE] may have blanks around it" {
	for done in '[DONE]\s' '\s[DONE]' '[DONE]\t\r'; do
		printf 'head 200 text/event-stream\ndata {"choices":[{"delta":{"content":"a"},"finish_reason":"stop"}]}\nsend data: %s\\n\\n\n' "$done" >web/any
		serve
		run -0 --separate-stderr ask --stream s Hi
		output_is a
		[ -z "$stderr" ] || fail "$stderr"
	done
}

@test "a tool loop over HTTP: the calls go back with their results" {
	tool add 'jq ".a + .b"'
	cat >web/1 <<-'END'
		head 200 text/event-stream
		data {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"call_1","type":"function","function":{"name":"add","arguments":"{\"a\": 2,"}}]},"finish_reason":null}]}
		data {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":" \"b\": 3}"}}]},"finish_reason":null}]}
		data {"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}
		data [DONE]
	END
	sed -i 's/\\"/\\\\"/g' web/1
	chat 2 "It is 5."
	serve
	run -0 ask --tool ./add --stream s '2+3?'
	output_is "It is 5."
	[ "$(jq -c '[.messages[].role]' <web/2.body)" = '["user","assistant","tool"]' ]
	[ "$(jq -c '.messages[2] | [.tool_call_id, .content]' <web/2.body)" = '["call_1","5"]' ]
	ag2-store log cat --current s >log
	events_are log ModelRequest ModelResponse ToolCallsEvent ToolCallEvent ToolResultEvent ToolResultsEvent UsageEvent ModelResponse
}

@test "-n prints the body that is sent, without a key" {
	chat 1 ok
	serve
	printf 'prompt: Be brief.\nmodel: {model: "openai:m", base_url: "%s", temperature: 0.5, max_tokens: 100}\n' "$URL" >a.yaml
	ag2-ask -c a.yaml --stream s -n Hi >dry
	[ ! -e st ]
	OPENAI_API_KEY=x run -0 ag2-ask -c a.yaml --stream s Hi
	diff <(jq -S . dry) <(jq -S . web/1.body)
	[ "$(jq -c '[.temperature, .messages[0].content]' dry)" = '[0.5,"Be brief."]' ]
}

@test "the key comes from api_key_env or api_key_cmd, and is never shown" {
	chat 1 ok
	chat 2 ok
	serve
	printf 'model: {model: "openai:m", base_url: "%s", api_key_env: MY_KEY}\n' "$URL" >a.yaml
	MY_KEY=sk-env OPENAI_API_KEY=sk-other run -0 ag2-ask -c a.yaml -v --stream s Hi
	hasnt sk-
	grep -qi '^Authorization: Bearer sk-env' web/1.head
	printf 'model: {model: "openai:m", base_url: "%s", api_key_cmd: "echo sk-cmd; echo more"}\n' "$URL" >a.yaml
	run -0 ag2-ask -c a.yaml -v --stream s Hi
	hasnt sk-
	grep -qi '^Authorization: Bearer sk-cmd.$' web/2.head
	printf 'model: {model: "openai:m", base_url: "%s", api_key_cmd: "echo sk-cmd; exit 3"}\n' "$URL" >a.yaml
	run ag2-ask -c a.yaml -v --stream s Hi
	status_is 78
	hasnt sk-
	has "status 3"
}

@test "a cassette that was recorded answers again without network and key" {
	tool add 'jq ".a + .b"'
	chat 1 "recorded"
	serve
	OPENAI_API_KEY=sk-secret run -0 ask --record tape Hi </dev/null
	kill "$(cat web/pid)"
	run grep -c sk-secret tape
	output_is 0
	run -0 ask --replay tape Hi </dev/null
	output_is recorded
	AG2_REPLAY=tape run -0 ask --events Hi </dev/null
	has recorded
	run ask --replay tape Something else </dev/null
	status_is 69
	run ask --replay tape --record other Hi </dev/null
	status_is 64
}
