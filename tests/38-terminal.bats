# What comes from a store, a model, a tool, a file or the command line does nothing to a terminal, and is what it is in a pipe.
bats_require_minimum_version 1.5.0
load helper

# Title and screen sequences, C1 as a character and as a byte, bidi controls, a byte that is no UTF-8, DEL, BS, CR.
E=$'x\e]0;pwn\a\e[2J\xc2\x9b1m\x9b2m\u202e\u2066\u200f\xff\x7f\b\ry'
# The same in JSON, where it has to be UTF-8; as it is once decoded, and the beginning of it, which every line has.
J='x\u001b]0;pwn\u0007\u001b[2J'$'\xc2\x9b1m\u202e\u2066\u200f''\u007f\b\ry'
B=$'x\e]0;pwn\a\e[2J'
# What a YAML text can have of it.
Y='x\u001b]0;pwn\u0007\u001b[2J\u009b1m\u202e\u2066\u200f\u007f\by'
D="/d$E/a"$'\n'"b$E"

event() {
	printf '{"type": "%s", "data": {"created_at": 1780000001.5, %s}}\n' "$1" "$2"
}

events() {
	event ag2.events.input_events.ModelRequest '"parts": [{"__event__": "ag2.events.input_events.TextInput", "metadata": {}, "content": "ask '"$J"'"}]'
	event ag2.events.types.ModelResponse '"model": "m'"$J"'", "message": {"__event__": "ag2.events.types.ModelMessage", "content": "answer '"$J"'"}, "tool_calls": {"__event__": "ag2.events.tool_events.ToolCallsEvent", "calls": [{"__event__": "ag2.events.tool_events.ToolCallEvent", "id": "c'"$J"'", "name": "tool'"$J"'", "arguments": "{\"k\": \"'"${J//\\/\\\\}"'\"}"}]}'
	event ag2.events.tool_events.ToolErrorEvent '"parent_id": "c'"$J"'", "name": "tool'"$J"'", "error": {"__exception__": "E", "message": "error '"$J"'"}, "result": {"data": {"parts": [{"__event__": "ag2.events.input_events.TextInput", "content": "result '"$J"'"}]}}'
	event ag2.events.types.ModelResponse '"message": {"__event__": "ag2.events.types.ModelMessage", "content": "last '"$J"'"}'
	event ag2.events.types.UsageEvent '"kind": "kind'"$J"'", "model": "m'"$J"'", "usage": {"data": {"prompt_tokens": 3, "completion_tokens": 2}}'
	event ag2.events.alert.ObserverAlert '"source": "source'"$J"'", "severity": "warning'"$J"'", "message": "alert '"$J"'", "data": {}'
	event ag2.compact.CompactionSummary '"summary": "summary '"$J"'", "event_count": 3'
	event "my.Custom$J" '"content": "own '"$J"'"'
	event ag2.events.alert.HaltEvent '"reason": "halt '"$J"'", "source": "s'"$J"'", "alerts": []'
}

setup() {
	clean_environment
	need_terminal
	export AG2_STORE=disk:$TMP/store E J B D TMP ROOT
	printf 'tea %s\n' "$E" | ag2-store write "$D"
	printf 'old %s\n' "$E" | ag2-store write /memory/working.md
	events | ag2-store log append s
	printf '{"type": "X", torn%s\n' "$E" | ag2-store append /log/s.jsonl >/dev/null
	events | ag2-store log append "good"
	events | head -n -1 | ag2-store log append open
	ag2-aggregate --stream good -m "exec:printf '%s' \"\$E\" >&2; exit 3" working-memory 2>/dev/null || true
	printf 'model: "exec:cat >/dev/null; printf %%s \\"$E\\""\nknowledge: {store: "%s", expose_tool: false}\nassembly: [working_memory]\n' "$AG2_STORE" >agent.yaml
	printf 'name: x\n"%s": y\n' "$Y" >bad.yaml
	printf 'models:\n  "m%s": {input: 1}\n' "$Y" >prices.yaml
	printf '{"contains": "%s", "reply": {"text": "no"}}\n' "$J" >cassette
	chmod 600 ./*.yaml cassette
	mkdir -p "links/$E"
	ln -s /nowhere "links/$E/link"
	tar -cf links.tar links
	events >events.jsonl
	sed -n 2p events.jsonl >call.jsonl
	{ cat events.jsonl; printf '{"type": "X%s", "data": {}\n' "$E"; } >torn.jsonl
	printf 'keep\n' >text
	printf '#!/bin/sh\n[ "$1" != --schema ] || { printf "%%s" "$E" >&2; exit 3; }\n' >tool
	chmod +x tool
}

# The rows: WHERE, then a command for sh. `out`: the hostile bytes come to standard output, raw in a pipe. `json`: there too, JSON has
# escapes for some of them. `err`: they come in a message, and that is scrubbed wherever it goes. `said`: it was said in a message that is kept. `none`: the message has none of them.
rows() {
	cat <<-'END'
		out ag2-store ls "/d$E"
		out ag2-store ls -1 /
		out ag2-store ls -l /
		out ag2-store ls -R
		out ag2-store ls "$D"
		json ag2-store ls -R --json
		out ag2-store tree
		out ag2-store tree -l
		out ag2-store tree "/d$E"
		json ag2-store tree --json
		out ag2-store cat "$D"
		out ag2-store cat --range 0:20 "$D"
		out ag2-store stat "$D"
		json ag2-store stat --json "$D"
		out ag2-store grep tea
		out ag2-store grep -l tea
		out ag2-store grep last /log/good.jsonl
		json ag2-store grep --json tea
		out ag2-store watch -1 -t 20 "/d$E" & while kill -0 $!; do ag2-store append "$D" text >text.offset; sleep 0.1; done 2>/dev/null; wait $!
		out echo '{"action": "read", "path": "/memory/working.md"}' | ag2-store tool
		out ag2-store -s "disk:$TMP/init$$$E" init
		json ag2-store log cat good
		out ag2-store log show good
		out ag2-store log show --full good
		out ag2-store log show --plain good
		out ag2-store log show - <events.jsonl
		out ag2-store log answer good
		out ag2-store log grep last
		out ag2-store log grep -E 'tool|result|alert|summary|own'
		json ag2-store log grep --json last
		out ag2-store log usage good
		json ag2-store log usage --json good
		json ag2-store log tail -n 3 good
		said ag2-store log ls -l
		said ag2-store log ls --json
		none ag2-store fsck
		none ag2-store log show s
		none ag2-store log grep -l torn s
		none ag2-store fsck --json
		err ag2-store "$E"
		err ag2-store "--$E"
		err ag2-store log "$E"
		err ag2-store help "$E"
		err ag2-store --completion="$E"
		err ag2-store -c "$E" ls
		err ag2-store -c bad.yaml ls
		err ag2-store -s "disk:/nowhere/$E" ls
		err ag2-store -s "sqlite:/nowhere/$E" ls
		none ag2-store -s "redis://127.0.0.1:1/0?$E" ls
		err ag2-store -s "redis://[$E" ls
		err ag2-store -s "$AG2_STORE?$E=1" ls
		err ag2-store ls "/no$E"
		err ag2-store tree "/no$E"
		err ag2-store cat "/no$E"
		err ag2-store cat "/..$E/.."
		err ag2-store cat --range="$E" /x
		err ag2-store stat "/no$E"
		err ag2-store rm "/no$E"
		err ag2-store rm "/d$E"
		err ag2-store write "/d$E" text
		err ag2-store write "/d$E/x" "no$E"
		err ag2-store write --if-version "$E" /x text
		err ag2-store append "$D/below" text
		none VISUAL=true ag2-store edit "/d$E"
		err ag2-store restore "$D"
		err ag2-store restore /memory/working.md "$E"
		err ag2-store grep tea "/no$E"
		err ag2-store grep "[$E"
		none ag2-store export "/no$E"
		err ag2-store import <links.tar
		err ag2-store watch -t "$E" /
		err ag2-store lock -w 1 /x -- "./no$E"
		err ag2-store run -- "./no$E"
		none echo "{$E}" | ag2-store tool
		out printf '{"action": "%s"}' "$J" | ag2-store tool
		err ag2-store log cat "$E"
		err ag2-store log rm "$E"
		err ag2-store log show --since "$E" s
		err ag2-store log prune --older-than "$E"
		none ag2-store log append s <torn.jsonl
		err ag2-store log alert s --severity "$E" --source x y
		err ag2-store log usage --prices prices.yaml
		err ag2-store log usage --prices "no$E"
		json ag2-assemble --stream good
		json ag2-assemble --prompt "$E" <text
		json ag2-assemble --stream good working-memory sliding-window:2
		json ag2-assemble --stream good --explain 'inject:printf "%s" "$E" # '"$E"
		err ag2-assemble --stream good "$E"
		err ag2-assemble --stream good "sliding-window:$E"
		err ag2-assemble --stream good "sliding-window:$E=1"
		err ag2-assemble --stream "$E"
		err ag2-assemble --compare "no$E" <events.jsonl
		err ag2-assemble --layout "$E" <events.jsonl
		err ag2-assemble -c bad.yaml --check
		none ag2-assemble --strict <torn.jsonl
		err ag2-assemble "exec:exit 3; : $E" <events.jsonl
		out ag2-ask -c agent.yaml hello
		json ag2-ask -c agent.yaml --json hello
		json ag2-ask -c agent.yaml --events hello
		err ag2-ask -m openai:gpt-5 -n --stream good hello
		json ag2-ask -m openai:gpt-5 -n --stream open hello
		json ag2-ask -m anthropic:m -n --stream open hello
		err ag2-ask -m gemini:m -n --stream open --compare "no$E" hello
		err ag2-ask -v --max-rounds 1 -m 'exec:cat >/dev/null; cat call.jsonl' hello </dev/null
		json ag2-ask --max-rounds 1 --events -m 'exec:cat >/dev/null; cat call.jsonl' hello </dev/null
		err ag2-ask -m "$E" hello <text
		err ag2-ask -m "exec:cat >/dev/null; exit 3; : $E" hello </dev/null
		none ag2-ask -m "openai:$E" --replay cassette hello </dev/null
		none ag2-ask -m openai:m --replay cassette hello </dev/null
		err ag2-ask -m openai:m --replay "no$E" hello </dev/null
		none ag2-ask -m openai:m --base-url "gopher://$E" hello </dev/null
		err ag2-ask -m openai:m --schema "no$E" hello </dev/null
		err ag2-ask -m openai:m --image "no$E" hello </dev/null
		err ag2-ask -m openai:m --tool "./no$E" hello </dev/null
		err ag2-ask -m openai:m --max-rounds "$E" hello </dev/null
		none ag2-ask -m openai:m --strict hello <torn.jsonl
		err ag2-ask -c bad.yaml hello
		err ag2-ask -c bad.yaml --check
		out ag2-aggregate -m 'exec:cat >/dev/null; printf "%s" "$E"' working-memory <events.jsonl
		err ag2-aggregate -m "exec:cat >/dev/null; exit 3; : $E" working-memory <events.jsonl
		err ag2-aggregate --stream good -m exec:cat --template "no$E" working-memory
		err ag2-aggregate --stream good "$E"
		err ag2-aggregate --stream good "exec:exit 3; : $E"
		err ag2-aggregate -c bad.yaml --all
		json ag2-compact tail-window:3 <events.jsonl
		err ag2-compact "$E" <events.jsonl
		err ag2-compact "tail-window:$E" <events.jsonl
		none ag2-compact --strict tail-window:3 <torn.jsonl
		err ag2-compact "exec:exit 3; : $E" <events.jsonl
	END
}

# One script of all rows, a mark before each.
script_of_rows() {
	local n=0 where command
	while read -r where command; do
		n=$((n + 1))
		printf 'echo; echo "@@ %d"\n{ %s\n}%s\n' "$n" "$command" "$1"
	done
}

# part N FILE: what row N printed.
part() {
	awk -v n="$1" '/^@@ [0-9]+\r?$/ { at = $2 + 0; next } at == n' "$2"
}

# Nothing that a terminal acts on, or that no terminal of UTF-8 can show.
is_harmless() {
	! LC_ALL=C grep -aqP '[\x00-\x08\x0b-\x1f\x7f]|\xc2[\x80-\x9f]|\xd8\x9c|\xe2\x80[\x8e\x8f\xaa-\xae]|\xe2\x81[\xa6-\xa9]' "$1" &&
		iconv -f UTF-8 -t UTF-8 "$1" >/dev/null
}

@test "on a terminal nothing of it is acted on, whatever command prints it, and all of it is shown" {
	rows >table
	[ "$(wc -l <table)" -ge 120 ]
	script_of_rows '' <table >all.sh
	while read -r term; do
		TERM=$term NO_COLOR=1 script -qec 'stty cols 400; sh ./all.sh' /dev/null </dev/null >screen 2>&1 || true
		# the terminal's own: a CR before each newline, and the echo of script's end of input
		sed -e 's/\r*$//' -e 's/^\^D\x08\x08//' screen >screen.1
		n=0
		while read -r where command; do
			n=$((n + 1))
			part $n screen.1 >row
			is_harmless row || { echo "$term: acted on: $command"; cat -v row; } >>wrong
			# JSON shows the escape in its own way
			[ "$where" = none ] || [ "$where" = said ] || grep -qF -e '\x1b' -e '\u001b' row || { echo "$term: not shown: $command"; cat -v row; } >>wrong
		done <table
	done <<-'END'
		dumb
		xterm
	END
	[ ! -e wrong ] || fail "$(cat wrong)"
}

@test "in a pipe the bytes are themselves, and messages are still scrubbed" {
	rows >table
	script_of_rows ' 2>err; echo "@@ $n" >>errs; cat err >>errs' <table | sed 's/^echo; echo "@@ \([0-9]*\)"$/&; n=\1/' >all.sh
	sh ./all.sh >pipe </dev/null || true
	n=0
	while read -r where command; do
		n=$((n + 1))
		part $n pipe >row
		part $n errs >row.err
		is_harmless row.err || { echo "not scrubbed: $command"; cat -v row.err; } >>wrong
		case $where in
		out) grep -aqF "$B" row || { echo "not the bytes: $command"; cat -v row; } >>wrong ;;
		json) grep -aqF '\u001b' row || grep -aqF "$B" row || { echo "not there: $command"; cat -v row; } >>wrong ;;
		err) grep -qF '\x1b' row.err row || { echo "not said: $command"; cat -v row row.err; } >>wrong ;;
		esac
	done <table
	[ ! -e wrong ] || fail "$(cat wrong)"
}

@test "names and contents go through a pipe byte for byte" {
	ag2-store ls -R0 "/d$E" >got
	printf '%s/\0' "/d$E" >want.dir
	printf '%s\0' "$D" >want
	same want got
	printf 'tea %s\n' "$E" >want
	ag2-store cat "$D" >got
	same want got
	events >want
	ag2-store log cat good >got
	same want got
	ag2-store ls -1 "/d$E" >got
	printf '%s\n' "${D##*/}" >want
	same want got
}
