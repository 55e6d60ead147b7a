#!/usr/bin/env bats
# Memory, alerts and one's own policies beyond AG2.
load helper
load assemble

put() {
	ag2-store -s disk:store write "$1"
}

prepare_store() {
	mkdir -p store
}

@test "of ten episodes the newest three are shown, oldest first" {
	prepare_store
	for i in 01 02 03 04 05 06 07 08 09 10; do echo "day $i" | put /memory/conversations/202601$i.md; done
	U a | ag2-assemble -s disk:store episodic-memory:3,transparent=false >out
	jq -e -s '.[0].data.content == "## Past Conversations\n\nday 08\n\n\n---\n\nday 09\n\n\n---\n\nday 10\n"' out
	jq -e -s 'length == 2' out
}

@test "directories, dot files and empty files take no episode slot, but with AG2's rules they do" {
	prepare_store
	echo -n one | put /memory/conversations/a.md
	echo -n two | put /memory/conversations/b.md
	echo -n tmp | put /memory/conversations/.tmp
	: | put /memory/conversations/y.md
	echo -n deep | put /memory/conversations/z/deep.md
	U a | shapes "P(## Past Conversations  one  ---  two) U(a)" -s disk:store episodic-memory:2,transparent=false
	U a | shapes "U(a)" -s disk:store --as-ag2 episodic-memory:2,transparent=false
}

@test "a store that is not there is an error, a missing file in it is no memory" {
	U a >in
	run --separate-stderr ag2-assemble -s disk:nowhere working-memory <in
	status_is 66
	prepare_store
	shapes "U(a)" -s disk:store working-memory episodic-memory <in
}

@test "prompts come first, and in the order of the policies behind those that were there" {
	prepare_store
	echo -n memory | put /memory/working.md
	{ echo '{"type": "Prompt", "data": {"content": "came in"}}'; U a; AL warning s look; } >in
	ag2-assemble -s disk:store --prompt system alert working-memory <in | jq -r 'if .type == "Prompt" then .data.source // .data.content else .type end' >got
	printf '%s\n' system 'came in' alert working_memory ModelRequest ObserverAlert >want
	same got want
}

@test "assemblers chain" {
	prepare_store
	echo -n memory | put /memory/working.md
	{ U a; A b; U c; AL warning s look; } >in
	ag2-assemble -s disk:store working-memory alert sliding-window:2 <in >one
	ag2-assemble -s disk:store working-memory <in | ag2-assemble alert | ag2-assemble sliding-window:2 >three
	same three one
}

alerts() {
	ag2-assemble "$@" | shape
}

@test "an alert is shown until a request or results and then a response have followed it" {
	first='P([OBSERVER MONITORING ALERTS]'
	{ U a; AL warning s m; } >in
	has "$first" "$(alerts alert <in)"
	A b >>in
	has "$first" "$(alerts alert <in)"
	U c >>in
	has "$first" "$(alerts alert <in)"
	A d >>in
	hasnt "$first" "$(alerts alert <in)"
	has "$first" "$(alerts alert:delivered=none <in)"
	{ U a; C c1; AL warning s m; R c1=x; A b; } >in
	hasnt "$first" "$(alerts alert <in)"
}

@test "equal alerts are one, and a repeat of a delivered one is dropped unless it is fatal" {
	{ AL info s m; AL info s m; AL info s n; } >in
	[ "$(ag2-assemble alert <in | jq -r 'select(.type == "Prompt").data.content' | grep -c '(s)')" -eq 2 ]
	{ AL info s m; AL fatal s f; U a; A b; AL info s m; AL fatal s f; } >in
	ag2-assemble alert <in >out
	[ "$(jq -r 'select(.type == "Prompt").data.content' out)" = '[FATAL ALERT] (s): f. Execution halting.' ]
	[ "$(jq -r 'select(.type | endswith("HaltEvent")).data.reason' out)" = 'FATAL: f' ]
	hasnt FATAL "$(alerts --as-ag2 alert <in)"
}

@test "a plain severity and the enum are the same alert, but not for AG2" {
	{ AL warning s m; AL warning s m | sed 's/{"__enum__": "Severity", "value": "warning"}/"warning"/'; } >in
	[ "$(ag2-assemble alert <in | jq -r 'select(.type == "Prompt").data.content' | grep -c WARNING)" -eq 1 ]
	[ "$(ag2-assemble --as-ag2 alert <in | jq -r 'select(.type == "Prompt").data.content' | grep -c WARNING)" -eq 2 ]
}

@test "a HaltEvent that lists a fatal alert delivered it, and comes last whatever trims" {
	{ U a; AL fatal s f; } >in
	AG2_NOW=5 ag2-assemble alert conversation sliding-window:1 <in >out
	tail -n 1 out | jq -e '.type | endswith("HaltEvent")'
	{ cat in; tail -n 1 out; } >in2
	hasnt 'P([FATAL' "$(alerts alert <in2)"
	AL fatal s f >>in2
	has 'P([FATAL' "$(alerts alert <in2)"
}

@test "a HaltEvent delivers the alerts that it lists, and no others" {
	{ AL warning a W; AL fatal zz z; U q; } >in
	echo '{"type": "HaltEvent", "data": {"reason": "FATAL: z", "source": "zz", "alerts": [{"__event__": "ObserverAlert", "source": "zz", "severity": {"__enum__": "Severity", "value": "fatal"}, "message": "z", "data": {}}]}}' >>in
	for how in "" --as-ag2; do
		ag2-assemble $how alert <in >out
		has 'WARNING] (a): W' "$(head -n 1 out)"
		hasnt FATAL "$(head -n 1 out)"
		[ "$(grep -c '"Prompt"' out)" -eq 1 ]
		A r | cat in - | ag2-assemble $how alert >out
		[ "$(grep -c '"Prompt"' out)" -eq 0 ] || fail "delivered, and shown again: $(head -n 1 out)"
	done
}

@test "inject: adds what the command prints, given the events" {
	{ U a; A b; } >in
	shapes "P(2) U(a) A(b)" 'inject:wc -l | tr -d " "' <in
	shapes "U(a) A(b)" 'inject:true' <in
	shapes "P(a:b,c=d) U(a) A(b)" 'inject:echo a:b,c=d' <in
}

@test "inject: sees the events as they are at its place, and no prompts" {
	{ U a; A b; U c; } >in
	ag2-assemble --prompt sys sliding-window:1 'inject:cat' <in >out
	jq -r 'select(.data.source == "inject").data.content' out >got
	U c | cmp - got
}

@test "exec: is a filter over prompts and events" {
	{ U a; A b; U c; } >in
	shapes "P(SYS) U(a) A(b) U(c)" --prompt sys 'exec:sed "s/\"sys\"/\"SYS\"/"' <in
	shapes "U(c)" 'exec:tail -n 1' <in
	shapes "U(c)" --prompt sys 'exec:tail -n 1' <in
}

@test "a command need not read all its input" {
	jq -cn 'range(20000) | {type: "ModelRequest", data: {parts: [{content: "some text \(.)"}]}}' >in
	shapes 'P(early) U(some text 19999)' 'inject:echo early' sliding-window:1 <in
	shapes 'U(some text 0)' 'exec:head -n 1' <in
}

@test "what a command says on stderr is seen as it says it, and its last line at its end" {
	U a >in
	printf 'one\ntwo\nthree' >want
	ag2-assemble 'exec:printf "one\ntwo\n" >&2; printf three >&2; cat' <in 2>got >/dev/null
	same want got
	{ seq 1 20000; head -c 10000 /dev/zero | tr '\0' x; } >want
	ag2-assemble "inject:cat '$TMP/want' >&2" <in 2>got >/dev/null
	same want got
	mkfifo go
	ag2-assemble 'exec:echo first >&2; echo second >&2; cat go' <in 2>got >/dev/null &
	wait_for 10 grep -q first got
	: >go
	wait $!
	grep -q second got
}

@test "a command that fails is an error that names it, and nothing comes out" {
	U a >in
	for policy in 'inject:echo x; exit 3' 'exec:cat; exit 3'; do
		run --separate-stderr ag2-assemble --prompt sys "$policy" <in
		status_is 69
		output_is ''
		has "exited with status 3" "$stderr"
	done
	for policy in inject:./nowhere exec:./nowhere; do
		run --separate-stderr ag2-assemble "$policy" <in
		status_is 69
		[ "${#stderr_lines[@]}" -eq 1 ] || fail "$stderr"
		has "ag2-assemble: $policy: exited with status 127: " "$stderr"
		has "not found" "$stderr"
	done
	run --separate-stderr ag2-assemble 'exec:echo nonsense' <in
	status_is 65
	has 'exec:echo nonsense:1: byte' "$stderr"
}

@test "commands have the store, the stream and the agent's name in their environment" {
	prepare_store
	U a | ag2-store -s disk:store log append s1
	printf 'name: helper\nknowledge: {store: "disk:%s/store"}\nassembly:\n  - "inject:echo $AG2_NAME $AG2_STREAM ${AG2_STORE##*/} $AG2_CONFIG; pwd"\n' "$PWD" >agent.yaml
	chmod 600 agent.yaml
	ag2-assemble -c agent.yaml --stream s1 | jq -r 'select(.type == "Prompt").data.content' >got
	printf '%s\n' "helper s1 store agent.yaml" "$PWD" >want
	same got want
}
