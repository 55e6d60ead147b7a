# Each provider behind HTTP: where a request goes and with what head, a round of tools, and what an end without an end leaves.

load helper
load scripted

setup() {
	clean_environment
	mkdir web
	export AG2_STORE=disk:$TMP/st
	tool weather 'jq -c "{city: .city, temp: 21}"'
}

teardown() {
	[ ! -e "$TMP/web/pid" ] || kill "$(cat "$TMP/web/pid")" 2>/dev/null || true
}

# agent MODEL [LINE...]: agent.yaml for a model behind the server of web/, with further keys of model: as lines.
agent() {
	local model=$1 line
	shift
	"$TOOLS/httpd" -d -t 60 "$TMP/web" >/dev/null
	{
		printf 'model:\n  model: %s\n  base_url: http://127.0.0.1:%s\n' "$model" "$(cat web/port)"
		for line; do printf '  %s\n' "$line"; done
		printf 'tools: [./weather]\n'
	} >agent.yaml
}

# events N: connection N answers with the server-sent events on stdin; lines N: with these lines.
events() {
	{
		echo 'head 200 text/event-stream'
		sed 's/\\/\\\\/g; s/^/data /'
	} >"web/$1"
}

lines() {
	{
		echo 'head 200 application/x-ndjson'
		sed 's/\\/\\\\/g; s/^/send /; s/$/\\n/'
	} >"web/$1"
}

ask() {
	ag2-ask -c agent.yaml --stream s "$@"
}

# sent N FILTER: of the body of request N.
sent() {
	jq -rc "$2" "web/$1.body"
}

has_head() {
	grep -qi "^$2"$'\r''*$' "web/$1.head" || fail "no $2 in:" "$(cat "web/$1.head")"
}

# The log after a turn with one round of tools.
round_is_logged() {
	ag2-store log cat --current s >log
	events_are log ModelRequest UsageEvent ModelResponse ToolCallsEvent "$1" ToolResultEvent ToolResultsEvent UsageEvent ModelResponse
}

# What failed leaves the request only, and says so.
nothing_is_logged() {
	ag2-store log cat --current s >log
	events_are log ModelRequest
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
