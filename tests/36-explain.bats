#!/usr/bin/env bats
# --explain: every event and every token is accounted for.
load helper
load assemble
load policies

# sum ROWS: the tokens of what is sent, by the rows of --explain=json.
sum() {
	awk -F '"tokens":' '/^{/ && !/"action":"dropped"/ { n += $2 + 0 } END { print n + 0 }' "$1"
}

# recount LINES CHARS: the estimate of Prompt and event lines as they are.
recount() {
	ag2-assemble --as-ag2 --explain=json token-budget:1000000000,chars_per_token="$2" <"$1" 2>recounted >/dev/null
	sum recounted
}

# estimate BODY: tokens of the prompts (of in.prompts) and of the messages in the request of Chat Completions.
estimate() {
	jq -r --slurpfile prompts in.prompts '
		def tokens: length / 4 | floor;
		def part: if .type == "text" then .text | tokens elif .type == "file" and .file.file_data then 2000 else 1000 end;
		def content: if type == "array" then map(part) | add // 0 else ltrimstr("[Summary of earlier conversation]\n") | tokens end;
		def call: "\(.function.name)(\(.function.arguments))" | tokens;
		[.messages[] | select(.role == "system").content] as $system | ($prompts | map(.data.content)) as $given |
		if ($system | join("\n")) != ($given | join("\n")) then "other prompts" else
			($given | map(tokens) | add // 0) + ([.messages[] | select(.role != "system") |
				((.content // "") | content), (.tool_calls[]? | call)] | add // 0)
		end' "$1"
}

account() {
	local dir=$1 chars=4 args events got
	readarray -t args <"$dir/args"
	[[ "${args[*]}" =~ chars_per_token=([0-9]+) ]] && chars=${BASH_REMATCH[1]}
	fill_store "$dir/store"
	touch "$dir/in"
	events=$(grep -vc '^{"type": *"Prompt"' "$dir/in")
	for mode in --as-ag2 --layout=ag2; do
		AG2_NOW=1 ag2-assemble $mode --explain=json -s disk:store "${args[@]}" <"$dir/in" >"$dir/out" 2>"$dir/err" || {
			grep -qe 'do not fit' -e 'must not be negative' "$dir/err" && continue
			fail "$mode: $(cat "$dir/err")"
		}
		got=$(sed -n 's/^{.*"index":\([0-9]*\),.*/\1/p' "$dir/err" | tr '\n' ' ')
		[ "$got" = "$(seq 0 $((events - 1)) | tr '\n' ' ')" ] || fail "$mode: not each event once: $got"
		[ "$(sum "$dir/err")" = "$(recount "$dir/out" "$chars")" ] || fail "$mode: $(sum "$dir/err") is not $(recount "$dir/out" "$chars")"
	done
	ag2-ask -n -m exec:cat --explain=json <"$dir/out" >"$dir/sent" 2>"$dir/err"
	[ "$(sum "$dir/err")" = "$(recount "$dir/sent" 4)" ] || fail "ag2-ask: $(sum "$dir/err") is not $(recount "$dir/sent" 4)"
	ag2-ask -n -m openai:x --explain=json <"$dir/out" >"$dir/sent" 2>"$dir/err" || {
		grep -qe 'cannot be sent to openai' -e 'nothing would be sent' "$dir/err" && return
		fail "openai: $(cat "$dir/err")"
	}
	grep '^{"type": *"Prompt"' "$dir/out" >in.prompts || true
	[ "$(sum "$dir/err")" = "$(estimate "$dir/sent")" ] || fail "openai: $(sum "$dir/err") is not $(estimate "$dir/sent")"
}

accounts() {
	local dir ran=0 failed=0
	unpack "$1"
	for dir in cases/*; do
		ran=$((ran + 1))
		account "$dir" || { echo "in $dir" >&2; failed=1; }
	done
	[ "$ran" -eq "$2" ] || fail "$ran cases instead of $2"
	[ "$failed" -eq 0 ]
}

@test "the sums of --explain=json are what is sent: golden cases of sliding-window and conversation" {
	accounts sliding 45
	rm -r cases
	accounts conversation 1
}

@test "the sums of --explain=json are what is sent: golden cases of token-budget" {
	accounts budget 36
}

@test "the sums of --explain=json are what is sent: golden cases of injections and chains" {
	local group
	for group in 'working 6' 'episodic 16' 'alert 12' 'chain 8'; do
		# shellcheck disable=SC2086
		accounts $group
		rm -r cases
	done
}

# rows ARG...: index, type, policy, action and reason of each row.
rows() {
	ag2-assemble --explain=json "$@" 2>&1 >/dev/null | grep '^{' | jq -r '"\(.index // "-") \(.type) \(.policy // "-") \(.action): \(.why // "-")"'
}

@test "what a window lets go is told with its reason" {
	{ U 1; C a; R a=x; A 2; U 3; A 4; } | rows sliding-window:4 >got
	diff - got <<-'END'
		0 ModelRequest sliding_window dropped: older than what fits
		1 ModelResponse sliding_window dropped: older than what fits
		2 ToolResultsEvent sliding_window dropped: what it belongs to was cut off
		3 ModelResponse - kept: -
		4 ModelRequest - kept: -
		5 ModelResponse - kept: -
	END
	{ S old; U go; C a; R a=1; C b; R b=2; } | rows sliding-window:2 >got
	diff - got <<-'END'
		0 CompactionSummary - kept: a summary at the head stays
		1 ModelRequest - kept: the last request stays
		2 ModelResponse sliding_window dropped: older than what fits
		3 ToolResultsEvent sliding_window dropped: older than what fits
		4 ModelResponse - kept: -
		5 ToolResultsEvent - kept: -
	END
}

@test "what the repair does is told: left out, made, moved, changed" {
	{ U 1; R zz=1; C a b; R a=x; U 2; R b=late; A ''; U ''; } >in
	rows conversation <in >got
	diff - got <<-'END'
		0 ModelRequest - kept: -
		1 ToolResultsEvent repair dropped: result without its call left out
		2 ModelResponse - kept: -
		3 ToolResultsEvent - kept: -
		4 ModelRequest - kept: -
		5 ToolResultsEvent - kept: late result moved to its call
		6 ModelResponse repair dropped: a response that says nothing
		7 ModelRequest repair repaired: it could not be sent as it was
	END
	cat in | rows conversation | grep -c 'ToolResultsEvent repair repaired: it was missing'
	cat in | rows conversation | grep -c 'ToolResultsEvent repair dropped: late result turned into a note'
}

@test "what has no content to be mended is told when it is left out" {
	{ U 1; echo '{"type": "ModelRequest"}'; C a; echo '{"type": "ToolResultsEvent", "data": {}}'; R a=x; } >in
	run -0 --separate-stderr ag2-assemble <in
	[ "$stderr" = 'ag2-assemble: event without its content left out, and 1 more of the kind' ] || fail "$stderr"
	rows <in >got
	[ "$(grep -c 'repair dropped: event without its content left out' got)" -eq 2 ] || fail "$(cat got)"
	[ "$(ag2-assemble <in 2>/dev/null | shape)" = 'U(1) C(a) R(a=x)' ]
}

# A container whose results belong to calls at different places comes out as several lines.
@test "what was taken apart has a row for each of its parts" {
	{ U 1; C a b; R a=1111; U 2; C d; U 3; R b=22222222 d=3333 zz=none; A 4; } >in
	ag2-assemble --explain=json <in 2>rows >out
	[ "$(shape <out)" = 'U(1) C(a,b) R(a=1111) R(b=22222222) U(2) C(d) R(d=3333) U(3) A(4)' ] || fail "$(shape <out)"
	[ "$(grep '^{' rows | jq -c 'select(.type == "ToolResultsEvent" and .line == 7) | [.index, .part_of, .tokens, .given, .action, .policy]')" = \
		'[6,null,2,4,"repaired","repair"]
[null,6,1,null,"repaired","repair"]' ] || fail "$(cat rows)"
	ag2-assemble --explain <in 2>&1 >out | grep -v ^ag2-assemble: >got
	diff - got <<-'END'
		events, and in brackets tokens of 4 code points
		repair: +1 (1), 8 in (8), 0 out (0)
		    1 (-2): result without its call left out
		sent: 7 tokens (9 events, 0 prompts, 0 tools)
		    tool results: 4 (57%)
		    responses: 3 (43%)
		    requests: 0 (0%)
	END
}

# some: a line of a stream in and out of order.
some() {
	case $((RANDOM % 9)) in
	0) U "question $RANDOM" ;;
	1) A "answer $RANDOM" ;;
	2 | 3) C "$((RANDOM % 3))" "$((3 + RANDOM % 3))" ;;
	4) R "$((RANDOM % 3))=$RANDOM" "$((3 + RANDOM % 3))=$RANDOM$RANDOM" ;;
	5) R "$((RANDOM % 7))=$RANDOM" ;;
	6) r "$((RANDOM % 7))=$RANDOM" ;;
	7) c "$((RANDOM % 6))" ;;
	8) U '' ;;
	esac
}

# flow: stages of the text whose input is not what the one before it let through, and what is sent.
flow() {
	sed 's/[(),]//g' "$1" | awk '
		/ out [0-9]*$/ {
			made = ($2 ~ /^[+]/) ? 2 : 0
			if (seen && ($(2 + made) != n || $(4 + made) != t))
				print "wrong: " $0 " instead of " n " events, " t " tokens"
			n = $(2 + made) - $(5 + made) + (made ? substr($2, 2) : 0)
			t = $(4 + made) - $(7 + made) + (made ? $3 : 0)
			seen = 1
		}
		/^    [0-9]* [+-][0-9]*:/ { t += $2 }
		/^sent:/ && ($2 != t || $4 != n) { print "wrong: " $0 " instead of " n " events, " t " tokens" }'
}

@test "in the text, each policy takes in what the one before it let through, and what is left is sent" {
	local i
	json() { echo "\"$1\""; }	# texts are plain here, and jq is slow
	RANDOM=4711
	for i in $(seq 15); do
		for _ in $(seq 14); do some; done >in
		ag2-assemble --explain=json conversation sliding-window:9 <in 2>rows >out
		[ "$(grep -c '^{.*"action":"[kir]' rows)" -eq "$(wc -l <out)" ] || fail "$(cat in rows)"
		ag2-assemble --explain conversation sliding-window:9 <in 2>text >out
		[ -z "$(flow text)" ] || fail "$(flow text; cat in text)"
		has "($(wc -l <out) event" "$(grep ^sent: text)"
	done
}

@test "prompts, notes and what commands do are told" {
	mkdir -p st/memory
	echo mem >st/memory/working.md
	{ U 1; A 2; U 3; usage; } | rows -s st --prompt sys working-memory conversation 'exec:grep -v "\"2\"" | sed s/3/three/' inject:'echo x' >got
	diff - got <<-'END'
		- Prompt - kept: -
		- Prompt working_memory injected: -
		- Prompt inject injected: -
		0 ModelRequest - kept: -
		1 ModelResponse exec dropped: the command did not print it
		2 ModelRequest exec dropped: the command did not print it
		3 UsageEvent conversation dropped: no part of the conversation
		- ModelRequest exec injected: -
	END
}

@test "equal lines through a command are told apart by their order" {
	{ U same; U same; U same; } | rows exec:'head -n 2' >got
	[ "$(cut -d ' ' -f 1,4 got | tr '\n' ' ')" = '0 kept: 1 kept: 2 dropped: ' ] || fail "$(cat got)"
}

@test "ag2-ask tells the agent file's prompt and each tool's schema, and sends what it tells" {
	printf '#!/bin/sh\necho "{\\"name\\": \\"t\\", \\"description\\": \\"tests\\", \\"parameters\\": {\\"type\\": \\"object\\"}}"\n' >t
	chmod +x t
	cat >a.yaml <<-'END'
		model: exec:cat
		prompt: a prompt of thirty characters..
		knowledge: {store: st, bootstrap: none}
		assembly: [sliding_window: 4]
		tools: [{exec: ./t}]
	END
	chmod go-w a.yaml
	ag2-ask -n -c a.yaml --explain=json --stream @new hello 2>err >sent
	grep '^{' err | jq -r '"\(.type) \(.name // "-") \(.tokens > 0) \(.action)"' >got
	diff - got <<-'END'
		Prompt - true kept
		Tool t true kept
		Tool knowledge true kept
		ModelRequest - true kept
	END
	ag2-ask -n -c a.yaml --explain --stream @new hello 2>err >sent
	has 'tools: ' "$(cat err)"
	has 'sent: ' "$(cat err)"
}

@test "what no request holds is told as let go by the provider" {
	{
		U 'a question'
		echo '{"type": "AnthropicServerToolCallEvent", "data": {"id": "s", "name": "web", "arguments": "{}", "block": {"data": {"type": "server_tool_use", "id": "s"}}}}'
		echo '{"type": "OpenAIServerToolCallEvent", "data": {"id": "o", "name": "web", "arguments": "{}", "item": {"data": {"type": "web_search_call", "id": "o"}}}}'
		C a b
		c a
		r a=1
		R a=1 b=2
		usage
		AL info x hot
		echo '{"type": "ModelResponse", "data": {"message": {"content": "12345678"}, "files": [{}, {}]}}'
		U 'and now'
		C loose
		r loose=3
		U last
	} >in
	for p in openai:1,2, anthropic:2, openai-responses:1,; do
		own=${p#*:} p=${p%:*}
		ag2-ask -n -m $p:x --explain=json <in 2>rows >/dev/null
		[ "$(jq -r 'select(.action == "dropped" and .policy == "'$p'") | .index' rows | paste -s -d ,)" = "${own}4,5,7,8,12" ] || fail "$p: $(cat rows)"
		[ "$(jq -c 'select(.index == 9) | [.tokens, .action]' rows)" = '[2,"kept"]' ] || fail "$p: $(cat rows)"
		[ "$(jq -c 'select(.index == null) | [.policy, .type, .line, .action]' rows)" = '["repair","ToolResultsEvent",13,"repaired"]' ] || fail "$p: $(cat rows)"
	done
	ag2-ask -n -m openai:x --explain <in 2>&1 >/dev/null | grep -A1 '^openai: 15 in ([0-9]*), 7 out ([0-9]*)$' | grep -q ': no part of a request$'
}

@test "the account of a stream reads all of it, and names the lines" {
	mkdir -p st/log
	for i in 1 2 3 4 5; do U $i; A $i; done >st/log/s.jsonl
	ag2-assemble -s st --stream s --explain=json sliding-window:2 2>rows >out
	[ "$(jq -s 'map(.line)' -c rows)" = '[1,2,3,4,5,6,7,8,9,10]' ]
	ag2-assemble -s st --stream s sliding-window:2 | diff out -
}

@test "alerts that wait are told where no alert policy is, those that were seen are not" {
	{ U 1; AL warning x hot; } >waits
	{ U 1; AL warning x hot; U 2; A 3; } >seen
	for how in --check --explain; do
		run -"$([ $how = --check ] && echo 1 || echo 0)" --separate-stderr ag2-assemble $how conversation <waits
		has 'no alert policy' "$stderr"
		run -0 --separate-stderr ag2-assemble $how conversation <seen
		hasnt 'no alert policy' "$stderr"
		run -0 --separate-stderr ag2-assemble $how alert conversation <waits
		hasnt 'no alert policy' "$stderr"
	done
}

@test "the text names each policy, its reasons and what is sent" {
	{ U "$(printf %040d 1)"; A "$(printf %040d 2)"; U "$(printf %040d 3)"; } >in
	ag2-assemble --explain sliding-window:1 <in 2>got >/dev/null
	diff - got <<-'END'
		events, and in brackets tokens of 4 code points
		sliding_window: 3 in (30), 2 out (20)
		    2 (20): older than what fits
		repair: 1 in (10), 0 out (0)
		sent: 10 tokens (1 event, 0 prompts, 0 tools)
		    requests: 10 (100%)
	END
	run ag2-assemble --explain=xml <in
	status_is 64
}

# Wide characters take two columns: what is wanted is aligned for the eye, not by bytes.
@test "the chart fits its terminal, labels of any script stand in columns, colour only where it is wanted" {
	need_terminal
	{
		jq -cn '("sys", "日本語のとても長い名前です本当", "naïve-é") | {type: "Prompt", data: {content: ("x" * 400), source: .}}'
		U "$(printf %4000d 1)"
		A "$(printf %400d 2)"
	} >in
	cat >want <<-'END'
		  requests                  1000  71%  ########################################
		  naïve-é                    100   7%  ####
		  responses                  100   7%  ####
		  sys                        100   7%  ####
		  日本語のとても長...        100   7%  ####
	END
	LC_ALL=C on_terminal 80 'ag2-assemble --explain <in 2>&1 >/dev/null' | grep '#' >got
	diff want got
	TERM=xterm LC_ALL=C on_terminal 80 'ag2-assemble --explain <in 2>&1 >/dev/null' >coloured
	sed 's/\x1b\[[0-9]*m//g' coloured | grep '#' | diff want -
	[ "$(grep -c "$(printf '\33\\[36m#*\33\\[0m$')" coloured)" -eq 5 ] || fail "$(cat -v coloured)"
	NO_COLOR=1 TERM=xterm LC_ALL=C on_terminal 80 'ag2-assemble --explain <in 2>&1 >/dev/null' | grep '#' | diff want -
	for columns in 60 200; do
		on_terminal "$columns" 'ag2-assemble --explain <in 2>&1 >/dev/null' >got
		[ "$(sed -n 's/^  requests  *1000  71%  //p' got | tr -d '\n' | wc -m)" -eq "$((columns < 140 ? columns - 40 : 100))" ] || fail "$(cat got)"
	done
}
