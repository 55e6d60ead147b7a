# The bytes of an answer come in pieces cut anywhere: of each provider the result is the same, in chunks, packed, over TLS and over
# HTTP/2. SOAK=1: cut at every byte.

load helper
load tls

setup() {
	clean_environment
	mkdir web
	export OPENAI_API_KEY=k-0123456789abcdef ANTHROPIC_API_KEY=k-0123456789abcdef GEMINI_API_KEY=k-0123456789abcdef
	streams
}

teardown() {
	[ ! -e "$TMP/web/pid" ] || kill "$(cat "$TMP/web/pid")" 2>/dev/null || true
}

# A character, an escape and the ends of lines to be cut in each.
streams() {
	local text='北 \"Gr\u00fc\ud83d\ude00\n\"'
	printf '%s\r\n\r\n' "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"$text\"}}]}" ': alive' \
		'data: {"choices":[{"index":0,"delta":{"content":"!"},"finish_reason":"stop"}]}' \
		'data: {"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":2,"total_tokens":9}}' 'data: [DONE]' >openai
	printf 'event: x\ndata: %s\n\n' "{\"type\":\"response.output_text.delta\",\"sequence_number\":1,\"delta\":\"$text\"}" \
		'{"type":"response.output_text.delta","sequence_number":2,"delta":"!"}' \
		"{\"type\":\"response.completed\",\"response\":{\"status\":\"completed\",\"output\":[{\"type\":\"message\",\"content\":[{\"type\":\"output_text\",\"text\":\"$text!\"}]}],\"usage\":{\"input_tokens\":7,\"output_tokens\":2,\"total_tokens\":9}}}" >openai-responses
	printf 'data: %s\n\n' '{"type":"message_start","message":{"usage":{"input_tokens":7}}}' \
		'{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}' \
		"{\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"$text\"}}" \
		'{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"!"}}' '{"type":"content_block_stop","index":0}' \
		'{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":2}}' '{"type":"message_stop"}' >anthropic
	printf 'data: %s\r\r' "{\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"$text\"}]}}]}" \
		'{"candidates":[{"content":{"parts":[{"text":"!"}]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":7,"candidatesTokenCount":2,"totalTokenCount":9}}' >gemini
	printf '%s\n' "{\"message\":{\"content\":\"$text\"},\"done\":false}" '{"message":{"content":"!"},"done":false}' \
		'{"message":{"content":""},"done":true,"done_reason":"stop","prompt_eval_count":7,"eval_count":2}' >ollama
}

# in_chunks <BODY: as HTTP/1.1 sends it, 23 bytes each.
in_chunks() {
	local n
	split -b 23 - chunk.
	for n in chunk.*; do
		printf '%x\r\n' "$(wc -c <"$n")"
		cat "$n"
		printf '\r\n'
	done
	printf '0\r\n\r\n'
	rm chunk.*
}

# cuts SCHEME STEP HEADER COMMAND: the server runs; the bytes sent are what COMMAND makes of each stream.
cuts() {
	local scheme=$1 step=$2 header=$3 i len type
	shift 3
	URL=$scheme://127.0.0.1:$(cat web/port)
	[ -z "$SOAK" ] || step=1
	for provider in openai openai-responses anthropic gemini ollama; do
		type=text/event-stream
		[ $provider != ollama ] || type=application/x-ndjson
		"$@" <$provider >bytes
		printf '%s\n' "head 200 $type" "$header" 'file first' 'file second' >web/any
		len=$(wc -c <bytes)
		for ((i = 0; i <= len; i += step)); do
			head -c "$i" bytes >web/first
			tail -c +$((i + 1)) bytes >web/second
			ag2-ask -m $provider:m --base-url "$URL" --json Hi </dev/null >out 2>err || fail "$provider, cut at $i:" "$(cat err)"
			[ "$(jq -c '[.text, .usage.total_tokens]' out)" = '["北 \"Grü😀\n\"!",9]' ] || fail "$provider, cut at $i:" "$(cat out)"
			[ ! -s err ] || fail "$provider, cut at $i:" "$(cat err)"
		done
	done
}

@test "in chunks, cut within and between them" {
	"$TOOLS/httpd" -d -t 1000 web >/dev/null
	cuts http 127 'header Transfer-Encoding: chunked' in_chunks
}

@test "packed" {
	"$TOOLS/httpd" -d -t 1000 web >/dev/null
	cuts http 83 'header Content-Encoding: gzip' gzip
}

@test "over TLS, in chunks" {
	tls_certificates
	export SSL_CERT_FILE=$CERTS/ca.pem
	"$TOOLS/httpd" -d -t 1000 -c "$CERTS/good.pem" web >/dev/null
	cuts https 151 'header Transfer-Encoding: chunked' in_chunks
}

@test "over HTTP/2, packed and not" {
	curl --version | grep -q HTTP2 || skip "libcurl has no HTTP/2"
	tls_certificates
	export SSL_CERT_FILE=$CERTS/ca.pem
	"$TOOLS/httpd" -d -t 1000 -2 -c "$CERTS/good.pem" web >/dev/null
	cuts https 173 '# nothing' cat
	cuts https 89 'header Content-Encoding: gzip' gzip
}
