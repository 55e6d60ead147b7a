# A Redis server of a test's own: Debian's, on a Unix socket in the test's directory, nowhere else.
# `load redis`, then redis_start in the test or in setup, redis_stop in teardown.

# redis_start [OPTION...]: returns when it answers. Its data stay in $TMP/redis-data, if it is told to save any.
redis_start() {
	command -v redis-server >/dev/null || skip "no redis-server"
	socket=$TMP/r.sock
	mkdir -p "$TMP/redis-data"
	redis-server --port 0 --unixsocket "$socket" --unixsocketperm 700 --dir "$TMP/redis-data" --save '' --daemonize no \
		--logfile "$TMP/redis.log" "$@" 3>&- 4>&- >/dev/null 2>&1 &
	redis_pid=$!
	disown
	echo "$redis_pid" >"$TMP/redis.pid"
	url=redis+unix:$socket
	wait_for 30 rc ping
}

redis_stop() {
	[ -e "$TMP/redis.pid" ] || return 0
	redis_pid=$(cat "$TMP/redis.pid")
	rm -f "$TMP/redis.pid"
	kill -KILL "$redis_pid" 2>/dev/null || return 0
	wait_for 30 redis_gone
}

redis_gone() {
	has_ended "$redis_pid"
}

# has_ended PID: nothing is open any more, whoever is to take note of it.
has_ended() {
	! kill -0 "$1" 2>/dev/null || [ "$(ps -o stat= -p "$1" | cut -c1)" = Z ]
}

# At the server of the test, or at the cluster's first node, which sends on to others.
rc() {
	if [ -n "${socket-}" ]; then
		redis-cli -s "$socket" "$@"
	else
		redis-cli -c -p "$backend_port" "$@"
	fi
}

# redis_load FILE: keys and values as in tests/golden/redis_dump.json, below $ag2_key.
redis_load() {
	local key member score
	jq -r 'to_entries[] | select(.value.type == "string") | .key' "$1" | while IFS= read -r key; do
		jq -j --arg k "$key" '.[$k].value' "$1" | rc -x SET "$ag2_key${key#ag2:knowledge}" >/dev/null
	done
	jq -r 'to_entries[] | select(.value.type == "zset") | .key as $k | .value.value[] | "\($k)\t\(.[1])\t\(.[0])"' "$1" |
		while IFS="$(printf '\t')" read -r key score member; do
			rc ZADD "$ag2_key${key#ag2:knowledge}" "$score" "$member" </dev/null >/dev/null
		done
}

# What AG2 does, command by command.
ag2_key=ag2:knowledge
ag2_write() {
	rc INCR "$ag2_key":__version_counter >version
	printf %s "$2" | rc -x SET "$ag2_key:$1" >/dev/null
	rc ZADD "$ag2_key":__index "$(cat version)" "$1" >/dev/null
}
ag2_append() {
	rc --raw GET "$ag2_key:$1" >value
	ag2_write "$1" "$(cat value)$2"
}
ag2_delete() {
	rc DEL "$ag2_key:$1" >/dev/null
	rc ZREM "$ag2_key":__index "$1" >/dev/null
}

# cluster_start: three nodes on ports of this host that are free. Sets ports (an array).
cluster_start() {
	local try i
	command -v redis-server >/dev/null || skip "no redis-server"
	for try in 1 2 3 4 5 6 7 8 9 10; do
		ports=()
		for i in 1 2 3; do
			ports+=($((10000 + RANDOM % 12000)))
			node_start $i
		done
		if wait_for 30 nodes_settled && nodes_answer && timeout 60 redis-cli --cluster create "${ports[@]/#/127.0.0.1:}" --cluster-yes >"$TMP/create.log" 2>&1 </dev/null; then
			wait_for 60 nodes_agree
			return 0
		fi
		cluster_stop
		rm -rf "$TMP"/node[123]
	done
	fail "no cluster: $(cat "$TMP/create.log")"
}

# node_start I: node I, on ports[I - 1].
node_start() {
	mkdir -p "$TMP/node$1"
	redis-server --port "${ports[$1 - 1]}" --bind 127.0.0.1 --cluster-enabled yes --cluster-config-file nodes.conf --dir "$TMP/node$1" \
		--save '' --cluster-node-timeout 5000 --daemonize no --logfile "$TMP/node$1/log" 3>&- 4>&- >/dev/null 2>&1 &
	echo $! >"$TMP/node$1/pid"
	disown
}

# node_kill SIGNAL I: of -KILL it returns when its port is free.
node_kill() {
	kill "$1" "$(cat "$TMP/node$2/pid")"
	[ "$1" != -KILL ] || wait_for 30 has_ended "$(cat "$TMP/node$2/pid")"
}

nodes_answer() {
	local port
	for port in "${ports[@]}"; do
		[ "$(redis-cli -p "$port" ping)" = PONG ] || return 1
	done
}

# They answer, or one has ended: its port was taken.
nodes_settled() {
	nodes_answer || nodes_ended
}

nodes_ended() {
	local pid
	for pid in "$TMP"/node?/pid; do
		! has_ended "$(cat "$pid")" || return 0
	done
	return 1
}

nodes_agree() {
	local port
	for port in "${ports[@]}"; do
		redis-cli -p "$port" CLUSTER INFO | grep -q cluster_state:ok || return 1
	done
}

cluster_stop() {
	local i
	for i in 1 2 3 4; do
		[ ! -e "$TMP/node$i/pid" ] || node_kill -KILL $i 2>/dev/null || true
		rm -f "$TMP/node$i/pid"
	done
	return 0
}
