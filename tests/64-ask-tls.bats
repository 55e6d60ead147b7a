# ag2-ask over TLS: whom it trusts and what it shows; HTTP/2, packed answers, proxies.

load helper
load tls

KEY=sk-test-0123456789abcdef

setup() {
	clean_environment
	tls_certificates
	mkdir web
	export OPENAI_API_KEY=$KEY
}

teardown() {
	local dir
	for dir in web proxy; do
		[ ! -e "$TMP/$dir/pid" ] || kill "$(cat "$TMP/$dir/pid")" 2>/dev/null || true
	done
}

# serve [OPTION...]: the scripts in web/; URL is where.
serve() {
	"$TOOLS/httpd" -d -t 600 "$@" "$TMP/web" >/dev/null
	PORT=$(cat web/port)
	URL=https://127.0.0.1:$PORT/v1
}

# answer N TEXT: what connection N is told.
answer() {
	{
		echo head 200 text/event-stream
		echo "data {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"$2\"},\"finish_reason\":null}]}"
		echo 'data {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}'
		echo 'data [DONE]'
	} >"web/$1"
}

ask() {
	ag2-ask -m openai:m --base-url "$URL" "$@" </dev/null
}

# One line on standard error, and nothing was asked.
refused() {
	run --separate-stderr ask "$@"
	output_is ''
	[ "${#stderr_lines[@]}" -eq 1 ] || fail "$stderr"
	hasnt "$KEY" "$stderr"
	[ ! -e web/1.head ] || fail "the server was asked: $(cat web/1.head)"
}

@test "a server whose certificate the given authority signed is trusted: by option, file, directory and variable" {
	answer any yes
	serve -c "$CERTS/good.pem"
	refused hi
	status_is 69
	has "is not trusted, and nothing was sent" "$stderr"
	run -0 ask --cacert "$CERTS/ca.pem" hi
	output_is yes
	CURL_CA_BUNDLE=$CERTS/ca.pem run -0 ask hi
	SSL_CERT_FILE=$CERTS/ca.pem run -0 ask hi
	mkdir hashed
	cp "$CERTS/ca.pem" "hashed/$(openssl x509 -in "$CERTS/ca.pem" -noout -hash).0"
	run -0 ask --cacert hashed hi
	SSL_CERT_DIR=$TMP/hashed run -0 ask hi
	mkdir conf
	cp "$CERTS/ca.pem" conf/
	printf 'model: {model: "openai:m", base_url: "%s", cacert: ca.pem}\n' "$URL" >conf/agent.yaml
	run -0 --separate-stderr ag2-ask -s "disk:$TMP/st" -c conf/agent.yaml hi
	output_is yes
	# As a filter too, where upkeep asks.
	AG2_CONFIG=conf/agent.yaml run -0 ag2-ask hi </dev/null
	output_is yes
}

@test "a certificate that is no good is one line and 69, and the key stays here" {
	for kind in old elsewhere stranger; do
		answer any yes
		serve -c "$CERTS/$kind.pem"
		refused --cacert "$CERTS/ca.pem" hi
		status_is 69
		has "127.0.0.1 is not trusted, and nothing was sent" "$stderr"
		kill "$(cat web/pid)"
	done
	serve -c "$CERTS/good.pem"
	refused --cacert "$CERTS/stranger.pem" hi
	status_is 69
	refused --cacert "$CERTS/absent.pem" hi
	status_is 78
	has absent.pem "$stderr"
	echo nonsense >nonsense
	refused --cacert nonsense hi
	status_is 78
}

@test "a server that speaks no TLS is 69, one that wants it is told so" {
	answer any yes
	serve
	run --separate-stderr ask --retries 0 --connect-timeout 0.5 hi
	status_is 69
	[ "${#stderr_lines[@]}" -eq 1 ] || fail "$stderr"
	! grep -rq "$KEY" web
	kill "$(cat web/pid)"
	serve -c "$CERTS/good.pem"
	URL=http://127.0.0.1:$PORT/v1
	run --separate-stderr ask --retries 0 hi
	status_is 69
	[ "${#stderr_lines[@]}" -eq 1 ] || fail "$stderr"
}

@test "our own certificate is shown to a server that asks for one" {
	answer any yes
	serve -c "$CERTS/good.pem" -a "$CERTS/ca.pem"
	export SSL_CERT_FILE=$CERTS/ca.pem
	run -0 ask --cert "$CERTS/client.pem" hi
	output_is yes
	run -0 ask --cert "$CERTS/client.crt" --cert-key "$CERTS/client.key" hi
	run --separate-stderr ask hi
	status_is 69
	[ "${#stderr_lines[@]}" -eq 1 ] || fail "$stderr"
	hasnt asked "$stderr"	# once is enough
	run --separate-stderr ask --cert "$CERTS/absent.pem" hi
	status_is 78
	[ "${#stderr_lines[@]}" -eq 1 ] || fail "$stderr"
	run --separate-stderr ask --cert-key "$CERTS/client.key" hi
	status_is 78
}

@test "what unlocks the key of our certificate comes from a variable, a command or a file, and is shown nowhere" {
	answer any yes
	serve -c "$CERTS/good.pem" -a "$CERTS/ca.pem"
	export SSL_CERT_FILE=$CERTS/ca.pem
	locked=(--cert "$CERTS/client.crt" --cert-key "$CERTS/locked.key")
	AG2_CERT_PASS='open sesame' run -0 ask "${locked[@]}" hi
	output_is yes
	printf '#!/bin/sh\n[ "$1" = --schema ] && echo %s\nenv >env.tool\n' "'{\"name\": \"t\", \"parameters\": {}}'" >t
	chmod +x t
	AG2_CERT_PASS='open sesame' run -0 ask "${locked[@]}" -v --tool ./t hi
	grep -q ^PATH= env.tool
	run ! grep 'sesame\|sk-test' env.tool
	AG2_CERT_PASS='wrong words' run --separate-stderr ask "${locked[@]}" hi
	status_is 78
	hasnt 'wrong words' "$stderr"
	# Nobody is asked for it.
	run --separate-stderr ask "${locked[@]}" hi
	status_is 78
	[ "${#stderr_lines[@]}" -eq 1 ] || fail "$stderr"
	cp "$CERTS/client.pass" pass
	for source in 'cert_pass_cmd: "cat pass"' 'cert_pass_file: pass' 'cert_pass_env: UNLOCK'; do
		printf 'model: {model: "openai:m", base_url: "%s", cert: "%s", cert_key: "%s", %s}\n' "$URL" "$CERTS/client.crt" \
			"$CERTS/locked.key" "$source" >agent.yaml
		chmod 600 pass
		UNLOCK='open sesame' run -0 --separate-stderr ag2-ask -s "disk:$TMP/st" -c agent.yaml hi
		output_is yes
	done
	printf 'model: {model: "openai:m", cert: c, cert_pass: sesame}\n' >agent.yaml
	run ag2-ask -c agent.yaml hi
	status_is 78
	hasnt sesame
	has cert_pass_cmd
}

@test "a close without TLS's own end is a cut, a stream that was whole before it is an answer" {
	export SSL_CERT_FILE=$CERTS/ca.pem
	answer 1 half
	sed -i '/finish_reason":"stop/,$d' web/1
	echo cut >>web/1
	answer 2 whole
	echo cut >>web/2
	serve -c "$CERTS/good.pem"
	run --separate-stderr ask hi
	status_is 69
	output_is half
	has incomplete "$stderr"
	run -0 ask hi
	output_is whole
}

@test "whatever a server may do is understood over TLS as it is without" {
	AG2_BUILD=${BIN%/bin} AG2_TEST_CERTS=$CERTS run "$UNIT/llm_http"
	[ "$status" -eq 0 ] || fail "$(grep -v "^ok" <<<"$output")"
}

# ---- HTTP/2 ----

has_h2() {
	curl --version | grep -q HTTP2 || skip "libcurl has no HTTP/2"
}

@test "over HTTP/2 an answer streams, is cut and is refused as over HTTP/1.1" {
	has_h2
	export SSL_CERT_FILE=$CERTS/ca.pem
	answer 1 yes
	{ cat web/1; echo hold; } >web/2
	answer 3 half
	sed -i '/finish_reason":"stop/,$d' web/3
	{ cat web/3; echo reset; } >web/4
	printf 'head 429 application/json\nheader retry-after: 0\nsend {"error":{"message":"later"}}\n' >web/5
	answer 6 again
	printf 'head 401 application/json\nsend {"error":{"message":"no such key: %s"}}\n' "$KEY" >web/7
	serve -c "$CERTS/good.pem" -2
	run -0 ask hi
	output_is yes
	[ "$(jq -r '.messages[0].content' web/1.body)" = hi ]
	! head -c 4 web/1.head | grep -q POST	# it was not HTTP/1.1
	run -0 ask hi
	output_is yes
	for n in 3 4; do
		run --separate-stderr ask hi
		status_is 69
		output_is half
		[ "${#stderr_lines[@]}" -eq 1 ] || fail "$stderr"
		[ ! -e web/$((n + 1)).head ]
	done
	run -0 ask hi
	output_is again
	run --separate-stderr ask hi
	status_is 77
	hasnt "$KEY" "$stderr"
}

# ---- proxies ----

# proxy STEP...: another server, which writes down what it is asked.
proxy() {
	mkdir proxy
	printf '%s\n' "$@" >proxy/any
	"$TOOLS/httpd" -d -t 600 proxy >/dev/null
	PROXY=127.0.0.1:$(cat proxy/port)
}

@test "https: goes through the proxy of the environment, which sees no key" {
	export SSL_CERT_FILE=$CERTS/ca.pem
	answer any yes
	serve -c "$CERTS/good.pem"
	proxy "tunnel $PORT"
	https_proxy=http://me:proxy-secret@$PROXY run -0 --separate-stderr ask -v hi
	output_is yes
	hasnt proxy-secret "$stderr"
	grep -q "^CONNECT 127.0.0.1:$PORT " proxy/1.head
	grep -qi "^Proxy-Authorization: Basic $(printf me:proxy-secret | base64)" proxy/1.head
	! grep -rq "$KEY" proxy
	! grep -i proxy-authorization web/1.head
	HTTPS_PROXY=http://$PROXY run -0 ask hi
	all_proxy=http://$PROXY run -0 ask hi
	[ -e proxy/3.head ]
	https_proxy=http://$PROXY NO_PROXY=127.0.0.1 run -0 ask hi
	https_proxy=http://$PROXY no_proxy='*' run -0 ask hi
	[ ! -e proxy/4.head ]
}

@test "a proxy that refuses is told from the server: 407 is 77, others 69, none of it is an answer" {
	export SSL_CERT_FILE=$CERTS/ca.pem
	answer any yes
	serve -c "$CERTS/good.pem"
	proxy 'head 407 text/html' 'header Proxy-Authenticate: Basic realm="x"' 'send <html>who are you</html>'
	https_proxy=http://me:proxy-secret@$PROXY run --separate-stderr ask hi
	status_is 77
	has "the proxy refuses" "$stderr"
	hasnt proxy-secret "$stderr"
	[ "${#stderr_lines[@]}" -eq 1 ] || fail "$stderr"
	printf 'head 403 -\n' >proxy/any
	https_proxy=http://$PROXY run --separate-stderr ask hi
	status_is 69
	has "status 403" "$stderr"
	https_proxy=http://127.0.0.1:1 run --separate-stderr ask --retries 0 hi
	status_is 69
	[ "${#stderr_lines[@]}" -eq 1 ] || fail "$stderr"
	[ ! -e web/1.head ]
}

@test "tools get the proxy's address without the user and password" {
	answer any yes
	serve
	URL=http://127.0.0.1:$PORT/v1
	printf '#!/bin/sh\n[ "$1" = --schema ] && echo %s\nenv >env.tool\n' "'{\"name\": \"t\", \"parameters\": {}}'" >t
	chmod +x t
	https_proxy=http://me:proxy-secret@proxy.example:8080 HTTP_PROXY=me:proxy-secret@proxy.example all_proxy=http://open.example \
		run -0 ask --tool ./t hi
	grep -qx https_proxy=http://proxy.example:8080 env.tool
	grep -qx HTTP_PROXY=proxy.example env.tool
	grep -qx all_proxy=http://open.example env.tool
	! grep -q proxy-secret env.tool
}

@test "socks5h: takes the name to the proxy, with user and password, and what refuses is told" {
	export SSL_CERT_FILE=$CERTS/ca.pem
	answer any yes
	serve -c "$CERTS/elsewhere.pem"
	URL=https://elsewhere.example/v1
	mkdir proxy
	echo "socks 0 $PORT" >proxy/any
	"$TOOLS/httpd" -d -t 600 -s proxy >/dev/null
	PROXY=127.0.0.1:$(cat proxy/port)
	https_proxy=socks5h://me:proxy-secret@$PROXY run -0 --separate-stderr ask -v hi
	output_is yes
	hasnt proxy-secret "$stderr"
	[ "$(cat proxy/1.head)" = 'elsewhere.example:443 me:proxy-secret' ]
	ALL_PROXY=socks5h://$PROXY run -0 ask hi
	[ "$(cat proxy/2.head)" = 'elsewhere.example:443 :' ]
	! grep -rq "$KEY" proxy
	# user or password are wrong; the proxy may not, or cannot connect; nobody is there
	rm web/*.head
	echo 'socks-user 1' >proxy/any
	https_proxy=socks5h://me:proxy-secret@$PROXY refused --retries 0 hi
	status_is 77
	has 'the SOCKS proxy does not take the user and password' "$stderr"
	hasnt proxy-secret "$stderr"
	echo 'socks 2' >proxy/any
	https_proxy=socks5h://me:proxy-secret@$PROXY refused --retries 0 hi
	status_is 69
	has 'the SOCKS proxy does not allow to connect to elsewhere.example' "$stderr"
	echo 'socks 5' >proxy/any
	https_proxy=socks5h://me:proxy-secret@$PROXY refused --retries 0 hi
	status_is 69
	has 'the SOCKS proxy cannot connect to elsewhere.example' "$stderr"
	https_proxy=socks5h://me:proxy-secret@127.0.0.1:1 refused --retries 0 hi
	status_is 69
}

@test "http: to this host asks no proxy, to others one, without the key" {
	answer any yes
	proxy 'head 200 application/json' 'send {"choices":[{"message":{"content":"by proxy"},"finish_reason":"stop"}]}'
	serve
	URL=http://127.0.0.1:$PORT/v1
	http_proxy=http://$PROXY run -0 ask hi
	output_is yes
	[ ! -e proxy/1.head ]
	URL=http://model.example/v1
	http_proxy=http://$PROXY run ask hi
	status_is 78
	unset OPENAI_API_KEY
	http_proxy=http://$PROXY run -0 ask hi
	output_is 'by proxy'
	grep -q '^POST http://model.example/v1/chat/completions ' proxy/1.head
}

# ---- packed answers ----

@test "a packed answer is unpacked as it streams" {
	cat >plain <<-'END'
		data: {"choices":[{"index":0,"delta":{"content":"first"},"finish_reason":null}]}

	END
	printf 'data: {"choices":[{"index":0,"delta":{"content":" second"},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n' >rest
	gzip -c plain >web/plain.gz
	gzip -c rest >web/rest.gz
	printf 'head 200 text/event-stream\nheader Content-Encoding: gzip\nfile plain.gz\nwait seen\nfile rest.gz\n' >web/1
	cat plain rest | gzip -c >web/all.gz
	printf 'head 200 text/event-stream\nheader Content-Encoding: gzip\nbody\nbytes\nfile all.gz\n' >web/2
	printf 'head 400 application/json\nheader Content-Encoding: gzip\nfile error.gz\n' >web/3
	printf '{"error":{"message":"packed words %s"}}' "$KEY" | gzip -c >web/error.gz
	printf 'head 200 text/event-stream\nheader Content-Encoding: gzip\nsend this is not gzip at all, whatever its head says\n' >web/4
	printf 'head 200 text/event-stream\nheader Content-Encoding: snappy\nsend data: [DONE]\\n\\n\n' >web/5
	serve
	URL=http://127.0.0.1:$PORT/v1
	ask hi >out 3>&- &
	pid=$!
	wait_for 20 grep -q first out
	: >web/seen
	status=0
	wait $pid || status=$?
	# Two members, one behind the other, are one file to gzip, but not to every libcurl.
	[ "$status" -eq 69 ] || [ "$(cat out)" = 'first second' ] || fail "status $status: $(cat out)"
	grep -qi '^Accept-Encoding:.*gzip' web/1.head
	run -0 ask hi
	output_is 'first second'
	run --separate-stderr ask hi
	status_is 69
	has 'packed words [key]' "$stderr"
	for n in 4 5; do
		run --separate-stderr ask --retries 0 hi
		status_is 69
		[ "${#stderr_lines[@]}" -eq 1 ] || fail "$stderr"
	done
}

@test "a small answer that unpacks to a great deal is an error in bounded memory and time" {
	head -c 140000000 /dev/zero | tr '\0' ' ' | gzip -1 -c >web/blanks.gz
	printf 'head 200 application/json\nheader Content-Encoding: gzip\nfile blanks.gz\n' >web/1
	printf 'head 200 text/event-stream\nheader Content-Encoding: gzip\nfile blanks.gz\n' >web/2
	printf 'head 500 text/plain\nheader Content-Encoding: gzip\nfile blanks.gz\n' >web/3
	if [ -n "$SOAK" ]; then
		yes ": $(printf '%0998d' 0)" | head -c 600000000 | gzip -1 -c >web/bomb.gz
		printf 'head 200 text/event-stream\nheader Content-Encoding: gzip\nfile bomb.gz\n' >web/4
	fi
	serve
	URL=http://127.0.0.1:$PORT/v1
	for n in 1 2 3 ${SOAK:+4}; do
		run --separate-stderr timeout 60 ag2-ask -m openai:m --base-url "$URL" --retries 0 hi </dev/null
		status_is 69
		[ "${#stderr_lines[@]}" -eq 1 ] || fail "$stderr"
	done
}
