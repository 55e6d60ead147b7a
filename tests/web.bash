# shellcheck shell=bash
# A model behind the scripted HTTP server, for load: the answers in the files of web/.

teardown() {
	[ ! -e "$TMP/web/pid" ] || kill "$(cat "$TMP/web/pid")" 2>/dev/null || true
}

# agent MODEL [LINE...]: agent.yaml for a model behind the server of web/, with further keys of model: as lines.
agent() {
	local model=$1 line
	shift
	"$TOOLS/httpd" -d -t 600 "$TMP/web" >/dev/null
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

# What failed leaves the request only, and says so.
nothing_is_logged() {
	ag2-store log cat --current s >log
	events_are log ModelRequest
}
