#!/usr/bin/env bats
# ag2-compact: what stays, what goes, summaries, failures, others at work meanwhile, undo.

load helper
load redis

setup() {
	clean_environment
	store=disk:$TMP/store
	log=$TMP/store/log/s.jsonl
}

teardown() {
	redis_stop
}

# ---- histories ----

# U, A, S: a request, an answer, a summary. C IDS: a response that calls. R ID: a result.
U() { printf '{"type": "ag2.events.input_events.ModelRequest", "data": {"created_at": 1.0, "parts": [{"__event__": "ag2.events.input_events.TextInput", "content": "%s"}]}}\n' "$1"; }
A() { printf '{"type": "ag2.events.types.ModelResponse", "data": {"created_at": 1.0, "tool_calls": {"__event__": "ag2.events.tool_events.ToolCallsEvent", "calls": []}, "message": {"__event__": "ag2.events.types.ModelMessage", "content": "%s"}}}\n' "$1"; }
S() { printf '{"type": "ag2.compact.CompactionSummary", "data": {"created_at": 1.0, "summary": "%s", "event_count": 3}}\n' "$1"; }
C() {
	local id calls=
	for id; do
		calls="$calls${calls:+, }{\"__event__\": \"ag2.events.tool_events.ToolCallEvent\", \"id\": \"$id\", \"name\": \"find\", \"arguments\": \"{\\\"q\\\": \\\"arg-$id\\\"}\"}"
	done
	printf '{"type": "ag2.events.types.ModelResponse", "data": {"tool_calls": {"__event__": "ag2.events.tool_events.ToolCallsEvent", "calls": [%s]}, "message": null}}\n' "$calls"
}
R() {
	printf '{"type": "ag2.events.tool_events.ToolResultsEvent", "data": {"results": [{"__event__": "ag2.events.tool_events.ToolResultEvent", "parent_id": "%s", "name": "find", "result": {"__dataclass__": "ag2.events.tool_events.ToolResult", "data": {"parts": [{"__event__": "ag2.events.input_events.TextInput", "content": "result-%s"}], "final": false, "metadata": {}}}}]}}\n' "$1" "$1"
}

# chat N [FIRST]: N requests and answers.
chat() {
	local i
	for i in $(seq "${2:-1}" $((${2:-1} + $1 - 1))); do
		U "question number $i"
		A "the answer to question number $i"
	done
}

fill() {
	ag2-store -s "$store" log append s
}

compact() {
	ag2-compact -s "$store" --stream s -i "$@"
}

# The full history has each line of the file once, and nothing else but summaries and usage.
all_there() {
	ag2-store -s "$store" log cat s | grep -v 'CompactionSummary\|UsageEvent' | sort >got
	grep -v CompactionSummary "$1" | sort >want
	same want got
}

summaries() {
	grep -c CompactionSummary "$log" || true
}

types() {
	jq -r '.type | split(".") | last' "$1" | tr '\n' ' '
}

# model TEXT: answers so. Keeps what it was sent in prompt-1, prompt-2, ...
model() {
	printf '%s' "$1" >reply
	cat >model.sh <<'X'
n=1
while ! mkdir "call-$n" 2>/dev/null; do n=$((n + 1)); done
cat >"prompt-$n"
cat reply
X
	model="exec:cd $TMP && sh model.sh"
}

calls() {
	find . -maxdepth 1 -name 'call-*' | wc -l
}

# ---- filter ----

@test "a filter prints the lines that stay as they came" {
	{ chat 5; printf '  \n{"type":"X","data":{"z":1e2,"a":[ ]}}\r\n'; } >in
	ag2-compact tail-window:2 <in >out
	grep -v "^ *$" in | tail -n 2 >want
	same want out
}

@test "a filter keeps Prompt lines in front" {
	{ printf '{"type": "Prompt", "data": {"content": "be good"}}\n'; chat 3; } >in
	ag2-compact tail-window:1 <in >out
	{ head -n 1 in; tail -n 1 in; } >want
	same want out
	model 'The summary.'
	ag2-compact -m "$model" summarize:1 <in >out
	[ "$(types out)" = "Prompt CompactionSummary ModelResponse " ]
}

@test "a bad line is named and left out, and the status is 65; 0 with --skip-bad; --strict stops" {
	{ U a; echo '{"type": '; A b; U c; } >in
	run --separate-stderr ag2-compact tail-window:5 <in
	status_is 65
	[ "${#lines[@]}" -eq 3 ]
	has "stdin:2: " "$stderr"
	run --separate-stderr ag2-compact --skip-bad tail-window:1 <in
	status_is 0
	run --separate-stderr ag2-compact --strict tail-window:1 <in
	status_is 65
	output_is ''
}

@test "an empty input is an empty output, and a line without newline is one" {
	run -0 ag2-compact tail-window:1 </dev/null
	output_is ''
	{ U a; A b | tr -d '\n'; } >in
	ag2-compact tail-window:1 <in >out
	A b >want
	same want out
}

@test "with thresholds it acts only when one is exceeded" {
	chat 5 >in
	ag2-compact --max-events 10 tail-window:2 <in | cmp - in
	[ "$(ag2-compact --max-events 9 tail-window:2 <in | wc -l)" -eq 2 ]
	ag2-compact --max-tokens 100000 tail-window:2 <in | cmp - in
	[ "$(ag2-compact --max-tokens 10 tail-window:2 <in | wc -l)" -eq 2 ]
}

@test "4000 Han characters exceed 2500 tokens at one character a token, and as --chars-per-token auto" {
	U "$(printf '界%.0s' $(seq 4000))" >in
	A b >>in
	[ "$(ag2-compact --max-tokens 2500 tail-window:1 <in | wc -l)" -eq 2 ]
	[ "$(ag2-compact --max-tokens 2500 --chars-per-token 1 tail-window:1 <in | wc -l)" -eq 1 ]
	[ "$(ag2-compact --max-tokens 2500 --chars-per-token auto tail-window:1 <in | wc -l)" -eq 1 ]
	printf 'knowledge: {compact: "tail-window:1", compact_trigger: {max_tokens: 2500, chars_per_token: auto}}\n' >agent.yaml
	[ "$(ag2-compact -c agent.yaml <in | wc -l)" -eq 1 ]
	sed -i 's/auto/4/' agent.yaml
	[ "$(ag2-compact -c agent.yaml <in | wc -l)" -eq 2 ]
	ag2-compact --help | grep -q 'code points'
}

@test "a threshold that is not above the target is refused" {
	chat 3 | fill
	run compact --max-events 4 tail-window:4
	status_is 78
	has "must be greater than the target"
}

@test "--stream without -i prints what would stay and changes nothing" {
	chat 5 >in
	fill <in
	ag2-compact -s "$store" --stream s tail-window:3 >out
	tail -n 3 in >want
	same want out
	same in "$log"
	[ "$(find store/log -type f | wc -l)" -eq 1 ]
}

@test "usage errors" {
	for args in "" "-i tail-window:3" "--undo" "--stream s nosuch:3" "tail-window" "tail-window:x" "tail-window:3 more" "exec:" \
		"--stream s --undo tail-window:3" "--skip-bad --strict tail-window:3" "--chars-per-token 0 tail-window:1" "--status-fd 77 tail-window:1"; do
		# shellcheck disable=SC2086
		run ag2-compact -s "$store" $args </dev/null
		[ "$status" -eq 64 ] || fail "'$args': status $status"
	done
	run ag2-compact tail-windw:3 </dev/null
	has "did you mean 'tail-window'"
	run ag2-compact -s "$store" --stream s -i tail-window:3
	status_is 66
	mkdir store
	run ag2-compact -s "$store" --stream s -i tail-window:3
	status_is 66
}

@test "a closed pipe ends it quietly, a full disk is 74" {
	chat 3 >in
	run -74 bash -c "ag2-compact tail-window:2 <in >/dev/full"
	run bash -c 'ag2-compact tail-window:2 <in | true; exit ${PIPESTATUS[0]}'
	[ "$status" -eq 0 ] || [ "$status" -eq 141 ]
}

# ---- in place ----

@test "what goes becomes segments with contiguous numbers, and the full history has each event once" {
	for n in 1 2 3; do
		chat 5 $((10 * n)) | tee -a in | fill
		compact tail-window:4
		[ "$(wc -l <"$log")" -eq 4 ]
	done
	(cd store/log && ls) >got
	printf '%s\n' s.dropped-1.jsonl s.dropped-2.jsonl s.dropped-3.jsonl s.jsonl >want
	same want got
	ag2-store -s "$store" log cat s >got
	same in got
}

@test "nothing to do: nothing is told, written or asked" {
	model 'no'
	chat 2 >in
	fill <in
	compact tail-window:4 --status-fd 3 3>told
	compact -m "$model" summarize:4 --status-fd 3 3>>told
	compact --max-events 100 tail-window:4 --status-fd 3 3>>told
	[ ! -s told ]
	same in "$log"
	[ "$(calls)" -eq 0 ]
	[ "$(find store -type f ! -path '*/.ag2/lock*' | wc -l)" -eq 1 ]
}

@test "the lifecycle is told once each, and kept" {
	chat 5 | fill
	compact tail-window:4 --status-fd 3 3>told
	[ "$(types told)" = "CompactionStarted CompactionCompleted " ]
	jq -e 'select(.type | endswith("Completed")) | .data.events_before == 10 and .data.events_after == 4' told
	tail -n 1 told >want
	ag2-store -s "$store" cat /.ag2/status/s/CompactionCompleted >got
	same want got
}

@test "parallel calls stay together, at every target" {
	{ U q; C c1 c2; R c1; R c2; A done; U next; C c3; R c3; A b; U c; } >in
	for target in 1 2 3 4 5 6 7 8 9; do
		rm -rf store
		fill <in
		compact "tail-window:$target"
		grep -o '"id": "c[0-9]"' "$log" | grep -o 'c[0-9]' | sort >called || true
		grep -o '"parent_id": "c[0-9]"' "$log" | grep -o 'c[0-9]' | sort >answered || true
		same called answered
		all_there in
	done
}

@test "a call that waits for its result stays, and the result that comes later stands behind it" {
	{ C p1; U 1; A 1; chat 5 2; } >in
	fill <in
	compact tail-window:4
	head -n 1 "$log" >got
	C p1 >want
	same want got
	R p1 | tee -a in | fill
	ag2-assemble -s "$store" --stream s conversation >sent
	sed -n 1,2p sent >got
	{ C p1; R p1; } >want
	same want got
	compact tail-window:4
	all_there in
}

@test "of a parallel call that waits for one result all is kept" {
	{ C p1 p2; R p1; chat 5; } >in
	fill <in
	compact tail-window:4
	head -n 2 "$log" >got
	head -n 2 in >want
	same want got
	all_there in
}

@test "of 500 dead calls the newest stay, as many as the target" {
	{ for i in $(seq 500); do C "d$i"; done; chat 3; } >in
	fill <in
	compact tail-window:4
	grep -o '"id": "d[0-9]*"' "$log" | tr -dc '0-9\n' >got
	seq 497 500 >want
	same want got
	all_there in
}

@test "six events of one time: three go and three stay" {
	chat 3 >in
	fill <in
	model 'In short.'
	compact -m "$model" summarize:3
	[ "$(sed 1d "$log" | wc -l)" -eq 3 ]
	head -n 1 "$log" | jq -e '.data.event_count == 3'
	all_there in
}

@test "a log that begins with an orphan is compacted" {
	{ R c9; chat 4; } >in
	fill <in
	compact tail-window:3
	[ "$(wc -l <"$log")" -eq 3 ]
	all_there in
}

@test "a bad line of a log goes with its surroundings and is no failure" {
	chat 4 >in
	fill <in
	{ sed 2q "$log"; echo '{"type": "torn'; sed 1,2d "$log"; } >changed
	cp changed "$log"
	run --separate-stderr ag2-compact -s "$store" --stream s -i tail-window:3
	status_is 0
	[ "${#stderr_lines[@]}" -eq 1 ]
	grep -q torn store/log/s.dropped-1.jsonl
	cat store/log/s.dropped-1.jsonl "$log" >got
	same changed got
	run compact --strict tail-window:1
	status_is 0
}

@test "an unfinished compaction of AG2 is finished: its segment gets what is dropped now" {
	chat 5 >in
	fill <in
	head -n 3 in >store/log/s.dropped-1.jsonl
	compact tail-window:4
	[ "$(find store/log -name '*dropped*' | wc -l)" -eq 1 ]
	ag2-store -s "$store" log cat s >got
	same in got
}

@test "on sqlite as on disk" {
	store=sqlite:$TMP/store.db
	chat 2000 >in
	fill <in
	compact tail-window:10
	[ "$(ag2-store -s "$store" log cat --current s | wc -l)" -eq 10 ]
	ag2-store -s "$store" log cat s >got
	same in got
	ag2-compact -s "$store" --stream s --undo
	ag2-store -s "$store" log cat --current s >got
	same in got
}

# ---- summaries ----

@test "the model is sent what goes, answers, calls, arguments and results among it" {
	{ U 'find it'; C c1; R c1; A 'the codename is GLYPH-417'; chat 3; } >in
	fill <in
	model 'All said.'
	compact -m "$model" summarize:2
	jq -r '.data.parts[0].content' prompt-1 >text
	for word in 'find it' GLYPH-417 arg-c1 result-c1 'question number 2'; do
		grep -qF "$word" text || fail "no '$word' in the prompt"
	done
	! grep -q 'question number 3' text
	[ "$(types "$log")" = "CompactionSummary ModelRequest ModelResponse " ]
}

@test "an older summary is folded into the new one: one, without nested headings, after any number of runs" {
	cat >echo.sh <<'X'
jq -r '.data.parts[0].content' | sed '1,/^$/d' | sed '$d' | sed 's/number/no/'
X
	model="exec:cd $TMP && sh echo.sh"
	for n in 1 2 3 4 5 6 7 8 9 10; do
		chat 2 $((2 * n)) | fill
		compact -m "$model" summarize:2
		[ "$(summaries)" -le 1 ]
	done
	[ "$(summaries)" -eq 1 ]
	head -n 1 "$log" | jq -r .data.summary >text
	! grep -q '^##' text
	[ "$(grep -c 'question no 2$' text)" -eq 1 ]
	head -n 1 "$log" | jq -e '.data.event_count == 5'	# the earlier summary is one of them
	for n in 1 2 3 4 5; do
		compact -m "$model" summarize:2
	done
	[ "$(summaries)" -eq 1 ]
}

@test "the cost is a usage event in the log, in the same commit, and in CompactionCompleted" {
	chat 4 | fill
	cat >usage.sh <<'X'
cat >/dev/null
echo '{"type": "ag2.events.types.UsageEvent", "data": {"kind": "model_call", "model": "m", "provider": "p", "usage": {"data": {"prompt_tokens": 50, "completion_tokens": 5, "total_tokens": 55}}}}'
echo '{"type": "ag2.events.types.ModelResponse", "data": {"message": {"content": "In short."}}}'
X
	compact -m "exec:sh $TMP/usage.sh" summarize:2 --status-fd 3 3>told
	[ "$(types "$log")" = "CompactionSummary UsageEvent ModelRequest ModelResponse " ]
	sed -n 2p "$log" | jq -e '.data.kind == "compaction" and .data.usage.data.total_tokens == 55'
	tail -n 1 told | jq -e '.data.llm_calls == 1 and .data.usage.data.total_tokens == 55'
}

@test "input that is too long for the model is summarized in pieces, the summary so far with each" {
	{ for i in $(seq 40); do U "$(printf 'w%.0s' $(seq 300)) mark-$i"; done; chat 1; } >in
	fill <in
	cat >small.sh <<'X'
cat >got.$$
if [ "$(wc -c <got.$$)" -gt 6000 ]; then
	echo 'this is more than the maximum context length' >&2
	exit 69
fi
cat got.$$ >>all
echo "so far: $(grep -o 'mark-[0-9]*' all | sort -u | wc -l)"
X
	cat >ask <<'X'
#!/bin/sh
sh small.sh >said 2>why || { sed 's/^/ag2-ask: /' why >&2; exit 69; }
jq -nc --rawfile t said '{type: "ag2.events.types.ModelResponse", data: {message: {content: $t}}}'
X
	chmod +x ask
	AG2_ASK=$TMP/ask compact summarize:2
	head -n 1 "$log" | jq -r .data.summary >text
	[ "$(cat text)" = "so far: 40" ]
	grep -q 'so far: ' all
	all_there in
}

@test "the file's prompt is the whole prompt, and its model is asked" {
	chat 3 | fill
	model 'In short.'
	cat >agent.yaml <<X
name: journal
model: {provider: exec, model: "false"}
knowledge:
  store: $store
  compact:
    strategy: summarize
    target: 2
    model: {provider: exec, model: "cd $TMP && sh model.sh"}
    prompt: "Old: {existing} New: {events} {other}"
  compact_trigger: {max_events: 4}
X
	chmod 600 agent.yaml
	ag2-compact -c agent.yaml --stream s -i
	jq -r '.data.parts[0].content' prompt-1 >got
	printf 'Old:  New: User: question number 1\nAssistant: the answer to question number 1\nUser: question number 2\nAssistant: the answer to question number 2 {other}\n' >want
	same want got
	ag2-compact -c agent.yaml --stream s -i
	[ "$(calls)" -eq 1 ]
}

@test "an agent file without a trigger never fires, one without compact is refused" {
	chat 3 >in
	fill <in
	printf 'knowledge: {store: "%s", compact: "tail-window:1"}\n' "$store" >agent.yaml
	chmod 600 agent.yaml
	ag2-compact -c agent.yaml --stream s -i
	same in "$log"
	ag2-compact -c agent.yaml --stream s -i --max-events 4
	[ "$(wc -l <"$log")" -eq 1 ]
	echo 'name: x' >agent.yaml
	run ag2-compact -c agent.yaml --stream s -i
	status_is 78
}

# ---- failures ----

# closed STATUS ARGS...: it fails so and the log is as it was; one start, one failure.
closed() {
	local want=$1
	shift
	cp "$log" before
	run compact "$@" --status-fd 3 3>told
	status_is "$want"
	same before "$log"
	[ -z "$(find store/log -name '*dropped*')" ]
	[ "$(types told)" = "CompactionStarted CompactionFailed " ]
	[ "${#lines[@]}" -eq 1 ] || fail "more than one line:" "$output"
}

@test "an answer that is empty, blank, null or no shorter leaves the log as it was" {
	chat 4 | fill
	for answer in '' '   ' null "$(printf ' \n\t\n')" "$(printf 'word %.0s' $(seq 200))"; do
		model "$answer"
		closed 69 -m "$model" summarize:2
	done
	has "no shorter"
}

@test "a response that is null, refused, cut off, or a call leaves the log as it was" {
	chat 4 | fill
	for response in '"message": null' '"message": {"content": null}' '"message": {"content": "half"}, "finish_reason": "length"' \
		'"message": {"content": "I cannot"}, "finish_reason": "refusal"' '"message": {"content": "x"}, "finish_reason": "content_filter"' \
		'"message": {"content": "x"}, "tool_calls": {"calls": [{"id": "c", "name": "t", "arguments": "{}"}]}'; do
		printf '#!/bin/sh\ncat >/dev/null\necho '\''{"type": "ag2.events.types.ModelResponse", "data": {%s}}'\''\n' "$response" >ask
		chmod +x ask
		AG2_ASK=$TMP/ask closed 69 summarize:2
	done
}

@test "a model that fails, that is not configured, that cannot be found" {
	chat 4 | fill
	closed 69 -m 'exec:exit 3' summarize:2
	closed 78 summarize:2
	AG2_ASK=/nowhere/ag2-ask closed 69 -m 'exec:echo x' summarize:2
	printf '#!/bin/sh\necho "ag2-ask: later" >&2\nexit 75\n' >ask
	chmod +x ask
	AG2_ASK=$TMP/ask closed 75 summarize:2
	output_is "ag2-compact: later"
}

@test "a failure is kept in the store, also after the next success" {
	chat 4 | fill
	run compact -m 'exec:exit 3' summarize:2
	status_is 69
	compact tail-window:2
	ag2-store -s "$store" cat /.ag2/status/s/CompactionFailed | jq -e '.data.error | contains("status 3")'
}

# ---- exec ----

@test "exec: what the command does not print is dropped, what it prints is the log" {
	{ chat 2; R x; chat 2 3; } >in
	fill <in
	compact 'exec:grep -v ToolResults'
	grep -v ToolResults in >want
	same want "$log"
	R x >want
	same want store/log/s.dropped-1.jsonl
}

@test "exec: the command may print new events, and gets its environment" {
	chat 4 >in
	fill <in
	S short >summary
	compact "exec:cat $TMP/summary; tail -n 2; echo \$AG2_STREAM \$AG2_STORE >$TMP/env"
	{ cat summary; tail -n 2 in; } >want
	same want "$log"
	head -n 6 in >want
	same want store/log/s.dropped-1.jsonl
	echo "s disk:$TMP/store" >want
	same want env
}

@test "exec: a command that fails, prints nothing or nonsense leaves the log as it was" {
	chat 4 | fill
	closed 69 'exec:head -n 1; exit 1'
	closed 69 'exec:cat >/dev/null'
	closed 65 'exec:echo hello'
	closed 65 "exec:echo '{\"type\": \"Prompt\", \"data\": {\"content\": \"x\"}}'"
	compact exec:cat
	[ -z "$(find store/log -name '*dropped*')" ]
}

@test "exec: as a filter" {
	chat 3 >in
	ag2-compact 'exec:tail -n 1' <in >out
	tail -n 1 in >want
	same want out
}

# ---- undo ----

@test "--undo puts the log back byte for byte, step by step" {
	chat 5 | fill
	cp "$log" one
	compact tail-window:4
	chat 3 10 | fill
	cp "$log" two
	model 'In short.'
	compact -m "$model" summarize:3
	ag2-compact -s "$store" --stream s --undo
	same two "$log"
	ag2-compact -s "$store" --stream s --undo
	{ cat one; chat 3 10; } >want
	same want "$log"
	[ -z "$(find store/log -name '*dropped*')" ]
	run ag2-compact -s "$store" --stream s --undo
	status_is 1
}

@test "--undo puts calls that waited back where they were, and keeps what was appended since" {
	{ U a; C p1; A b; C p2; chat 4; } >in
	fill <in
	compact tail-window:2
	U late | fill
	ag2-compact -s "$store" --stream s --undo
	{ cat in; U late; } >want
	same want "$log"
}

@test "lines that are alike: a segment that equals what the log begins with is none that was not finished" {
	local i
	for store in disk:$TMP/alike sqlite:$TMP/alike.db; do
		for i in 1 2 3 4 5; do
			chat 2 1 | ag2-store -s "$store" log append s
			[ "$(ag2-store -s "$store" log cat s | wc -l)" -eq $((4 * i)) ]
			ag2-compact -s "$store" --stream s -i tail-window:2
			[ "$(ag2-store -s "$store" log cat s | wc -l)" -eq $((4 * i)) ]
		done
		[ "$(ag2-store -s "$store" log cat s | sort -u | wc -l)" -eq 4 ]
		ag2-store -s "$store" log cat s >whole
		run -0 ag2-store -s "$store" fsck --repair
		output_is ""
		# what an AG2 that holds all in memory writes back is there once still
		ag2-store -s "$store" log append t <whole
		ag2-compact -s "$store" --stream t -i tail-window:3
		ag2-store -s "$store" write /log/t.jsonl <whole
		ag2-store -s "$store" log cat t >now
		same whole now
		for i in 5 4 3 2 1; do
			ag2-compact -s "$store" --stream s --undo
			[ "$(ag2-store -s "$store" log cat s | wc -l)" -eq 20 ]
		done
		run -1 ag2-compact -s "$store" --stream s --undo
		ag2-store -s "$store" log cat --current s >now
		same whole now
	done
}

@test "--undo of exec:, also of lines in the middle" {
	{ chat 2; R x; chat 2 3; R y; A end; } >in
	fill <in
	S short >summary
	compact "exec:cat $TMP/summary; grep -v ToolResults"
	ag2-compact -s "$store" --stream s --undo
	same in "$log"
}

@test "--undo refuses a log that was rewritten since, and takes back a segment of AG2" {
	chat 5 >in
	fill <in
	model 'In short.'
	compact -m "$model" summarize:4
	{ S other; sed 1d "$log"; } >changed
	cp changed "$log"
	run ag2-compact -s "$store" --stream s --undo
	[ "$status" -ne 0 ]
	same changed "$log"
	rm -r store/.ag2/undo
	ag2-compact -s "$store" --stream s --undo
	same in "$log"
}

# ---- others meanwhile ----

# A model that says when it was asked and answers when it is told to.
slow_model() {
	cat >slow.sh <<'X'
cat >/dev/null
n=1
while ! mkdir "call-$n" 2>/dev/null; do n=$((n + 1)); done
t=0
until [ -e go ] || [ $t -gt 6000 ]; do sleep 0.02; t=$((t + 1)); done
echo 'In short.'
X
	model="exec:cd $TMP && sh slow.sh"
}

meanwhile() {
	chat 4 >in
	fill <in
	slow_model
	compact -m "$model" summarize:2 3>&- & job=$!
	wait_for 20 test -d call-1
	U late | tee -a in | fill
	touch go
	wait "$job"
	ag2-store -s "$store" log cat --current s >current
	[ "$(types current)" = "CompactionSummary ModelRequest ModelResponse ModelRequest " ]
	tail -n 1 current | grep -q late
	all_there in
}

@test "events appended while a summary is written are behind the rest, once (disk)" {
	meanwhile
}

@test "events appended while a summary is written are behind the rest, once (sqlite)" {
	store=sqlite:$TMP/store.db
	meanwhile
}

@test "on redis: a summary, what is appended meanwhile, undo" {
	redis_start
	store=$url
	meanwhile
	ag2-compact -s "$store" --stream s --undo
	ag2-store -s "$store" log cat --current s >got
	same in got
	compact tail-window:2
	all_there in
}

# back_and_forth: compacts and undoes until there is a file `enough`, but not without end.
back_and_forth() {
	local i
	for i in $(seq 400); do
		[ ! -e enough ] || return 0
		ag2-compact -s "$store" --stream s -i tail-window:3
		ag2-compact -s "$store" --stream s --undo
	done
}

# The full history is whole in every reading, whatever is compacted and undone beside it.
read_beside_undo() {
	local n job
	chat 4 >in
	fill <in
	rm -f enough
	back_and_forth >/dev/null 2>&1 3>&- &
	job=$!
	for n in $(seq 60); do
		ag2-store -s "$store" log cat s >got || { touch enough; wait "$job"; fail "reading $n: status not 0"; }
		cmp -s in got || { touch enough; wait "$job"; fail "reading $n: $(wc -l <got) lines"; }
	done
	touch enough
	wait "$job"
}

@test "log cat beside compactions that are undone gives all events each time (disk)" {
	read_beside_undo
}

@test "log cat beside compactions that are undone gives all events each time (sqlite)" {
	store=sqlite:$TMP/store.db
	read_beside_undo
}

@test "log cat beside compactions that are undone gives all events each time (redis)" {
	redis_start
	store=$url
	read_beside_undo
}

@test "three compactions at once make one call and one summary" {
	chat 4 >in
	fill <in
	slow_model
	jobs=()
	for i in 1 2 3; do
		{ code=0; compact -m "$model" summarize:2 2>"err-$i" || code=$?; echo "$code" >"status-$i"; } 3>&- &
		jobs+=($!)
	done
	wait_for 20 test -d call-1
	wait_for 20 sh -c 'cat status-* | grep -c 75 | grep -qx 2'
	touch go
	wait "${jobs[@]}"
	[ "$(calls)" -eq 1 ]
	[ "$(summaries)" -eq 1 ]
	[ "$(cat status-* | sort | tr '\n' ' ')" = "0 75 75 " ]
	grep -qh 'another compaction' err-*
	for i in 1 2 3 4 5; do
		compact -m "$model" summarize:2
	done
	[ "$(calls)" -eq 1 ]
	[ "$(summaries)" -eq 1 ]
	all_there in
}

@test "a log that is rewritten while a summary is written is left as it is, 75" {
	chat 4 | fill
	slow_model
	{ run compact -m "$model" summarize:2; echo "$status" >status; } 3>&- & job=$!
	wait_for 20 test -d call-1
	chat 4 50 >other
	cp other "$log"
	touch go
	wait "$job"
	[ "$(cat status)" -eq 75 ]
	same other "$log"
	[ -z "$(find store/log -name '*dropped*')" ]
}

@test "an interrupted compaction leaves the log as it was" {
	chat 4 | fill
	cp "$log" before
	slow_model
	bash -c "ag2-compact -s '$store' --stream s -i -m '$model' summarize:2 --status-fd 3 3>told & echo \$! >pid; wait \$!; echo \$? >status" 3>&- & job=$!
	wait_for 20 test -d call-1 -a -s pid
	kill -TERM "$(cat pid)"
	wait "$job"
	[ "$(cat status)" -eq 143 ]
	same before "$log"
	[ "$(types told)" = "CompactionStarted CompactionFailed " ]
}

@test "a cassette answers for the model" {
	chat 4 >in
	fill <in
	model 'In short.'
	AG2_RECORD=$TMP/tape compact -m "$model" summarize:2
	cp "$log" first
	rm -rf store call-*
	fill <in
	AG2_REPLAY=$TMP/tape compact -m "$model" summarize:2
	[ "$(calls)" -eq 0 ]
	jq -c 'del(.data.created_at)' first >want
	jq -c 'del(.data.created_at)' "$log" >got
	same want got
}
