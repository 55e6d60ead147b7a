# grep over files, log grep over what was said. On other back ends through links to this file, or with AG2_TEST_STORE set: see
# backend.bash.
bats_require_minimum_version 1.5.0
load helper
load redis
load backend

put() {
	printf "$2" | ag2-store write "$1"
}

# request TIME JSON-STRING...: a request of so many parts.
request() {
	local t=$1 parts= p
	shift
	for p in "$@"; do parts="$parts${parts:+, }{\"__event__\": \"ag2.events.input_events.TextInput\", \"created_at\": $t, \"metadata\": {}, \"content\": \"$p\"}"; done
	printf '{"type": "ag2.events.input_events.ModelRequest", "data": {"created_at": %s, "parts": [%s]}}\n' "$t" "$parts"
}

answer() {
	printf '{"type": "ag2.events.types.ModelResponse", "data": {"created_at": %s, "message": {"__event__": "ag2.events.types.ModelMessage", "created_at": 2.0, "content": "%s"}, "tool_calls": {"__event__": "ag2.events.tool_events.ToolCallsEvent", "created_at": 2.0, "calls": [%s]}}}\n' "$1" "$2" "$3"
}

E_ACUTE=$(printf '\303\251')
CAPITAL=$(printf '\303\211')
PEKING=$(printf '\345\214\227\344\272\254')
EMOJI=$(printf '\360\237\230\200')

# ---- grep ----

@test "grep prints path and line, or only paths; a file's own path is not said" {
	put /memory/working.md 'Prefers tea.\nnot coffee\n'
	put /memory/other.md 'tea tea\n'
	put /a/b 'nothing'
	run -0 ag2-store grep tea
	output_is "$(printf '/memory/other.md:tea tea\n/memory/working.md:Prefers tea.')"
	run -0 ag2-store grep tea /memory/working.md
	output_is "Prefers tea."
	run -0 ag2-store grep -l tea /memory
	output_is "$(printf '/memory/other.md\n/memory/working.md')"
	run -1 --separate-stderr ag2-store grep tea /a
	output_is ""
	[ -z "$stderr" ]
	run -1 --separate-stderr ag2-store grep tea /none
	has "not in the store" "$stderr"
	run -0 ag2-store grep --json coffee
	output_is '{"path":"/memory/working.md","offset":13,"text":"not coffee"}'
}

@test "grep -l0 and xargs -0 with odd names" {
	put "/$(printf 'new\nline %%s')" 'tea'
	put "/$(printf 'tab\t\"q\"')" 'tea'
	put /plain coffee
	[ "$(ag2-store grep -l0 tea | tr -cd '\0' | wc -c)" -eq 2 ]
	ag2-store grep -l0 tea | xargs -0 ag2-store rm
	run -0 ag2-store ls /
	output_is plain
}

@test "grep: kinds of pattern" {
	put /f 'a.c\nabc\na+\naa\n[x]\n(y|z)\nDash-ed\n'
	while IFS='|' read -r options pattern want; do
		got=$(ag2-store grep $options -- "$pattern" /f | tr '\n' ' ') || [ -z "$want" ]
		[ "$got" = "$want" ] || fail "$options $pattern: '$got' instead of '$want'"
		# as grep has it
		[ "$(ag2-store cat /f | grep $options -e "$pattern" | tr '\n' ' ')" = "$want" ]
	done <<-'END'
		|a.c|a.c abc 
		-F|a.c|a.c 
		|a\.c|a.c 
		|a+|a+ 
		-E|a+$|aa 
		-E|^a{2}$|aa 
		|^a\{2\}$|aa 
		|[]x]]|[x] 
		|[]x]|[x] 
		-F|[x]|[x] 
		-E|y.z|(y|z) 
		-E|abc{0,3}|abc 
		|abz*c*|abc 
		-i|DASH-E|Dash-ed 
		-iE|^DASH[-]ED$|Dash-ed 
		|[[:upper:]]ash|Dash-ed 
		-E|D\w+-|Dash-ed 
		|no such|
	END
	run -0 ag2-store grep -E '(y\|z)|Dash' /f
	output_is "$(printf '(y|z)\nDash-ed')"
	run -64 ag2-store grep '[' /f
	has "no regular expression"
	run -64 ag2-store grep "$(printf 'a\nb')" /f
	run -64 ag2-store grep -FE a /f
	run -0 ag2-store grep '' /f
	[ "${#lines[@]}" -eq 7 ]
}

@test "grep -i folds every script, and characters are not bytes, whatever the locale" {
	put /f "caf$E_ACUTE\nCAF$CAPITAL\n\316\243\317\202\n\342\204\252elvin\n\305\277\n"
	for LC_ALL in C C.UTF-8 no_SUCH; do
		export LC_ALL
		[ "$(ag2-store grep -i "caf$E_ACUTE" /f | wc -l)" -eq 2 ]
		[ "$(ag2-store grep -i "CAF$CAPITAL" /f | wc -l)" -eq 2 ]
		[ "$(ag2-store grep -i "^caf.\$" /f | wc -l)" -eq 2 ]
		[ "$(ag2-store grep "caf[$E_ACUTE]" /f | wc -l)" -eq 1 ]
		[ "$(ag2-store grep -i "$(printf '\317\203\317\203')" /f | wc -l)" -eq 1 ]
		[ "$(ag2-store grep -iF kelvin /f | wc -l)" -eq 1 ]
		[ "$(ag2-store grep -i S /f | wc -l)" -eq 1 ]
	done
}

@test "grep: binary files, lines without end, invalid UTF-8" {
	need_terminal
	put /bin 'a\0tea\n'
	put /bad 'x\377tea\376'
	run -0 ag2-store grep tea /bin
	output_is "/bin: binary file matches"
	[ "$(ag2-store grep tea /bad | head -c 6 | od -An -tx1)" = " 78 ff 74 65 61 fe" ]
	run -0 script -qec "ag2-store grep tea /bad" /dev/null
	has 'x\xfftea\xfe'
	head -c 70000000 /dev/zero | tr '\0' x | ag2-store write /long
	run -1 ag2-store grep tea /long
}

@test "grep reads logs for what was said" {
	request 1.5 'meet me at the caf\u00e9' | ag2-store log append s
	run -0 ag2-store grep "caf$E_ACUTE"
	output_is "/log/s.jsonl  1970-01-01 00:00:01  user  meet me at the caf$E_ACUTE"
	run -0 ag2-store grep -l "caf$E_ACUTE"
	output_is /log/s.jsonl
	run -1 ag2-store grep created_at
}

# ---- log grep ----

@test "log grep finds text in every spelling" {
	request 1 'caf\u00e9 one' | ag2-store log append a
	request 2 "caf$E_ACUTE two" | ag2-store log append b
	request 3 '\u0063\u0061f\u00E9 three' | ag2-store log append c
	request 4 '\u5317\u4eac' "$PEKING" | ag2-store log append d
	request 5 '\ud83d\ude00 smile' | ag2-store log append e
	run -0 ag2-store log grep "caf$E_ACUTE"
	[ "${#lines[@]}" -eq 3 ]
	[ "${lines[0]}" = "a  1970-01-01 00:00:01  user  caf$E_ACUTE one" ]
	for p in "CAF$CAPITAL" cafe Caf; do run ag2-store log grep -iF "$p"; [ "$p" = cafe ] || [ "${#lines[@]}" -eq 3 ]; done
	[ "$(ag2-store log grep -l -i "$CAPITAL" | tr '\n' ' ')" = "a b c " ]
	[ "$(ag2-store log grep -l cafe | wc -l)" -eq 0 ]
	run -0 ag2-store log grep "$PEKING"
	output_is "d  1970-01-01 00:00:04  user  $PEKING $PEKING"
	run -0 ag2-store log grep -l "$EMOJI"
	output_is e
	run -0 ag2-store log grep -E "^$EMOJI .mile\$"
	run -1 ag2-store log grep 'u00e9'
	run -1 ag2-store log grep created_at
}

@test "log grep: a letter with an accent is one character or two, and these are different texts" {
	request 1 "composed caf$E_ACUTE" | ag2-store log append c
	request 2 'decomposed cafe\u0301' | ag2-store log append d
	run -0 ag2-store log grep -l "caf$E_ACUTE"
	output_is c
	run -0 ag2-store log grep -l "$(printf 'cafe\314\201')"
	output_is d
	run -0 ag2-store log grep -l -i "$(printf 'CAFE\314\201')"
	output_is d
}

@test "log grep: a phrase that is broken over two parts" {
	request 1 'the quick brown' 'fox jumps' | ag2-store log append s
	request 2 'New ' 'York' | ag2-store log append s
	run -0 ag2-store log grep 'brown fox'
	has "the quick brown fox jumps"
	run -0 ag2-store log grep -F 'New York'
}

@test "log grep: only the matching line of a longer text" {
	request 1 'first\nthe second one\nthird' | ag2-store log append s
	run -0 ag2-store log grep '^the .* one$'
	output_is "s  1970-01-01 00:00:01  user  the second one"
}

@test "log grep: segments, each line once; streams of which only segments are left" {
	request 1 'old apple' | ag2-store write /log/s.dropped-1.jsonl
	{ request 2 'mid apple'; request 3 'new apple'; } | ag2-store write /log/s.dropped-2.jsonl
	{ request 2 'mid apple'; request 3 'new apple'; request 4 'last apple'; } | ag2-store write /log/s.jsonl
	request 5 'gone apple' | ag2-store write /log/t.dropped-1.jsonl
	run -0 ag2-store log grep apple
	output_is "$(printf 's  1970-01-01 00:00:01  user  old apple\ns  1970-01-01 00:00:02  user  mid apple\ns  1970-01-01 00:00:03  user  new apple\ns  1970-01-01 00:00:04  user  last apple\nt  1970-01-01 00:00:05  user  gone apple')"
	run -0 ag2-store log grep -l apple s
	output_is s
}

@test "log grep: calls with their arguments decoded, results once though a container repeats them, alerts, summaries" {
	{
		answer 1 'let me see' '{"id": "c1", "name": "find", "arguments": "{\"q\": \"caf\\u00e9 needle\"}"}'
		printf '%s\n' '{"type": "ag2.events.tool_events.ToolCallEvent", "data": {"id": "c1", "name": "find", "arguments": "{\"q\": \"needle\"}"}}'
		printf '%s\n' '{"type": "ag2.events.tool_events.ToolResultEvent", "data": {"created_at": 2.0, "parent_id": "c1", "name": "t", "result": {"data": {"parts": [{"__event__": "ag2.events.input_events.TextInput", "content": "needle found"}]}}}}'
		printf '%s\n' '{"type": "ag2.events.tool_events.ToolResultsEvent", "data": {"created_at": 2.0, "results": [{"parent_id": "c1", "name": "t", "result": {"data": {"parts": [{"__event__": "ag2.events.input_events.TextInput", "content": "needle found"}]}}}]}}'
		printf '%s\n' '{"type": "ag2.events.alert.ObserverAlert", "data": {"created_at": 4.0, "source": "mon", "severity": "warning", "message": "needle low", "data": {}}}'
		printf '%s\n' '{"type": "ag2.compact.CompactionSummary", "data": {"created_at": 5.0, "summary": "a needle summary", "event_count": 7}}'
		printf '%s\n' '{"type": "my.Custom", "data": {"content": "own needle"}}'
		printf '%s\n' '{"type": "ag2.events.types.UsageEvent", "data": {"kind": "needle"}}'
	} | ag2-store log append s
	ag2-store log grep needle | sed 's/^s  1970-01-01 00:00:0/@/' >got
	cat >want <<-END
		@1  call  find({"q":"caf$E_ACUTE needle"})
		@2  result  needle found
		@4  alert  needle low
		@5  summary  a needle summary
		s  -  event  own needle
	END
	same want got
	run -0 ag2-store log grep "caf$E_ACUTE needle"
}

@test "log grep --json, -0" {
	request 1.5 'say \"tea\"' | ag2-store log append s
	run -0 ag2-store log grep --json tea
	output_is '{"stream":"s","time":1.5,"role":"user","text":"say \"tea\""}'
	run -0 ag2-store log grep --json -l tea
	output_is '{"stream":"s"}'
	[ "$(ag2-store log grep -l0 tea | od -An -c | tr -d ' ')" = 's\0' ]
}

@test "log grep --since and --until" {
	for t in 1780000000 1780086400 1780172800; do request $t.5 "tea $t"; done | ag2-store log append s
	printf '%s\n' '{"type": "my.Custom", "data": {"content": "tea without time"}}' | ag2-store log append s
	# 1780000000 is 2026-05-28T20:26:40Z
	export AG2_NOW=1780180000
	while IFS='|' read -r options want; do
		got=$(ag2-store log grep $options tea | grep -o 'tea [0-9w].*' | tr '\n' ' ') || [ -z "$want" ]
		[ "$got" = "$want" ] || fail "$options: '$got' instead of '$want'"
	done <<-'END'
		--since=2026-05-29|tea 1780086400 tea 1780172800 
		--until=2026-05-29|tea 1780000000 
		--since=2026-05-28T20:26:40Z|tea 1780000000 tea 1780086400 tea 1780172800 
		--since=2026-05-28T20:26:41Z|tea 1780086400 tea 1780172800 
		--since=2026-05-28T22:26:41+02:00|tea 1780086400 tea 1780172800 
		--since=yesterday|tea 1780086400 tea 1780172800 
		--since=today|tea 1780172800 
		--since=1d|tea 1780172800 
		--since=2d|tea 1780086400 tea 1780172800 
		--since=36h --until=3h|tea 1780086400 
		--since=90m|
		--since=7d|tea 1780000000 tea 1780086400 tea 1780172800 
		--since=@1780086400|tea 1780086400 tea 1780172800 
		|tea 1780000000 tea 1780086400 tea 1780172800 tea without time 
	END
	for bad in '' x 7 7y 2026-13-01 2026-05-28T25:00 2026-05-28x -1d 99999999999d \
		2026-02-29 2026-04-31 2100-02-29 2026-05-28T10:20+24:00 2026-05-28T10:20+02:60; do
		run -64 ag2-store log grep --since="$bad" tea
		has "--since is a date"
	done
	unset AG2_NOW
	TZ=Europe/Berlin run -0 ag2-store log grep --since='2026-05-28 22:26:40' 'tea 1780000000'
}

@test "log grep: bad lines are named and passed over, none of the rest is lost" {
	{ request 1 'good tea'; printf '{"type": "X", tea\n'; request 2 'more tea' | head -c -1; } | ag2-store write /log/s.jsonl
	run -0 --separate-stderr ag2-store log grep tea
	[ "${#lines[@]}" -eq 2 ]
	has "s: line at offset" "$stderr"
	run -66 ag2-store log grep tea no-such-stream
}

@test "log grep in 10 000 streams; a match in one" {
	mkdir -p many/log
	(cd many/log && yes '{"type": "X", "data": {"content": "hay"}}' | head -n 10000 | split -l 1 -a 4 -d --additional-suffix=.jsonl - s)
	request 1 'a needle' >>many/log/s0777.jsonl
	request 1 "to $PEKING" >>many/log/s1234.jsonl
	request 1 'un caf\u00e9' >>many/log/s5000.jsonl
	request 1 "smile $EMOJI" >>many/log/s8888.jsonl
	request 1 'the quick brown' 'fox jumps' >>many/log/s9999.jsonl
	while IFS='|' read -r pattern want; do
		run -0 ag2-store -s disk:many log grep -l "$pattern"
		output_is "$want"
	done <<-END
		needle|s0777
		$PEKING|s1234
		caf$E_ACUTE|s5000
		$EMOJI|s8888
		brown fox|s9999
	END
	run -1 ag2-store -s disk:many log grep -l nothing
}

@test "what is found is the same with and without the sieve" {
	head -c 2000000 <("$TOOLS/genlog" 3000000) | head -n -1 >in
	ag2-store log append s <in
	for p in store 'lock' 'REads' 'version.*store' 'st[o]re'; do
		for o in '' -i; do
			ag2-store log grep $o "$p" >one || true
			# an alternative takes the sieve away
			ag2-store log grep $o -E "$p|zzzzzz" >two || true
			same two one
		done
	done
	[ -s one ]
}

@test "log grep on a terminal: controls are shown, a pipe gets them" {
	need_terminal
	request 1 'tea \u001b[31m\u202ered' | ag2-store log append s
	run -0 script -qec "ag2-store log grep tea" /dev/null
	has '\x1b[31m\xe2\x80\xaered'
	ag2-store log grep tea | grep -q "$(printf '\033\[31m')"
	run -0 env TERM=xterm script -qec "ag2-store log grep tea" /dev/null
	has "$(printf '\033[1;31mtea\033[0m')"
	run -0 env TERM=xterm NO_COLOR=1 script -qec "ag2-store log grep tea" /dev/null
	hasnt "$(printf '\033[')"
}

@test "log grep on several processors: all that one processor finds, in the same order, the first hit for -l" {
	for s in a b c; do { "$TOOLS/genlog" 1500000 "${#s}$(printf %d "'$s")"; request 9 'the needle'; "$TOOLS/genlog" 1500000 7; } | ag2-store write /log/$s.jsonl; done
	for i in $(seq 40); do request "$i" 'small needle'; done | ag2-store write /log/d.jsonl
	while read -r options; do
		ag2-store log grep $options >many
		taskset -c "$(taskset -cp $$ | sed 's/.*: \([0-9]*\).*/\1/')" "$BIN/ag2-store" log grep $options >one
		same one many
		[ -s many ]
	done <<-'END'
		lock
		-i needle
		-l needle
		-l LOCK -i
		--json caf
	END
	[ "$(ag2-store log grep needle | wc -l)" -eq 43 ]
	[ "$(ag2-store log grep -l needle | tr '\n' ' ')" = "a b c d " ]
	# a reader that goes away, and a line that is broken far behind
	run ! bash -c 'set -o pipefail; ag2-store log grep lock | head -n 1 >first'
	[ "$(wc -l <first)" -eq 1 ]
	printf '{"type": "X", needle\n' | ag2-store append /log/b.jsonl >offset
	run -0 --separate-stderr ag2-store log grep needle
	[ "${#lines[@]}" -eq 43 ]
	has "b: line at offset $(cat offset)" "$stderr"
}

@test "log grep: ids of calls that come again in the next round do not hide its results" {
	result='{"parent_id": "call_1", "name": "t", "result": {"data": {"parts": [{"content": "needle %s"}]}}}'
	for n in 1 2; do
		answer $n quiet '{"id": "call_1", "name": "t", "arguments": "{}"}'
		printf '{"type": "ag2.events.tool_events.ToolResultEvent", "data": '"$result"'}\n' $n
		printf '{"type": "ag2.events.tool_events.ToolResultsEvent", "data": {"results": ['"$result"']}}\n' $n
	done | ag2-store write /log/s.jsonl
	run -0 ag2-store log grep needle
	output_is "$(printf 's  -  result  needle 1\ns  -  result  needle 2')"
}
