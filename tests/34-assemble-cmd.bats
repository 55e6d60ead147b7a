#!/usr/bin/env bats
# The command around the policies: options, input that is odd, output that fails, streams.
load helper
load assemble

large() {
	jq -cn --argjson n "$1" 'range($n) | {type: "ModelRequest", data: {parts: [{content: "question \(.)"}]}},
		{type: "ModelResponse", data: {message: {content: ("answer " * 100)}}}'
}

@test "a mistake in the command line is status 64 and a line that points to --help" {
	for args in '--nonsense' 'no-such-policy' 'sliding-window' 'sliding-window:x' 'conversation:3' '--skip-bad --strict' \
		'sliding-window:-1' 'token-budget:5,chars_per_token=0' '--step=3' '--layout=cash' '--layout' \
		'sliding-window:5,step=6' 'exec:'; do
		run --separate-stderr ag2-assemble $args </dev/null
		status_is 64
		output_is ''
		has 'ag2-assemble: ' "$stderr"
	done
	run --separate-stderr ag2-assemble slidng-window:3 </dev/null
	has "did you mean 'sliding-window'" "$stderr"
}

@test "--help lists every policy and option, --version the version" {
	run ag2-assemble --help
	status_is 0
	for word in working-memory episodic-memory alert conversation sliding-window token-budget inject exec --stream --check --as-ag2; do
		has "$word"
	done
	run ag2-assemble --version
	status_is 0
	has ag2-assemble
}

@test "empty input gives empty output" {
	for args in '' conversation sliding-window:3 token-budget:3 alert '--as-ag2 sliding-window:0,transparent=true' 'exec:cat'; do
		run --separate-stderr ag2-assemble $args </dev/null
		status_is 0
		output_is ''
	done
	printf '\n \r\n\n' | ag2-assemble | cmp - /dev/null
}

@test "a bad line is named and left out, and the status is 65 at the end" {
	{ U a; printf '%s' "$(A b | cut -c 1-20)"; echo; A c; } >in
	run --separate-stderr ag2-assemble <in
	status_is 65
	[ "$(echo "$output" | shape)" = "U(a) A(c)" ]
	case $stderr in
	'ag2-assemble: stdin:2: byte '*) ;;
	*) fail "$stderr" ;;
	esac
	run --separate-stderr ag2-assemble --skip-bad <in
	status_is 0
	has 'stdin:2:' "$stderr"
	run --separate-stderr ag2-assemble --strict <in
	status_is 65
	[ "$(echo "$output" | shape)" = "U(a)" ]
}

@test "garbage, NULs and invalid UTF-8 are bad lines, never a crash" {
	{ U a; head -c 5000 /dev/zero; echo; printf '{"type": "ModelRequest", "data": {"x": "\xff"}}\n'; echo '[1]'; echo '"x"'; A b; } >in
	run --separate-stderr ag2-assemble conversation <in
	status_is 65
	[ "$(echo "$output" | shape)" = "U(a) A(b)" ]
	[ "$(echo "$stderr" | grep -c '^ag2-assemble: stdin:[0-9]*: byte')" -eq 4 ]
	head -c 300000 /dev/urandom >noise
	run --separate-stderr ag2-assemble sliding-window:5 <noise
	status_is 65
}

@test "content that is no JSON where it is read is a bad line, where it only passes it is not" {
	{ U a; echo '{"type": "ModelResponse", "data": {"message": {"content": nonsense}}}'; echo '{"type": "UsageEvent", "data": {"x": nonsense}}'; A b; } >in
	for args in '' 'sliding-window:5' 'token-budget:100' 'alert sliding-window:2'; do
		run --separate-stderr ag2-assemble $args <in
		status_is 65
		has 'stdin:2: byte' "$stderr"
		[ "$(echo "$stderr" | wc -l)" -eq 1 ]
	done
	run --separate-stderr ag2-assemble --as-ag2 conversation <in
	status_is 0
}

@test "a BOM is accepted, and a last line without its newline" {
	{ printf '\xef\xbb\xbf'; U a; A b | tr -d '\n'; } >in
	{ U a; A b; } >want
	ag2-assemble <in >out
	same out want
}

@test "a Prompt line behind an event is a bad line" {
	{ U a; echo '{"type": "Prompt", "data": {"content": "late"}}'; A b; } >in
	run --separate-stderr ag2-assemble <in
	status_is 65
	[ "$(echo "$output" | shape)" = "U(a) A(b)" ]
	has 'stdin:2:' "$stderr"
}

@test "Prompt lines pass byte for byte, and those without content are bad" {
	printf '{ "type":"Prompt","data":{"zz":1, "content":"x\\u00e9"}}\n' >in
	ag2-assemble sliding-window:1 <in >out
	same out in
	run --separate-stderr ag2-assemble <<<'{"type": "Prompt", "data": {}}'
	status_is 65
}

@test "a line of 70 MB is a bad line, in bounded memory" {
	{ U a; head -c 70000000 /dev/zero | tr '\0' x; echo; A b; } >in
	case $BIN in
	*asan*) limit=unlimited ;;
	*) limit=200000 ;;
	esac
	run --separate-stderr bash -c "ulimit -v $limit; ag2-assemble sliding-window:3 <in"
	status_is 65
	[ "$(echo "$output" | shape)" = "U(a) A(b)" ]
	has 'longer than 64 MiB' "$stderr"
}

@test "a large stream passes in little memory, also where it has to wait for a prompt" {
	large 60000 >in
	case $BIN in
	*asan*) limit=unlimited ;;
	*) limit=40000 ;;
	esac
	for policy in '' conversation alert 'inject:cat >/dev/null' 'exec:cat'; do
		cat in | (
			ulimit -v $limit
			exec ag2-assemble ${policy:+"$policy"}
		) >out
		same out in
	done
}

@test "a line goes out as soon as it is ready" {
	mkfifo to from
	ag2-assemble conversation <to >from &
	pid=$!
	exec 5>to 6<from
	U first >&5
	read -r -t 20 line <&6 || fail "nothing came out"
	[ "$(echo "$line" | shape)" = "U(first)" ]
	C c1 >&5
	read -r -t 20 line <&6 || fail "the call did not come out"
	exec 5>&- 6<&-
	wait $pid
}

@test "a full disk is status 74 with a message, a closed standard output too" {
	U a >in
	run --separate-stderr bash -c 'ag2-assemble <in >/dev/full'
	status_is 74
	has 'cannot write standard output' "$stderr"
	run --separate-stderr bash -c 'ag2-assemble <in >&-'
	status_is 74
	large 3000 >in
	run --separate-stderr bash -c 'ag2-assemble sliding-window:5000 <in >/dev/full'
	status_is 74
}

@test "a closed pipe ends it quietly" {
	large 20000 >in
	run --separate-stderr bash -c 'ag2-assemble <in | head -n 1 >/dev/null; exit ${PIPESTATUS[0]}'
	status_is 141
	[ -z "$stderr" ]
}

@test "the same input and options give the same bytes" {
	{ U a; C c1; U b; A ""; R zz=1; AL fatal s f; } >in
	AG2_NOW=7 ag2-assemble alert sliding-window:9 <in >one
	AG2_NOW=7 ag2-assemble alert sliding-window:9 <in >two
	same one two
	LC_ALL=C AG2_NOW=7 ag2-assemble alert sliding-window:9 <in >three
	same one three
}

@test "--check names each pair out of order with its places, reads nothing more, and is status 1" {
	run --separate-stderr ag2-assemble --check sliding-window:5 alert token-budget:9 working-memory </dev/null
	status_is 1
	output_is ''
	[ "$(echo "$stderr" | wc -l)" -eq 3 ]
	has 'policy 1 (sliding_window) trims before policy 2 (alert)' "$stderr"
	has 'policy 1 (sliding_window) trims before policy 4 (working_memory)' "$stderr"
	has 'policy 3 (token_budget) trims before policy 4 (working_memory)' "$stderr"
	run --separate-stderr ag2-assemble --check working-memory alert sliding-window:5 </dev/null
	status_is 0
	[ -z "$stderr" ]
}

@test "--check treats bad lines as the work itself does" {
	printf 'garbage\n{"type": "ModelRequest", "data": {}}\n' >in
	run --separate-stderr ag2-assemble --check sliding-window:5 <in
	[ "$status" -eq 65 ]
	[[ $stderr = "ag2-assemble: stdin:1: "* ]] || fail "$stderr"
	run --separate-stderr ag2-assemble --check --strict sliding-window:5 <in
	[ "$status" -eq 65 ]
	run --separate-stderr ag2-assemble --check --skip-bad sliding-window:5 <in
	[ "$status" -eq 0 ]
	[[ $stderr = "ag2-assemble: stdin:1: "* ]] || fail "$stderr"
}

@test "--check tells of alerts that no policy delivers" {
	{ U a; AL warning s m; } >in
	run --separate-stderr ag2-assemble --check sliding-window:5 <in
	status_is 1
	has 'no alert policy' "$stderr"
	run --separate-stderr ag2-assemble --check alert sliding-window:5 <in
	status_is 0
	mkdir store
	ag2-store -s disk:store log append s1 <in
	run --separate-stderr ag2-assemble -s disk:store --stream s1 --check sliding-window:5
	status_is 1
}

agent() {
	printf '%s\n' 'name: a' 'prompt: from the file' 'knowledge: {store: "disk:store"}' 'assembly:' \
		'  - working_memory' '  - sliding_window: {max_events: 2}' >agent.yaml
	chmod 600 agent.yaml
	mkdir -p store
	echo -n memory | ag2-store -s disk:store write /memory/working.md
}

@test "-c gives the assembly, the store and the prompt; the command line goes before each" {
	agent
	{ U a; A b; U c; } >in
	shapes 'P(from the file) P(## Working Memory  memory) A(b) U(c)' -c agent.yaml <in
	shapes 'P(mine) P(## Working Memory  memory) A(b) U(c)' -c agent.yaml --prompt mine <in
	shapes 'P(from the file) U(c)' -c agent.yaml sliding-window:1 <in
	mkdir other
	shapes 'P(from the file) A(b) U(c)' -c agent.yaml -s disk:other <in
	run --separate-stderr ag2-assemble -c nowhere.yaml </dev/null
	status_is 66
	run --separate-stderr ag2-assemble -c agent.yaml --check </dev/null
	status_is 0
}

@test "--stream reads the current log of a stream, @last the stream last written" {
	mkdir store
	{ U a; A b; } | ag2-store -s disk:store log append s1
	{ U c; A d; } | ag2-store -s disk:store log append s2
	shapes 'U(a) A(b)' -s disk:store --stream s1 </dev/null
	shapes 'U(c) A(d)' -s disk:store --stream @last </dev/null
	AG2_STORE=disk:store shapes 'A(b)' --as-ag2 --stream s1 sliding-window:1 </dev/null
	run --separate-stderr ag2-assemble -s disk:store --stream nothing
	status_is 66
	has "there is no stream 'nothing'" "$stderr"
	run --separate-stderr ag2-assemble -s disk:store --stream ../x
	[ "$status" -ne 0 ]
	run --separate-stderr ag2-assemble -s disk:nowhere --stream s1
	status_is 66
	[ ! -e nowhere ]
}

@test "a torn line in a store's log is warned about once and is no failure" {
	mkdir -p store/log
	{ U a; echo '{"type": "Mod'; echo '{"ty'; A b; printf '{"type": "ModelR'; } >store/log/s1.jsonl
	run --separate-stderr ag2-assemble -s disk:store --stream s1
	status_is 0
	[ "$(echo "$output" | shape)" = "U(a) A(b)" ]
	[ "$(echo "$stderr" | wc -l)" -eq 1 ]
	has '/log/s1.jsonl:2: byte' "$stderr"
	run --separate-stderr ag2-assemble -s disk:store --stream s1 --strict
	status_is 65
}

@test "a log read from its end gives what all of it gives, on each kind of store" {
	{ S before; large 3000; for i in 1 2 3; do U q$i; C c$i; c c$i; r c$i=x; R c$i=x; usage; A a$i; halt h$i; done; U last; } >in
	for store in disk:store sqlite:store.db; do
		mkdir -p store
		ag2-store -s "$store" log append s1 <in
		for window in sliding-window:0 sliding-window:4 sliding-window:11 sliding-window:5000 token-budget:40 token-budget:9999; do
			ag2-assemble -s "$store" --stream s1 $window >got
			ag2-assemble $window <in >want
			same got want
			ag2-assemble -s "$store" --stream s1 --as-ag2 conversation $window >got
			ag2-assemble --as-ag2 conversation $window <in >want
			same got want
		done
	done
}

@test "a window over a log reads its end, not all of it" {
	case $BIN in *asan*) skip "not under the sanitizers" ;; esac
	mkdir -p store/log
	large 20000 >store/log/s1.jsonl
	strace -f -e trace=read,pread64 -o trace ag2-assemble -s disk:store --stream s1 sliding-window:20 >/dev/null
	[ "$(awk '/pread64\(.*s1|pread64/ { n += $NF } END { print n }' trace)" -lt 400000 ]
}
