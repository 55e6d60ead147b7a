#!/usr/bin/env bats
# rediss: the store on a Redis server over TLS, in a build that speaks it.

load helper
load redis

setup() {
	clean_environment
	run ag2-store -s 'rediss://127.0.0.1:1/0?timeout=1' ls
	[ "$status" -ne 78 ] || skip "this build speaks no TLS"
	command -v openssl >/dev/null || skip "no openssl"
	command -v redis-server >/dev/null || skip "no redis-server"
	certificate ca "/CN=authority"
	certificate other "/CN=another authority"
	signed server "subjectAltName=DNS:localhost,IP:127.0.0.1"
	signed client "subjectAltName=DNS:client"
}

teardown() {
	redis_stop
}

# certificate NAME SUBJECT: an authority's.
certificate() {
	openssl req -x509 -newkey rsa:2048 -nodes -keyout "$1.key" -out "$1.pem" -days 2 -subj "$2" 2>/dev/null
}

# signed NAME EXTENSION: by ca.
signed() {
	openssl req -newkey rsa:2048 -nodes -keyout "$1.key" -out "$1.csr" -subj "/CN=$1" 2>/dev/null
	echo "$2" >"$1.ext"
	openssl x509 -req -in "$1.csr" -CA ca.pem -CAkey ca.key -CAcreateserial -out "$1.pem" -days 2 -extfile "$1.ext" 2>/dev/null
}

# tls_server [OPTION...]: sets port.
tls_server() {
	local try
	for try in 1 2 3 4 5; do
		port=$((10000 + RANDOM % 20000))
		redis_start --tls-port "$port" --bind 127.0.0.1 --tls-cert-file "$TMP/server.pem" --tls-key-file "$TMP/server.key" \
			--tls-ca-cert-file "$TMP/ca.pem" "$@" && return
		redis_stop
	done
	skip "no server that speaks TLS: $(tail -n 1 redis.log)"
}

@test "what every store does, and a lock and a watch, over TLS" {
	tls_server --tls-auth-clients no
	export AG2_STORE="rediss://127.0.0.1:$port/0?cacert=$TMP/ca.pem"
	(cd "$ROOT" && AG2_TEST_STORE=$AG2_STORE "$UNIT/store") >out || fail "$(grep -A3 '^not ok' out)"
	"$TOOLS/storesoak" -k 5 "$AG2_STORE" 100
	run -0 ag2-store -s "$AG2_STORE" lock --ttl 3 /l -- sleep 3.5
	ag2-store watch -v --once /w >seen 2>said 3>&- & watch=$!
	wait_for 30 grep -q watching said
	ag2-store write /w <<<1
	wait "$watch"
	[ "$(cat seen)" = "changed /w" ]
	run -0 ag2-store fsck
	output_is ""
}

@test "a server is trusted only with a certificate of its own name, from an authority that is trusted" {
	tls_server --tls-auth-clients no
	run -69 ag2-store -s "rediss://127.0.0.1:$port/0" write /x <<<1
	has "not trusted"
	run -69 ag2-store -s "rediss://127.0.0.1:$port/0?cacert=$TMP/other.pem" write /x <<<1
	has "not trusted"
	run -69 ag2-store -s "rediss://127.0.0.2:$port/0?cacert=$TMP/ca.pem" write /x <<<1
	run -78 ag2-store -s "rediss://127.0.0.1:$port/0?cacert=$TMP/none.pem" write /x <<<1
	has "cacert="
	signed wrong "subjectAltName=DNS:elsewhere"
	redis_stop
	mv wrong.pem server.pem
	mv wrong.key server.key
	tls_server --tls-auth-clients no
	run -69 ag2-store -s "rediss://127.0.0.1:$port/0?cacert=$TMP/ca.pem" write /x <<<1
	has "not trusted"
}

@test "a server that wants to know who comes, and one that stops in the middle" {
	tls_server --tls-auth-clients yes
	run ag2-store -s "rediss://127.0.0.1:$port/0?cacert=$TMP/ca.pem&timeout=1" write /x <<<1
	[ "$status" -eq 69 ] || [ "$status" -eq 75 ]
	mine="rediss://127.0.0.1:$port/0?cacert=$TMP/ca.pem&cert=$TMP/client.pem&key=$TMP/client.key"
	run -0 ag2-store -s "$mine" write /x <<<1
	run -0 ag2-store -s "$mine" cat /x
	output_is 1
	kill -STOP "$redis_pid"
	run -75 ag2-store -s "$mine&timeout=1" cat /x
	kill -CONT "$redis_pid"
	# One that waits for plain text.
	redis_stop
	redis_start --port "$port" --bind 127.0.0.1
	run ag2-store -s "rediss://127.0.0.1:$port/0?timeout=1" cat /x
	[ "$status" -eq 69 ] || [ "$status" -eq 75 ]
}
