# ag2-ask as a whole turn: everything in the stream's log, and nothing half.

load helper
load scripted

setup() {
	clean_environment
	model_init
	export AG2_STORE=disk:$TMP/st
}

log_of() {
	ag2-store log cat --current "$1" >log
}

@test "a turn leaves the request and the response in the log of a new stream, named on stderr" {
	answer_text Hello
	run -0 --separate-stderr ag2-ask -s "$AG2_STORE" -m "$MODEL" Hi there
	output_is Hello
	id=$(ag2-store log ls)
	[ "$stderr" = "ag2-ask: stream $id" ] || fail "$stderr"
	log_of "$id"
	events_are log ModelRequest ModelResponse
	[ "$(jq -rs '.[0].data.parts[0].content' log)" = "Hi there" ]
	[ "$(jq -rs '.[1].data.message.content' log)" = Hello ]
}

@test "the next turn sees the one before" {
	answer_text one
	answer_text two
	ag2-ask --stream s -m "$MODEL" first
	run -0 ag2-ask --stream s -m "$MODEL" second
	output_is two
	log_of s
	events_are log ModelRequest ModelResponse ModelRequest ModelResponse
	head -n 3 log >want
	same want "$MODEL_DIR/sent.2"
}

@test "-C goes on with the stream last written to" {
	answer_text one
	answer_text two
	answer_text three
	ag2-ask --stream a -m "$MODEL" x
	ag2-ask --stream b -m "$MODEL" y
	run -0 --separate-stderr ag2-ask -C -m "$MODEL" z
	[ -z "$stderr" ] || fail "$stderr"
	log_of b
	events_are log ModelRequest ModelResponse ModelRequest ModelResponse
}

@test "-C where there is no stream is 66, a store that cannot be is an error, and the model is not asked" {
	run ag2-ask -C -m "$MODEL" x
	status_is 66
	has 'without -C one begins' "$output"
	ag2-store init >/dev/null
	run ag2-ask -C -m "$MODEL" x
	status_is 66
	has 'without -C one begins' "$output"
	: >file
	run ag2-ask -s disk:file -m "$MODEL" x
	[ "$status" -ne 0 ]
	[ "$(asked)" -eq 0 ]
}

@test "stdin is not read in a turn" {
	answer_text ok
	answer_text ok
	printf 'one\ntwo\n' | { ag2-ask --stream s -m "$MODEL" x >/dev/null; cat; } >rest
	printf 'one\ntwo\n' >want
	same want rest
}

@test "TEXT - is the text on stdin without its last newline" {
	answer_text ok
	printf 'a\n\nb\n' | ag2-ask --stream s -m "$MODEL" -
	log_of s
	[ "$(jq -cs '.[0].data.parts[0].content' log)" = '"a\n\nb"' ]
	run ag2-ask --stream s -m "$MODEL" - </dev/null
	status_is 65
}

@test "a model that fails leaves the request alone in the log, and -C asks it again" {
	answer_sh 'exit 3'
	answer_text Hello
	run ag2-ask --stream s -m "$MODEL" Hi
	status_is 69
	log_of s
	events_are log ModelRequest
	run -0 ag2-ask -C -m "$MODEL"
	output_is Hello
	log_of s
	events_are log ModelRequest ModelResponse
	run ag2-ask -C -m "$MODEL"
	status_is 1
	output_is "ag2-ask: there is nothing to ask: the last request is answered"
}

@test "without TEXT a stream that is not there is 66, a new one is a usage error" {
	answer_text ok
	ag2-ask --stream s -m "$MODEL" x
	run ag2-ask --stream t -m "$MODEL"
	status_is 66
	run ag2-ask -s "$AG2_STORE" -m "$MODEL"
	status_is 64
}

@test "Ctrl-C during an answer: the request is in the log, nothing half, the status is the signal's, and -C asks again" {
	answer_sh 'echo "half an"; : >started; n=0; while [ $n -lt 3000 ]; do n=$((n + 1)); sleep 0.01; done'
	answer_text "whole answer"
	set -m	# or the shell has it ignore SIGINT
	ag2-ask --stream s -m "$MODEL" Hi >out 2>err &
	pid=$!
	wait_for 20 grep -q half out
	kill -INT $pid
	status=0
	wait $pid || status=$?
	status_is 130
	log_of s
	events_are log ModelRequest
	run -0 ag2-ask -C -m "$MODEL"
	output_is "whole answer"
	log_of s
	events_are log ModelRequest ModelResponse
}

@test "an interrupted turn ends the model's command" {
	answer_sh 'echo $$ >pid; echo a; exec sleep 60'
	set -m
	ag2-ask --stream s -m "$MODEL" Hi >out 2>/dev/null &
	pid=$!
	wait_for 20 test -s pid
	kill -TERM $pid
	status=0
	wait $pid || status=$?
	status_is 143
	wait_for 20 not_running "$(cat pid)"
}

not_running() {
	! kill -0 "$1"
}

@test "a reader that goes away before the answer is complete: SIGPIPE, and the answer is not in the log" {
	answer_sh 'echo a; n=0; until [ -e gone ] || [ $n -gt 6000 ]; do n=$((n + 1)); sleep 0.02; done; echo b; sleep 0.5; echo c'
	run bash -c '{ ag2-ask --stream s -m "$1" x; echo $? >status; } | { head -c 1; exec <&-; : >gone; }' - "$MODEL"
	wait_for 20 test -s status
	[ "$(cat status)" -eq 141 ] || fail "status $(cat status)"
	log_of s
	events_are log ModelRequest
}

@test "a full standard output before the answer is complete: 74, and the answer is not in the log" {
	answer_sh 'echo a; sleep 0.3; echo b'
	run bash -c 'ag2-ask --stream s -m "$1" x >/dev/full' - "$MODEL"
	status_is 74
	log_of s
	events_are log ModelRequest
}

@test "with --no-stream a complete answer is in the log also when it cannot be printed" {
	answer_text a
	run bash -c 'ag2-ask --stream s --no-stream -m "$1" x >/dev/full' - "$MODEL"
	status_is 74
	log_of s
	events_are log ModelRequest ModelResponse
}

@test "kill -9 between a call and its result: the next turn sends an error result for it" {
	tool t 'echo $PPID >ppid; exec sleep 60'
	answer_calls c1 t '{}'
	answer_text "went on"
	ag2-ask --stream s -m "$MODEL" --tool ./t Hi >/dev/null 2>&1 &
	pid=$!
	wait_for 20 test -s ppid
	kill -9 $pid
	wait $pid || true
	log_of s
	events_are log ModelRequest ModelResponse ToolCallsEvent ToolCallEvent
	run -0 --separate-stderr ag2-ask -C -m "$MODEL" --tool ./t
	output_is "went on"
	[ "$(grep -c '"c1"' "$MODEL_DIR/sent.2")" -ge 2 ]
	[ "$(jq -rs '[.[] | select(.type | test("ToolResult|ToolError")) | .. | .parent_id? // empty] | unique | join(",")' "$MODEL_DIR/sent.2")" = c1 ]
	log_of s
	events_are log ModelRequest ModelResponse ToolCallsEvent ToolCallEvent ModelResponse
}

@test "kill -9 at any moment of a turn with tools: the log is whole lines, and -C comes to the answer" {
	tool t 'sleep 0.05; echo done'
	for i in $(seq 10); do
		model_init
		answer_sh 'cat '"$MODEL_DIR"'/calls; sleep 0.03'
		answer_calls c1 t '{}' c2 t '{}'
		mv "$MODEL_DIR/text.2" "$MODEL_DIR/calls"
		answer_text fine
		mv "$MODEL_DIR/answer.3" "$MODEL_DIR/answer.2"
		for again in 3 4 5; do cp "$MODEL_DIR/answer.2" "$MODEL_DIR/answer.$again"; done
		ag2-ask --stream "s$i" -m "$MODEL" --tool ./t Hi >/dev/null 2>&1 &
		pid=$!
		sleep "0.0$((i * 7 % 10))$i"
		kill -9 $pid 2>/dev/null || true
		wait $pid 2>/dev/null || true
		ag2-store exists "/log/s$i.jsonl" || continue
		log_of "s$i"
		jq -e .type log >/dev/null
		run ag2-ask --stream "s$i" -m "$MODEL" --tool ./t
		[ "$status" -eq 0 ] || [ "$status" -eq 1 ] || fail "status $status: $output"
		log_of "s$i"
		[ "$(types log | tail -n 1)" = ModelResponse ]
		[ "$(types log | grep -c ModelRequest)" -eq 1 ]
	done
}

@test "a second turn of the same stream is 75 at once; of another stream it runs; after the first it runs" {
	answer_sh ': >started; n=0; until [ -e go ] || [ $n -gt 6000 ]; do n=$((n + 1)); sleep 0.02; done; echo one'
	answer_text two
	answer_text three
	ag2-ask --stream s -m "$MODEL" x >first 2>&1 &
	pid=$!
	wait_for 20 test -e started
	run ag2-ask --stream s -m "$MODEL" y
	status_is 75
	has "another turn of stream 's' is running"
	run -0 ag2-ask --stream other -m "$MODEL" y
	: >go
	wait $pid
	[ "$(cat first)" = one ]
	run -0 ag2-ask --stream s -m "$MODEL" y
	log_of s
	events_are log ModelRequest ModelResponse ModelRequest ModelResponse
}

@test "the turn's lock is that of ag2-store lock, and log append does not wait for it" {
	answer_text ok
	run ag2-store lock /log/s.jsonl -- ag2-ask --stream s -m "$MODEL" x
	status_is 75
	answer_sh 'ag2-store log user s "in between" </dev/null; echo answered'
	model_init
	answer_sh 'ag2-store log alert s --severity warning --source w "in between"; echo answered'
	run -0 ag2-ask --stream s -m "$MODEL" x
	output_is answered
	log_of s
	events_are log ModelRequest ObserverAlert ModelResponse
}

@test "what a tool appends to the log is there on the next call of the same turn" {
	tool t 'ag2-store log alert "$AG2_STREAM" --severity warning --source w "look out"; echo done'
	answer_calls c1 t '{}'
	answer_text ok
	run -0 ag2-ask --stream s -m "$MODEL" --tool ./t x
	log_of s
	events_are log ModelRequest ModelResponse ToolCallsEvent ToolCallEvent ObserverAlert ToolResultEvent ToolResultsEvent ModelResponse
	has "look out" "$(cat "$MODEL_DIR/sent.2")"
}

@test "a FATAL alert halts through the alert policy: HaltEvent and HALTED are logged, status 3, and the next turn is free" {
	tool t 'ag2-store log alert "$AG2_STREAM" --severity fatal --source w "disk on fire"; echo done'
	printf 'model: "%s"\nassembly: [alert]\ntools: [./t]\n' "$MODEL" >a.yaml
	answer_calls c1 t '{}'
	answer_text "free again"
	run --separate-stderr ag2-ask -c a.yaml --stream s x
	status_is 3
	output_is "HALTED: FATAL: disk on fire"
	[ "$(asked)" -eq 1 ]
	log_of s
	events_are log ModelRequest ModelResponse ToolCallsEvent ToolCallEvent ObserverAlert ToolResultEvent ToolResultsEvent \
		HaltEvent ModelResponse
	run -0 ag2-ask -c a.yaml --stream s y
	output_is "free again"
}

@test "a HaltEvent that stands in the log behind the last response halts without a policy, once" {
	answer_text one
	answer_text two
	ag2-ask --stream s -m "$MODEL" x
	echo '{"type": "ag2.events.alert.HaltEvent", "data": {"created_at": 5.5, "reason": "by hand", "source": "m", "alerts": []}}' |
		ag2-store log append s
	run ag2-ask --stream s -m "$MODEL" y
	status_is 3
	output_is "HALTED: by hand"
	log_of s
	events_are log ModelRequest ModelResponse HaltEvent ModelRequest ModelResponse
	run -0 ag2-ask --stream s -m "$MODEL" z
	output_is two
}

log_failed() {
	status_is 74
	output_is "$1"
	has "log of stream 's' could not be written" "$stderr"
	events_are status EventLogFailed
}

@test "a log that may not be written: the answer is printed, EventLogFailed is told, 74" {
	answer_text one
	answer_text two
	ag2-ask --stream s -m "$MODEL" x
	chmod -R a-w st
	run --separate-stderr without_root bash -c 'ag2-ask --stream s -m "$1" --status-fd 3 y 3>status' - "$MODEL"
	chmod -R u+w st
	log_failed two
	log_of s
	events_are log ModelRequest ModelResponse
}

@test "so with one that becomes such while the model is asked; what was in it is asked again" {
	answer_text one
	cat >spoils <<-'E'
		#!/bin/sh
		cat >/dev/null
		chmod -R a-w st
		echo one
	E
	chmod +x spoils
	run --separate-stderr without_root bash -c 'ag2-ask --stream s -m exec:./spoils --status-fd 3 y 3>status'
	chmod -R u+w st
	log_failed one
	log_of s
	events_are log ModelRequest
	run -0 ag2-ask -C -m "$MODEL"
	log_of s
	events_are log ModelRequest ModelResponse
}

@test "a log that is full in the middle: the answer is printed, 74, and nothing half is in it" {
	answer_text one
	answer_text two
	ag2-ask --stream s -m "$MODEL" x
	log_of s
	cp log before
	run --separate-stderr bash -c 'ulimit -f 1; trap "" XFSZ; exec ag2-ask --stream s -m "$1" --status-fd 3 "$(printf "%5000s" y)" 3>status' - "$MODEL"
	status_is 74
	output_is two
	events_are status EventLogFailed
	log_of s
	same before log
}

@test "--events prints just what goes into the log" {
	tool t 'echo done'
	answer_calls -m hm c1 t '{}'
	answer_text ok
	ag2-ask --stream s -m "$MODEL" --tool ./t --events x >got
	log_of s
	same log got
	tool t 'ag2-store log alert "$AG2_STREAM" --severity fatal --source w "stop"; echo done'
	printf 'model: "%s"\nassembly: [alert]\ntools: [./t]\n' "$MODEL" >a.yaml
	answer_calls c2 t '{}'
	run -3 bash -c 'ag2-ask -c a.yaml --stream h --events x >got 2>/dev/null'
	log_of h
	grep -v ObserverAlert log >want || true
	events_are got ModelRequest ModelResponse ToolCallsEvent ToolCallEvent ToolResultEvent ToolResultsEvent HaltEvent ModelResponse
}

@test "the turn as a pipeline and the turn with -c leave the same log but for times" {
	tool t 'cat'
	printf 'prompt: Be brief.\nmodel: "%s"\nassembly: [working_memory, alert, sliding_window: 5]\ntools: [./t]\n' "$MODEL" >a.yaml
	echo remember | ag2-store write /memory/working.md
	for turn in 1 2 3; do
		model_init
		for way in a b; do
			answer_calls -m "thinking $turn" "c$turn" t "{\"n\": $turn}"
			{
				echo '{"type": "ag2.events.types.UsageEvent", "data": {"created_at": 1.5, "kind": "model_call", "usage": {"__dataclass__": "ag2.events.types.Usage", "data": {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3}}}}'
				echo '{"type": "ag2.events.types.ModelResponse", "data": {"created_at": 2.5, "message": {"__event__": "ag2.events.types.ModelMessage", "content": "Hello"}}}'
			} | answer_file
		done
		ag2-ask -c a.yaml --stream one "Question $turn"
		ag2-store log user two "Question $turn"
		ag2-store log cat --current two |
			ag2-assemble -c a.yaml |
			ag2-ask -m "$MODEL" --tool ./t --events |
			ag2-store log append two
		same "$MODEL_DIR/sent.1" "$MODEL_DIR/sent.3" 2>/dev/null ||
			diff <(timeless "$MODEL_DIR/sent.1") <(timeless "$MODEL_DIR/sent.3")
	done
	ag2-store log cat --current one >log1
	ag2-store log cat --current two >log2
	[ "$(wc -l <log1)" -eq 24 ]
	diff <(timeless log1) <(timeless log2)
}

@test "a halted turn as a pipeline and with -c leave the same log but for times" {
	printf 'model: "%s"\nassembly: [alert]\n' "$MODEL" >a.yaml
	for s in one two; do
		ag2-store log user "$s" x
		ag2-store log alert "$s" --severity fatal --source w "stop"
	done
	run ag2-ask -c a.yaml --stream one
	status_is 3
	ag2-store log cat --current two | ag2-assemble alert | { ag2-ask -m "$MODEL" --events || echo $? >status; } |
		ag2-store log append two
	[ "$(cat status)" -eq 3 ]
	ag2-store log cat --current one >log1
	ag2-store log cat --current two >log2
	events_are log1 ModelRequest ObserverAlert HaltEvent ModelResponse
	diff <(timeless log1) <(timeless log2)
	[ "$(asked)" -eq 0 ]
}

@test "lines of the log that are broken only in their content stop no turn, nor do those that belonged to them" {
	local as
	mkdir -p st/log
	for as in '' --as-ag2; do
		answer_text again
		{
			echo '{"type": "ModelRequest", "data": {"parts": [{"__event__": "TextInput", "content": "one"}]}}'
			echo '{"type": "ModelResponse", "data": {"message": {"content": "no such \q escape"}}}'
			echo '{"type": "ModelResponse", "data": {"tool_calls": {"calls": [{"id": "c", "name": "f", "arguments": "{}"}]}, "x": 01}}'
		} >st/log/s.jsonl
		# shellcheck disable=SC2086
		run -0 --separate-stderr ag2-ask $as --stream s -n -m openai:x two
		[ "$(jq -c '[.messages[].content]' <<<"$output")" = '["one","two"]' ] || fail "$output"
		[ "$stderr" = "ag2-ask: /log/s.jsonl:2: byte 69: no such escape" ] || fail "$stderr"
		# shellcheck disable=SC2086
		run -0 ag2-ask $as --stream s -m "$MODEL" two
	done
}

@test "a torn last line of the log stops no turn" {
	answer_text one
	answer_text two
	ag2-ask --stream s -m "$MODEL" x
	printf '{"type": "ag2.events.input_ev' >>st/log/s.jsonl
	run -0 ag2-ask --stream s -m "$MODEL" y
	has two
	log_of s
	events_are log ModelRequest ModelResponse ModelRequest ModelResponse
	[ -e st/log/s.torn-1 ]
}

@test "write_event_log false: nothing under /log, the turn still runs, --stream and -C are 78" {
	tool t 'echo done'
	printf 'model: "%s"\nknowledge: {store: "disk:%s/st", write_event_log: false}\ntools: [./t]\n' "$MODEL" "$TMP" >a.yaml
	answer_calls c1 t '{}'
	answer_text ok
	run -0 --separate-stderr ag2-ask -c a.yaml x
	output_is ok
	[ -z "$stderr" ] || fail "$stderr"
	events_are "$MODEL_DIR/sent.2" ModelRequest ModelResponse ToolCallsEvent ToolCallEvent ToolResultEvent ToolResultsEvent
	[ -z "$(ag2-store log ls)" ]
	run ag2-ask -c a.yaml --stream s x
	status_is 78
	run ag2-ask -c a.yaml -C x
	status_is 78
}

@test "with knowledge in the file a new store is bootstrapped once, without it nothing but the log is written" {
	printf 'name: scribe\nmodel: "%s"\nknowledge: {store: "disk:k"}\n' "$MODEL" >a.yaml
	printf 'name: scribe\nmodel: "%s"\n' "$MODEL" >b.yaml
	answer_text 1
	answer_text 2
	answer_text 3
	ag2-ask -c a.yaml --stream s x
	[ "$(ag2-store -s disk:k cat /.initialized)" = scribe ]
	ag2-store -s disk:k exists /SKILL.md
	ag2-store -s disk:k rm /SKILL.md
	ag2-ask -c a.yaml --stream s x
	run ag2-store -s disk:k exists /SKILL.md
	status_is 1
	ag2-ask -c b.yaml -s disk:n --stream s x
	[ "$(ag2-store -s disk:n ls)" = log/ ]
}

@test "a bootstrap of one's own runs once, with the store in its environment; one that fails stops the turn before the request" {
	printf 'name: scribe\nmodel: "%s"\nknowledge: {store: "disk:k", bootstrap: "exec:sh seed.sh"}\n' "$MODEL" >a.yaml
	echo 'echo x >>ran; echo "$AG2_NAME" | ag2-store write /seed; test -e good' >seed.sh
	answer_text 1
	answer_text 2
	run ag2-ask -c a.yaml --stream s x
	status_is 69
	has bootstrap
	[ "$(asked)" -eq 0 ]
	: >good
	ag2-ask -c a.yaml --stream s x
	ag2-ask -c a.yaml --stream s y
	[ "$(wc -l <ran)" -eq 2 ]
	[ "$(ag2-store -s disk:k cat /seed)" = scribe ]
	[ "$(ag2-store -s disk:k cat /.initialized)" = scribe ]
}

@test "bootstrap none writes nothing but the log" {
	printf 'model: "%s"\nknowledge: {store: "disk:k", bootstrap: none}\n' "$MODEL" >a.yaml
	answer_text 1
	ag2-ask -c a.yaml --stream s x
	[ "$(ag2-store -s disk:k ls)" = log/ ]
}

@test "the policies of the file choose what the model sees, its prompt first" {
	printf 'prompt: Be brief.\nmodel: "%s"\nassembly: [working_memory, sliding_window: {max_events: 1}, "inject:echo injected"]\n' "$MODEL" >a.yaml
	printf 'I know.' | ag2-store write /memory/working.md
	answer_text 1
	answer_text 2
	ag2-ask -c a.yaml --stream s x
	ag2-ask -c a.yaml --stream s y
	[ "$(jq -rs '[.[] | select(.type == "Prompt") | .data.content | rtrimstr("\n")] | join("|")' "$MODEL_DIR/sent.2")" = $'Be brief.|## Working Memory\n\nI know.|injected' ]
	[ "$(grep -vc '"Prompt"' "$MODEL_DIR/sent.2")" -eq 1 ]
}

@test "policies in a harmful order are warned of, and the turn goes on" {
	printf 'model: "%s"\nassembly: [sliding_window: 5, alert]\n' "$MODEL" >a.yaml
	answer_text ok
	run -0 --separate-stderr ag2-ask -c a.yaml --stream s x
	output_is ok
	has "sliding_window (policy 1)" "$stderr"
}

@test "the parts of an agent know its store, stream, name, file and model" {
	printf 'name: scribe\nmodel: "%s"\nassembly: ["inject:env | grep ^AG2_ | sort >inject.env"]\ntools: [./t]\n' "$MODEL" >a.yaml
	tool t 'env | grep ^AG2_ | sort >tool.env'
	answer_calls c1 t '{}'
	answer_sh 'env | grep ^AG2_ | sort >model.env; echo ok'
	run -0 ag2-ask -c a.yaml --stream s x
	for who in inject tool model; do
		for want in "AG2_STORE=disk:$TMP/st" AG2_STREAM=s AG2_NAME=scribe "AG2_CONFIG=$TMP/a.yaml" "AG2_MODEL=$MODEL"; do
			grep -qFx "$want" $who.env || fail "$who: no $want in:" "$(cat $who.env)"
		done
	done
}

@test "AG2_NOW gives the times of new events" {
	answer_text ok
	AG2_NOW=1780000000.5+1 ag2-ask --stream s -m "$MODEL" x
	log_of s
	[ "$(jq -s '.[0].data.parts[0].created_at' log)" = 1780000000.5 ]
	[ "$(jq -s '.[0].data.created_at' log)" = 1780000001.5 ]
}

@test "-n prints a body, writes nothing and asks no one" {
	answer_text one
	ag2-ask --stream s -m "$MODEL" x
	cp -r st before
	run -0 ag2-ask --stream s -m openai:gpt-5 -n y
	[ "$(jq -r '.messages[-1].content' <<<"$output")" = y ]
	[ "$(jq -r .model <<<"$output")" = gpt-5 ]
	diff -r st before
	run -0 ag2-ask -s disk:nowhere -m openai:gpt-5 -n y
	[ ! -e nowhere ]
	[ "$(asked)" -eq 1 ]
}
