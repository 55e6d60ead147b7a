# How an answer may end, for each provider: the exit status, what --events prints and what the log has agree.

load helper
load scripted
load web

setup() {
	clean_environment
	mkdir web
	export AG2_STORE=disk:$TMP/st OPENAI_API_KEY=k ANTHROPIC_API_KEY=k GEMINI_API_KEY=k
	tool weather 'echo ran >>ran; echo fine'
}

# model PROVIDER: the answers that follow are its.
model() {
	provider=$1
	agent "$1:m" 'retries: 0'
}

# ends STATUS REASON WORDS: a turn whose answer is on stdin ends with this status; the log and --events have a response with this
# reason, '-' for none, in which case the request alone is left; WORDS are on standard error, '' for nothing at all.
ends() {
	local want=$1 reason=$2 words=$3
	rm -rf st
	if [ "$provider" = ollama ]; then lines any; else events any; fi
	run --separate-stderr ag2-ask -c agent.yaml --stream s --events Hi
	[ "$status" -eq "$want" ] || fail "$reason: status $status: $stderr"
	printf '%s\n' "$output" >told
	ag2-store log cat s >log
	same told log
	[ "$(jq -r '.data | select(has("finish_reason") and has("message")) | .finish_reason' log | tail -n 1)" = "${reason#-}" ] || fail "$reason: $(cat log)"
	if [ "$reason" = - ]; then events_are log ModelRequest; fi
	if [ -n "$words" ]; then has "$words" "$stderr"; else [ -z "$stderr" ] || fail "$reason: $stderr"; fi
	[ ! -e ran ]
}

@test "openai" {
	o() { printf '{"model":"m","choices":[{"index":0,"delta":%s,"finish_reason":%s}]}\n' "$1" "$2"; }
	model openai
	{ o '{"content":"a"}' null; o '{}' '"stop"'; } | ends 0 stop ''
	{ o '{"content":"a"}' '"stop"'; o '{"content":"b"}' '"stop"'; } | ends 0 stop ''
	[ "$(ag2-store log answer s)" = ab ]
	{ o '{"content":"a"}' null; o '{}' '"length"'; } | ends 0 length 'cut off'
	{ o '{"content":"a"}' null; o '{}' '"content_filter"'; } | ends 0 content_filter 'filtered'
	o '{"refusal":"I cannot."}' '"stop"' | ends 0 refusal 'refused'
	o '{}' '"stop"' | ends 0 stop 'the answer is empty'
	for reason in error abort insufficient_system_resource; do
		{ o '{"content":"a"}' null; o '{}' "\"$reason\""; } | ends 69 - "finish_reason $reason"
	done
	o '{"content":"a"}' null | ends 69 - 'incomplete'
	o '{}' '"tool_calls"' | ends 69 - 'calls none'
	o '{"tool_calls":[{"index":0,"id":"c","function":{"name":"weather","arguments":""}}]}' '"length"' | ends 69 - "the call of 'weather'"
	o '{"tool_calls":[{"index":0,"id":"c","function":{"name":"weather","arguments":"{\"a\""}}]}' '"tool_calls"' | ends 69 - "the call of 'weather'"
	{ o '{"content":"a"}' null; echo '{"error":{"message":"overloaded","code":503}}'; } | ends 75 - 'overloaded'
	{ o '{"content":"a"}' null; echo '{"error":{"message":"broke","type":"server_error"}}'; } | ends 69 - 'broke'
}

@test "openai: a call in the form from before there were several" {
	printf '%s\n' '{"model":"m","choices":[{"index":0,"delta":{"function_call":{"name":"weather","arguments":"{\"city\":"}}}]}' \
		'{"model":"m","choices":[{"index":0,"delta":{"function_call":{"arguments":"\"Paris\"}"}}}]}' \
		'{"model":"m","choices":[{"index":0,"delta":{},"finish_reason":"function_call"}]}' | events 1
	echo '{"model":"m","choices":[{"index":0,"delta":{"content":"mild"},"finish_reason":"stop"}]}' | events 2
	agent openai:m
	run -0 --separate-stderr ag2-ask -c agent.yaml --stream s Hi
	output_is mild
	[ "$(sent 2 '.messages[1].tool_calls[0].function.arguments')" = '{"city":"Paris"}' ]
	[ "$(sent 2 '.messages[1].tool_calls[0].id == .messages[2].tool_call_id')" = true ]
}

@test "openai-responses" {
	r() { printf '{"type":"response.%s","response":{"status":"%s","model":"m","error":null,"output":[%s]%s}}\n' "$1" "$2" "$3" "$4"; }
	t='{"type":"message","role":"assistant","content":[{"type":"output_text","text":"a"}]}'
	model openai-responses
	r completed completed "$t" '' | ends 0 completed ''
	r incomplete incomplete "$t" ',"incomplete_details":{"reason":"max_output_tokens"}' | ends 0 max_output_tokens 'cut off'
	r incomplete incomplete "$t" ',"incomplete_details":{"reason":"content_filter"}' | ends 0 content_filter 'filtered'
	r completed completed '{"type":"message","content":[{"type":"refusal","refusal":"No."}]}' '' | ends 0 refusal 'refused'
	r completed completed '' '' | ends 0 completed 'the answer is empty'
	r incomplete incomplete '{"type":"function_call","call_id":"c","name":"weather","arguments":""}' ',"incomplete_details":{"reason":"max_output_tokens"}' |
		ends 69 - "the call of 'weather'"
	r completed cancelled "$t" '' | ends 69 - 'not ended'
	r in_progress in_progress "$t" '' | ends 69 - 'incomplete'
	printf '%s\n' '{"type":"response.failed","response":{"status":"failed","error":{"code":"server_error","message":"boom"}}}' | ends 69 - 'boom'
	printf '%s\n' '{"type":"response.failed","response":{"status":"failed","error":{"code":"rate_limit_exceeded","message":"later"}}}' | ends 75 - 'later'
	printf '%s\n' '{"type":"error","code":"server_error","message":"boom"}' | ends 69 - 'boom'
	{ echo '{"type":"response.output_item.added","item":{"type":"function_call","call_id":"c","name":"weather"}}'
		r completed completed '' ''; } | ends 69 - 'an item of it has not ended'
}

@test "anthropic" {
	a() {
		printf '%s\n' '{"type":"message_start","message":{"model":"m","usage":{"input_tokens":9,"output_tokens":1}}}' \
			'{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}' \
			'{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"a"}}' '{"type":"content_block_stop","index":0}'
	}
	z() { printf '%s\n' "{\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"$1\"},\"usage\":{\"output_tokens\":5}}" '{"type":"message_stop"}'; }
	model anthropic
	{ a; z end_turn; } | ends 0 end_turn ''
	{ a; z stop_sequence; } | ends 0 stop_sequence ''
	{ a; z max_tokens; } | ends 0 max_tokens 'cut off'
	{ a; z model_context_window_exceeded; } | ends 0 model_context_window_exceeded 'cut off'
	{ a; z refusal; } | ends 0 refusal 'refused'
	{ a; z pause_turn; } | ends 69 - 'paused'
	a | ends 69 - 'incomplete'
	{ a; z end_turn | head -n 1; } | ends 69 - 'incomplete'
	{ a; echo '{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}'; } | ends 75 - 'Overloaded'
	{ a; echo '{"type":"error","error":{"type":"api_error","message":"broke"}}'; } | ends 69 - 'broke'
	{ a | head -n 1; echo '{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"c","name":"weather","input":{}}}'
		echo '{"type":"content_block_stop","index":0}'; z max_tokens; } | ends 69 - "the call of 'weather'"
	{ a | head -n 1; z tool_use; } | ends 69 - 'calls none'
}

@test "gemini: an empty STOP before the text, as relays send it, is no end; the text needs one of its own" {
	g() { printf '{"candidates":[{"content":{"role":"model","parts":[%s]}%s}],"modelVersion":"m"}\n' "$1" "$2"; }
	stop=',"finishReason":"STOP"'
	model gemini
	{ g '' "$stop"; g '' "$stop"; g '{"text":"a"}' ''; g '{"text":"b"}' ''; g '' "$stop"; g '' "$stop"; } | ends 0 STOP ''
	[ "$(ag2-store log answer s)" = ab ]
	{ g '' "$stop"; g '{"text":"a"}' "$stop"; } | ends 0 STOP ''
	{ g '' "$stop"; g '{"text":"a"}' ''; } | ends 69 - 'incomplete'
	{ g '' "$stop"; g '' "$stop"; } | ends 0 STOP 'the answer is empty'
	{ g '{"text":"a"}' "$stop"; g '{"text":"b"}' ''; } | ends 69 - 'text comes behind its end'
	# it may take its time
	g '' "$stop" | events any
	{ cat web/any; echo 'pause 2500'; { g '{"text":"late"}' "$stop"; } | sed 's/\\/\\\\/g; s/^/data /'; } >web/x && mv web/x web/any
	rm -rf st
	run -0 --separate-stderr ag2-ask -c agent.yaml --stream s Hi
	output_is late
}


@test "gemini" {
	g() { printf '{"candidates":[{"content":{"parts":[%s],"role":"model"}%s}],"modelVersion":"m"}\n' "$1" "${2:+,\"finishReason\":\"$2\"}"; }
	model gemini
	g '{"text":"a"}' STOP | ends 0 STOP ''
	{ g '{"text":"a"}' STOP; g '{"text":"b"}' STOP; } | ends 0 STOP ''
	[ "$(ag2-store log answer s)" = ab ]
	{ g '{"text":"a"}' STOP; g '{"text":"b"}' ''; } | ends 69 - 'behind its end'
	g '{"text":"a"}' MAX_TOKENS | ends 0 MAX_TOKENS 'cut off'
	g '{"text":"a"}' SAFETY | ends 0 SAFETY 'filtered'
	g '' RECITATION | ends 0 RECITATION 'the answer is empty'
	g '' IMAGE_SAFETY | ends 0 IMAGE_SAFETY 'the answer is empty'
	g '{"text":"a"}' '' | ends 69 - 'incomplete'
	for reason in MALFORMED_FUNCTION_CALL UNEXPECTED_TOOL_CALL MISSING_THOUGHT_SIGNATURE NO_IMAGE OTHER; do
		g '{"text":"a"}' $reason | ends 69 - "$reason"
	done
	echo '{"promptFeedback":{"blockReason":"PROHIBITED_CONTENT"}}' | ends 69 - 'blocked the prompt (PROHIBITED_CONTENT)'
	{ g '{"text":"a"}' ''; echo '{"error":{"code":503,"message":"overloaded","status":"UNAVAILABLE"}}'; } | ends 75 - 'overloaded'
}

@test "gemini: a picture is in the response's files, and --json prints it" {
	printf '%s\n' '{"candidates":[{"content":{"parts":[{"inlineData":{"mimeType":"image/png","data":"+/+/"}}]},"finishReason":"STOP"}],"modelVersion":"m"}' | events any
	agent gemini:m
	run -0 --separate-stderr ask Draw
	output_is ''
	has 'the answer has 1 file' "$stderr"
	[ "$(ag2-store log cat s | tail -n 1 | jq -c '.data.files')" = '[{"__dataclass__":"ag2.events.types.BinaryResult","data":{"data":{"__bytes__":"+/+/"},"metadata":{"media_type":"image/png"}}}]' ]
	run -0 --separate-stderr ag2-ask -c agent.yaml --stream a --json --record tape Draw
	[ "$(jq -c '.files' <<<"$output")" = '[{"media_type":"image/png","data":"+/+/"}]' ]
	[ -z "$stderr" ] || fail "$stderr"
	run -0 ag2-ask -c agent.yaml --stream b --json --replay tape Draw
	[ "$(jq -c '.files' <<<"$output")" = '[{"media_type":"image/png","data":"+/+/"}]' ]
}

l() { printf '{"model":"m","message":{"role":"assistant","content":"%s"},"done":%s%s}\n' "$1" "$2" "${3:+,\"done_reason\":\"$3\"}"; }

@test "ollama" {
	model ollama
	{ l a false; l '' true stop; } | ends 0 stop ''
	{ l a false; l '' true; } | ends 0 stop ''
	{ l a false; l '' true length; } | ends 0 length 'cut off'
	l '' true load | ends 69 - 'only loaded'
	l '' true unload | ends 69 - 'only loaded'
	l '' true stop | ends 0 stop 'the answer is empty'
	l a false | ends 69 - 'incomplete'
	{ l a false; echo '{"error":"out of memory"}'; } | ends 69 - 'out of memory'
}

@test "ollama: lines are read, too, where one object was asked for" {
	agent ollama:m
	{ l a false; l b false; l '' true stop; } | lines any
	run -0 --separate-stderr ask --no-stream Hi
	output_is ab
	[ -z "$stderr" ] || fail "$stderr"
	{ l a false; l b false; } | lines any
	run --separate-stderr ask --no-stream Hi
	status_is 69
	output_is ''
	has incomplete "$stderr"
}

# counts PROVIDER WANT SUM: what the usage of a call is in --json and in the log; SUM: input, what of it was cached, and output, as log
# usage tells them, for which it does not matter how a provider counts.
counts() {
	rm -rf st
	if [ "$1" = ollama ]; then lines any; else events any; fi
	agent "$1:m"
	run -0 --separate-stderr ask --json Hi
	[ "$(jq -c '.usage | [.prompt_tokens, .completion_tokens, .total_tokens, .cache_read_input_tokens, .cache_creation_input_tokens, .thinking_tokens]' <<<"$output")" = "$2" ] ||
		fail "$1: $output"
	ag2-store log cat s >log
	for type in UsageEvent ModelResponse; do
		[ "$(jq -c "select(.type | endswith(\"$type\")).data.usage.data | [.prompt_tokens, .completion_tokens, .total_tokens, .cache_read_input_tokens, .cache_creation_input_tokens, .thinking_tokens]" log)" = "$2" ] ||
			fail "$1: $type: $(cat log)"
	done
	[ "$(ag2-store log usage --json s | jq -c '[.input, .cached, .output]')" = "$3" ] || fail "$1: $(ag2-store log usage --json s)"
}

@test "what a call used, with cached tokens and thoughts, is the same in --json, in the log and in log usage" {
	echo '{"model":"m","choices":[{"index":0,"delta":{"content":"a"},"finish_reason":"stop"}],"usage":{"prompt_tokens":9,"completion_tokens":5,"total_tokens":14,"prompt_tokens_details":{"cached_tokens":4},"completion_tokens_details":{"reasoning_tokens":2}}}' |
		counts openai '[9,5,14,4,null,2]' '[9,4,5]'
	echo '{"type":"response.completed","response":{"status":"completed","model":"m","output":[{"type":"message","content":[{"type":"output_text","text":"a"}]}],"usage":{"input_tokens":9,"input_tokens_details":{"cached_tokens":4},"output_tokens":5,"output_tokens_details":{"reasoning_tokens":2},"total_tokens":14}}}' |
		counts openai-responses '[9,5,14,4,null,2]' '[9,4,5]'
	printf '%s\n' '{"type":"message_start","message":{"model":"m","usage":{"input_tokens":9,"cache_read_input_tokens":4,"cache_creation_input_tokens":3,"output_tokens":1}}}' \
		'{"type":"content_block_start","index":0,"content_block":{"type":"text","text":"a"}}' '{"type":"content_block_stop","index":0}' \
		'{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":5,"output_tokens_details":{"thinking_tokens":2}}}' '{"type":"message_stop"}' |
		counts anthropic '[9,5,14,4,3,2]' '[16,4,5]'
	echo '{"candidates":[{"content":{"parts":[{"text":"a"}]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":9,"candidatesTokenCount":5,"totalTokenCount":16,"cachedContentTokenCount":4,"thoughtsTokenCount":2},"modelVersion":"m"}' |
		counts gemini '[9,5,16,4,null,2]' '[9,4,7]'
	echo '{"model":"m","message":{"role":"assistant","content":"a"},"done":true,"done_reason":"stop","prompt_eval_count":9,"prompt_eval_cached_count":4,"eval_count":5}' |
		counts ollama '[9,5,14,4,null,null]' '[9,4,5]'
}
