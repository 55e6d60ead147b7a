# Each provider behind HTTP: where a request goes and with what head, a round of tools, and what an end without an end leaves.

load helper
load scripted
load web

setup() {
	clean_environment
	mkdir web
	export AG2_STORE=disk:$TMP/st
	tool weather 'jq -c "{city: .city, temp: 21}"'
}

# The log after a turn with one round of tools.
round_is_logged() {
	ag2-store log cat --current s >log
	events_are log ModelRequest UsageEvent ModelResponse ToolCallsEvent "$1" ToolResultEvent ToolResultsEvent UsageEvent ModelResponse
}

# ---- anthropic ----

a_start='{"type":"message_start","message":{"model":"claude-x","usage":{"input_tokens":9,"output_tokens":1}}}'
a_text() {
	printf '%s\n' "{\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}" \
		"{\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"$1\"}}" '{"type":"content_block_stop","index":0}'
}
a_end() {
	printf '%s\n' "{\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"$1\"},\"usage\":{\"output_tokens\":5}}" '{"type":"message_stop"}'
}

@test "anthropic: a round of tools, its key as a bearer token, version 2026-10-21" {
	{
		echo "$a_start"
		echo '{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"toolu_1","name":"weather","input":{}}}'
		echo '{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{\"city\":\"Paris\"}"}}'
		echo '{"type":"content_block_stop","index":0}'
		a_end tool_use
	} | events 1
	{ echo "$a_start"; a_text "It is mild."; a_end end_turn; } | events 2
	agent anthropic:claude-x
	ANTHROPIC_API_KEY=sk-ant-secret run -0 --separate-stderr ask "Weather?"
	output_is "It is mild."
	grep -q '^POST /v1/messages ' web/1.head
	has_head 1 'Authorization: Bearer sk-ant-secret'
	has_head 1 'anthropic-version: 2026-10-21'
	[ "$(sent 2 '.messages[1:]')" = '[{"role":"assistant","content":[{"type":"tool_use","id":"toolu_1","name":"weather","input":{"city":"Paris"}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_1","content":"{\"city\":\"Paris\",\"temp\":21}"}]}]' ] || fail "$(sent 2 .messages)"
	round_is_logged ToolCallEvent
	[ "$(jq -s '.[1].data.usage.data.total_tokens' log)" = 14 ]
	[ "$(jq -rs '.[-1].data | .provider, .model, .finish_reason' log | xargs)" = "anthropic claude-x end_turn" ]
}

@test "anthropic: version 2023-06-01 has its key in x-api-key and takes a temperature" {
	{ echo "$a_start"; a_text ok; a_end end_turn; } | events 1
	agent anthropic:claude-x 'api_version: "2023-06-01"' 'temperature: 0.5' 'cache: true'
	ANTHROPIC_API_KEY=sk-ant-secret run -0 ask Hi
	has_head 1 'x-api-key: sk-ant-secret'
	has_head 1 'anthropic-version: 2023-06-01'
	[ "$(sent 1 .temperature)" = 0.5 ]
	[ "$(sent 1 '.messages[-1].content[-1].cache_control.type')" = ephemeral ]
}

@test "anthropic: what a version does not know is 78, by name" {
	agent anthropic:claude-x 'temperature: 0.5'
	run ask -n Hi
	status_is 78
	has temperature
	agent anthropic:claude-x 'options: {top_k: 3}'
	run ask -n Hi
	status_is 78
	has top_k
	agent anthropic:claude-x 'api_version: "2020-01-01"'
	run ask -n Hi
	status_is 78
	has 2020-01-01
	agent anthropic:claude-x 'options: {messages: []}'
	run ask -n Hi
	status_is 78
	has "'messages'"
}

@test "anthropic: a stream without message_stop is 69, and nothing is logged" {
	{ echo "$a_start"; a_text half; } | events any
	agent anthropic:claude-x
	ANTHROPIC_API_KEY=k run --separate-stderr ask Hi
	status_is 69
	has incomplete "$stderr"
	nothing_is_logged
}

@test "anthropic: an audio part is 65, naming it" {
	printf '%s\n' '{"type": "ModelRequest", "data": {"parts": [{"__event__": "UrlInput", "kind": {"value": "audio"}, "url": "https://e/a.wav"}]}}' >history
	run ag2-ask -n -m anthropic:claude-x <history
	status_is 65
	has "UrlInput(audio) cannot be sent to anthropic"
}

# ---- openai-responses ----

r_reasoning='{"id":"rs_1","type":"reasoning","summary":[],"encrypted_content":"gAAA"}'
r_call='{"id":"fc_1","type":"function_call","status":"completed","call_id":"call_1","name":"weather","arguments":"{\"city\":\"Paris\"}"}'
r_message='{"id":"msg_1","type":"message","role":"assistant","status":"completed","content":[{"type":"output_text","text":"It is mild.","annotations":[]}]}'
r_completed() {
	echo "{\"type\":\"response.completed\",\"response\":{\"status\":\"completed\",\"model\":\"gpt-x\",\"output\":[$1],\"usage\":{\"input_tokens\":9,\"output_tokens\":5,\"total_tokens\":14,\"output_tokens_details\":{\"reasoning_tokens\":2}}}}"
}

@test "openai-responses: a round of tools; reasoning is logged as AG2's event and sent back with the results" {
	r_completed "$r_reasoning,$r_call" | events 1
	{ echo '{"type":"response.output_text.delta","delta":"It is mild."}'; r_completed "$r_message"; } | events 2
	agent openai-responses:gpt-x
	OPENAI_API_KEY=sk-secret run -0 --separate-stderr ask "Weather?"
	output_is "It is mild."
	grep -q '^POST /responses ' web/1.head
	has_head 1 'Authorization: Bearer sk-secret'
	[ "$(sent 1 '[.store, .include]')" = '[false,["reasoning.encrypted_content"]]' ]
	[ "$(sent 2 '.input[1:]')" = '[{"id":"rs_1","type":"reasoning","summary":[],"encrypted_content":"gAAA"},{"type":"function_call","call_id":"call_1","name":"weather","arguments":"{\"city\":\"Paris\"}"},{"type":"function_call_output","call_id":"call_1","output":"{\"city\":\"Paris\",\"temp\":21}"}]' ] || fail "$(sent 2 .input)"
	ag2-store log cat --current s >log
	events_are log ModelRequest OpenAIReasoningEvent UsageEvent ModelResponse ToolCallsEvent ToolCallEvent ToolResultEvent \
		ToolResultsEvent UsageEvent ModelResponse
	[ "$(jq -rs '.[1].type' log)" = ag2.config.openai.events.OpenAIReasoningEvent ]
	[ "$(jq -s '.[2].data.usage.data.thinking_tokens' log)" = 2 ]
}

@test "openai-responses: what was recorded plays again, reasoning and all" {
	r_completed "$r_reasoning,$r_call" | events 1
	{ echo '{"type":"response.output_text.delta","delta":"It is mild."}'; r_completed "$r_message"; } | events 2
	agent openai-responses:gpt-x
	OPENAI_API_KEY=sk-secret AG2_NOW=1780000000 run -0 ag2-ask -c agent.yaml --stream a --record tape "Weather?"
	AG2_NOW=1780000000 run -0 ag2-ask -c agent.yaml --stream b --replay tape "Weather?"
	output_is "It is mild."
	diff <(ag2-store log cat a) <(ag2-store log cat b)
	run grep -c sk-secret tape
	output_is 0
}

@test "openai-responses: a stream without response.completed is 69, and nothing is logged" {
	echo '{"type":"response.output_text.delta","delta":"half"}' | events any
	agent openai-responses:gpt-x
	OPENAI_API_KEY=k run --separate-stderr ask Hi
	status_is 69
	has incomplete "$stderr"
	nothing_is_logged
}

# ---- gemini ----

@test "gemini: a round of tools; the thought signature is logged and sent back" {
	echo '{"candidates":[{"content":{"parts":[{"functionCall":{"name":"weather","args":{"city":"Paris"}},"thoughtSignature":"c2ln"}],"role":"model"},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":9,"candidatesTokenCount":5,"totalTokenCount":14}}' | events 1
	echo '{"candidates":[{"content":{"parts":[{"text":"It is mild."}],"role":"model"},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":9,"candidatesTokenCount":5,"totalTokenCount":14}}' | events 2
	agent gemini:gemini-x
	GEMINI_API_KEY=g-secret run -0 --separate-stderr ask "Weather?"
	output_is "It is mild."
	grep -q '^POST /v1beta/models/gemini-x:streamGenerateContent?alt=sse ' web/1.head
	has_head 1 'x-goog-api-key: g-secret'
	[ "$(sent 2 '.contents[1].parts[0].thoughtSignature')" = c2ln ]
	[ "$(sent 2 '.contents[2].parts[0].functionResponse | .name, .response')" = 'weather
{"city":"Paris","temp":21}' ]
	[ "$(sent 2 '.contents[2].parts[0].functionResponse.id == .contents[1].parts[0].functionCall.id')" = true ]
	round_is_logged GeminiToolCallEvent
	run ask --no-stream Again
	grep -q '^POST /v1beta/models/gemini-x:generateContent ' web/3.head
}

@test "gemini: a call that has no signature says so to the models that ask for one" {
	printf '%s\n' '{"type": "ModelRequest", "data": {"parts": [{"__event__": "TextInput", "content": "q"}]}}' \
		'{"type": "ModelResponse", "data": {"message": null, "tool_calls": {"calls": [{"__event__": "ToolCallEvent", "id": "c", "name": "f", "arguments": "{}"}]}}}' \
		'{"type": "ToolResultsEvent", "data": {"results": [{"__event__": "ToolErrorEvent", "parent_id": "c", "name": "f", "error": {"__exception__": "E", "message": "no"}, "result": {"data": {"parts": [{"__event__": "TextInput", "content": "E: no"}]}}}]}}' >history
	ag2-ask -n -m gemini:gemini-3-pro <history >body
	[ "$(jq -r '.contents[1].parts[0].thoughtSignature' body)" = skip_thought_signature_validator ]
	[ "$(jq -c '.contents[2].parts[0].functionResponse.response' body)" = '{"error":"E: no"}' ]
	ag2-ask -n -m gemini:gemini-2.5-flash <history >body
	[ "$(jq -r '.contents[1].parts[0].thoughtSignature' body)" = null ]
}

@test "gemini: a server that holds the connection behind finishReason does not hold us" {
	{
		echo head 200 text/event-stream
		echo 'data {"candidates":[{"content":{"parts":[{"text":"all"}]},"finishReason":"STOP"}]}'
		echo hold
	} >web/any
	agent gemini:gemini-x
	GEMINI_API_KEY=k run -0 --separate-stderr timeout 30 ag2-ask -c agent.yaml Hi
	output_is all
}

@test "gemini: a stream without finishReason is 69, and nothing is logged" {
	echo '{"candidates":[{"content":{"parts":[{"text":"half"}]}}]}' | events any
	agent gemini:gemini-x
	GEMINI_API_KEY=k run --separate-stderr ask Hi
	status_is 69
	has incomplete "$stderr"
	nothing_is_logged
}

# ---- ollama ----

@test "ollama: a round of tools, without a key" {
	lines 1 <<-'END'
		{"model":"llama-x","message":{"role":"assistant","content":"","tool_calls":[{"function":{"name":"weather","arguments":{"city":"Paris"}}}]},"done":false}
		{"model":"llama-x","message":{"role":"assistant","content":""},"done":true,"done_reason":"stop","prompt_eval_count":9,"eval_count":5}
	END
	lines 2 <<-'END'
		{"model":"llama-x","message":{"role":"assistant","content":"It is "},"done":false}
		{"model":"llama-x","message":{"role":"assistant","content":"mild."},"done":false}
		{"model":"llama-x","message":{"role":"assistant","content":""},"done":true,"done_reason":"stop","prompt_eval_count":9,"eval_count":5}
	END
	agent ollama:llama-x
	run -0 --separate-stderr ask "Weather?"
	output_is "It is mild."
	grep -q '^POST /api/chat ' web/1.head
	run ! grep -qi '^authorization' web/1.head
	[ "$(sent 2 '.messages[1:]')" = '[{"role":"assistant","content":"","tool_calls":[{"function":{"name":"weather","arguments":{"city":"Paris"}}}]},{"role":"tool","tool_name":"weather","content":"{\"city\":\"Paris\",\"temp\":21}"}]' ] || fail "$(sent 2 .messages)"
	round_is_logged ToolCallEvent
}

@test "ollama: a stream without done is 69, and nothing is logged" {
	echo '{"model":"llama-x","message":{"role":"assistant","content":"half"},"done":false}' | lines any
	agent ollama:llama-x
	run --separate-stderr ask Hi
	status_is 69
	has incomplete "$stderr"
	nothing_is_logged
}

@test "a document is 65 for ollama, naming part and provider" {
	printf '%s\n' '{"type": "ModelRequest", "data": {"parts": [{"__event__": "BinaryInput", "kind": {"value": "document"}, "media_type": "application/pdf", "data": {"__bytes__": "eA=="}}]}}' >history
	run ag2-ask -n -m ollama:llama-x <history
	status_is 65
	has "BinaryInput(document) cannot be sent to ollama"
}

# ---- what fails in passing ----

@test "a call that failed in passing is tried again, and logged once" {
	printf 'head 429 -\nheader Retry-After: 0\nbody\n' >web/1
	printf 'head 503 -\nheader Retry-After: 0\nbody\n' >web/2
	{ echo "$a_start"; a_text ok; a_end end_turn; } | events 3
	agent anthropic:claude-x
	ANTHROPIC_API_KEY=k run -0 --separate-stderr ask Hi
	output_is ok
	[ -z "$stderr" ] || fail "$stderr"
	ag2-store log cat --current s >log
	events_are log ModelRequest UsageEvent ModelResponse
}

@test "--retries 0 and retries: 0 try nothing again" {
	printf 'head 503 -\nheader Retry-After: 0\nbody\n' >web/any
	agent anthropic:claude-x 'retries: 0'
	ANTHROPIC_API_KEY=k run --separate-stderr ask Hi
	status_is 75
	[ -e web/1.head ] && [ ! -e web/2.head ]
	ANTHROPIC_API_KEY=k run --separate-stderr ask --retries 1
	status_is 75
	[ -e web/3.head ] && [ ! -e web/4.head ]
	has "asked 2 times" "$stderr"
}

@test "a limit of the command line counts instead of the file's" {
	printf 'hold\n' >web/any
	agent anthropic:claude-x 'first_byte_timeout: 50'
	ANTHROPIC_API_KEY=k run --separate-stderr ask --first-byte-timeout 0.3 Hi
	status_is 69
	has "sent nothing for 0.3 seconds" "$stderr"
}

@test "the key may come from a file that nobody else can read" {
	{ echo "$a_start"; a_text ok; a_end end_turn; } | events any
	agent anthropic:claude-x 'api_key_file: key'
	(umask 077 && echo sk-from-file >key)
	run -0 ask Hi
	has_head 1 'Authorization: Bearer sk-from-file'
	printf 'head 401 application/json\nsend {"error":{"message":"wrong key sk-from-file"}}\n' >web/any
	run ask Hi
	status_is 77
	has "status 401: wrong key [key] (the key is from '$TMP/key')"
	chmod 640 key
	run ask Hi
	status_is 77
	hasnt sk-from-file
	rm key
	run ask Hi
	status_is 78
}

# What a tool of Anthropic's own leaves of a turn that is paused.
paused() {
	printf '%s\n' '{"type":"message_start","message":{"model":"m","container":{"id":"box_1"},"usage":{"input_tokens":10,"output_tokens":1}}}' \
		'{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}' \
		'{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"Hm."}}' \
		'{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"c2ln"}}' '{"type":"content_block_stop","index":0}' \
		'{"type":"content_block_start","index":1,"content_block":{"type":"text","text":""}}' \
		'{"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"I "}}' \
		'{"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"look"}}' \
		'{"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":". "}}' \
		'{"type":"content_block_delta","index":1,"delta":{"type":"citations_delta","citation":{"type":"web_search_result_location","url":"https://e/"}}}' \
		'{"type":"content_block_stop","index":1}' \
		'{"type":"content_block_start","index":2,"content_block":{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{}}}' \
		'{"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"{\"query\":\"q\"}"}}' \
		'{"type":"content_block_stop","index":2}' \
		'{"type":"message_delta","delta":{"stop_reason":"pause_turn"},"usage":{"output_tokens":20}}' '{"type":"message_stop"}'
}

BLOCKS='[{"type":"thinking","thinking":"Hm.","signature":"c2ln"},{"type":"text","text":"I look. ","citations":[{"type":"web_search_result_location","url":"https://e/"}]},{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{"query":"q"}}]'
FOUND='{"type":"web_search_tool_result","tool_use_id":"srvtoolu_1","content":[]}'

@test "anthropic: a turn that is paused goes on with what came of it, until it is whole" {
	paused | events 1
	printf '%s\n' '{"type":"message_start","message":{"model":"m","usage":{"input_tokens":30,"output_tokens":1}}}' \
		"{\"type\":\"content_block_start\",\"index\":0,\"content_block\":$FOUND}" '{"type":"content_block_stop","index":0}' \
		'{"type":"message_delta","delta":{"stop_reason":"pause_turn"},"usage":{"output_tokens":3}}' '{"type":"message_stop"}' | events 2
	printf '%s\n' '{"type":"message_start","message":{"model":"m","usage":{"input_tokens":31,"output_tokens":1}}}' \
		'{"type":"content_block_start","index":0,"content_block":{"type":"text","text":"It is so."}}' '{"type":"content_block_stop","index":0}' \
		'{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":4}}' '{"type":"message_stop"}' | events 3
	agent anthropic:m 'options: {tools: [{type: web_search_20250305, name: web_search}]}'
	run -0 --separate-stderr ask --record tape Search
	output_is 'I look. It is so.'
	[ -z "$stderr" ] || fail "$stderr"
	[ "$(sent 1 '.messages | length')" -eq 1 ]
	[ "$(sent 2 '[(.messages | length), .messages[1], .container]')" = "[2,{\"role\":\"assistant\",\"content\":$BLOCKS},\"box_1\"]" ] || fail "$(cat web/2.body)"
	[ "$(sent 3 '[(.messages | length), .messages[1].content]')" = "[2,${BLOCKS%]},$FOUND]]" ] || fail "$(cat web/3.body)"
	# the request is the same but for that
	[ "$(sent 1 'del(.messages, .container)')" = "$(sent 3 'del(.messages, .container)')" ]
	ag2-store log cat --current s >log
	events_are log ModelRequest AnthropicServerToolCallEvent AnthropicServerToolResultEvent UsageEvent ModelResponse
	[ "$(tail -n 1 log | jq -c '.data | [.message.content, .finish_reason, .usage.data.prompt_tokens, .usage.data.completion_tokens]')" = '["I look. It is so.","end_turn",71,27]' ] || fail "$(tail -n 1 log)"
	kill "$(cat web/pid)"
	run -0 ag2-ask -c agent.yaml --stream again --replay tape Search
	output_is 'I look. It is so.'
}

@test "anthropic: a paused answer that came whole goes on as well; one that pauses for ever is 69 and not logged" {
	printf 'head 200 application/json\nsend %s\n' "{\"type\":\"message\",\"model\":\"m\",\"content\":${BLOCKS//\/\\},\"stop_reason\":\"pause_turn\",\"usage\":{\"input_tokens\":1,\"output_tokens\":2}}" >web/1
	printf 'head 200 application/json\nsend %s\n' '{"type":"message","model":"m","content":[{"type":"text","text":"Done."}],"stop_reason":"end_turn","usage":{"input_tokens":3,"output_tokens":4}}' >web/2
	paused | events any
	agent anthropic:m
	run -0 --separate-stderr ask --no-stream Search
	output_is 'I look. Done.'
	[ "$(sent 2 '.messages[1].content')" = "$BLOCKS" ] || fail "$(cat web/2.body)"
	run ag2-ask -c agent.yaml --stream t Search
	status_is 69
	has 'the model paused its turn 16 times'
	ag2-store log cat --current t >log
	events_are log ModelRequest
}
