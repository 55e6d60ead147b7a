# A signal ends ag2-ask at whatever it is waiting for: at once, by the signal, and with nothing in the log that is not so.

load helper
load scripted
load tls

setup() {
	clean_environment
	mkdir web
	export AG2_STORE=disk:$TMP/st
}

teardown() {
	[ ! -e "$TMP/web/pid" ] || kill "$(cat "$TMP/web/pid")" 2>/dev/null || true
}

# moment NAME: what the server does; `touch there` says when it has come so far.
moment() {
	case $1 in
	request)	printf '%s\n' 'touch there' 'wait never' ;;
	head)		printf '%s\n' 'head 200 text/event-stream' 'touch there' 'wait never' ;;
	body)		printf '%s\n' 'head 200 text/event-stream' body 'touch there' hold ;;
	text)		printf '%s\n' 'head 200 text/event-stream' 'data {"choices":[{"index":0,"delta":{"content":"half"},"finish_reason":null}]}' 'touch there' hold ;;
	# what comes behind the end, time and again, keeps it listening
	ended)
		printf '%s\n' 'head 200 text/event-stream' 'data {"choices":[{"index":0,"delta":{"content":"half"},"finish_reason":"stop"}]}' 'touch there'
		for i in {1..400}; do printf '%s\n' 'pause 250' 'data {"choices":[],"usage":{"prompt_tokens":1}}'; done
		;;
	retry)		printf '%s\n' 'head 503 text/plain' 'header Retry-After: 100' 'send busy' 'touch there' ;;
	esac
}

# interrupted SIGNAL MOMENT [OPTION...]: ag2-ask in the stream s, and how it ended.
interrupted() {
	local signal=$1 moment=$2 started status=0
	shift 2
	rm -rf web/there st
	set -m	# or the shell has it ignore SIGINT
	ag2-ask -m openai:m --base-url "$URL" "$@" --timeout 300 --stream s Hi >out 2>err &
	pid=$!
	set +m
	wait_for 20 test -e web/there
	[ "$moment" != retry ] || wait_for 20 grep -q 'trying again in 100 s' err
	[ "$moment" != text ] || [ "$*" != "" ] || wait_for 20 grep -q half out
	started=$SECONDS
	kill -"$signal" $pid
	wait $pid || status=$?
	[ $((SECONDS - started)) -le 30 ] || fail "$signal $moment: it took $((SECONDS - started)) s"
	[ "$status" -eq $((128 + $(kill -l "$signal"))) ] || fail "$signal $moment: status $status" "$(cat err)"
	ag2-store log cat --current s >log
	events_are log ModelRequest
}

@test "INT, TERM and HUP end it in each moment of a call" {
	"$TOOLS/httpd" -d -t 600 "$TMP/web" >/dev/null
	URL=http://127.0.0.1:$(cat web/port)/v1
	for moment in request head body text ended retry; do
		moment $moment >web/any
		for signal in INT TERM HUP; do
			interrupted $signal $moment
		done
	done
	interrupted TERM retry --events
	[ "$(types out)" = ModelRequest ] || fail "$(cat out)"
	moment text >web/any
	interrupted TERM text --events
	[ "$(types out)" = ModelRequest ] || fail "$(cat out)"
	interrupted TERM text --json
	[ ! -s out ]
}

@test "so they do over TLS, and while a server does not answer the greeting" {
	tls_certificates
	export SSL_CERT_FILE=$CERTS/ca.pem
	"$TOOLS/httpd" -d -t 600 -c "$CERTS/good.pem" "$TMP/web" >/dev/null
	URL=https://127.0.0.1:$(cat web/port)/v1
	for moment in request text; do
		moment $moment >web/any
		interrupted INT $moment
	done
	kill "$(cat web/pid)"
	"$TOOLS/httpd" -d -t 600 "$TMP/web" >/dev/null
	URL=https://127.0.0.1:$(cat web/port)/v1
	set -m
	ag2-ask -m openai:m --base-url "$URL" --stream t Hi >out 2>err &
	pid=$!
	set +m
	wait_for 20 test -s st/log/t.jsonl
	kill -TERM $pid
	status=0
	wait $pid || status=$?
	status_is 143
	[ ! -s out ]
}

@test "SIGPIPE from elsewhere is no end" {
	moment text | sed 's/^hold$/wait seen/' >web/1
	printf '%s\n' 'data {"choices":[{"index":0,"delta":{"content":" and half"},"finish_reason":"stop"}]}' 'data [DONE]' >>web/1
	"$TOOLS/httpd" -d -t 600 "$TMP/web" >/dev/null
	URL=http://127.0.0.1:$(cat web/port)/v1
	ag2-ask -m openai:m --base-url "$URL" --stream s Hi >out 2>err &
	pid=$!
	wait_for 20 grep -q half out
	kill -PIPE $pid
	: >web/seen
	wait $pid
	[ "$(cat out)" = "half and half" ]
}
