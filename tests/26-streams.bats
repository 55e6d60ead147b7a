# Streams as a whole: transcripts in parts, what there is of each, following, removing. On disk; with AG2_TEST_BACKEND set
# on sqlite or redis.
bats_require_minimum_version 1.5.0
load helper
load redis

setup() {
	clean_environment
	case ${AG2_TEST_BACKEND:-$BATS_TEST_FILENAME} in
	*sqlite*) export AG2_STORE=sqlite:$TMP/store.db ;;
	redis)
		redis_start
		export AG2_STORE=$url
		;;
	*) export AG2_STORE=disk:$TMP/store ;;
	esac
}

teardown() {
	[ -z "${follower:-}" ] || { kill -KILL "$follower"; wait "$follower"; } 2>/dev/null || true
	[ "${AG2_TEST_BACKEND:-}" != redis ] || redis_stop
}

U() {
	printf '{"type": "ag2.events.input_events.ModelRequest", "data": {"created_at": %s, "parts": [{"__event__": "ag2.events.input_events.TextInput", "created_at": 0.5, "metadata": {}, "content": "%s"}]}}\n' "$2" "$1"
}

# A TEXT TIME [PROMPT COMPLETION CACHED]
A() {
	printf '{"type": "ag2.events.types.ModelResponse", "data": {"created_at": %s, "usage": {"__dataclass__": "ag2.events.types.Usage", "data": {"prompt_tokens": %s, "completion_tokens": %s, "cache_read_input_tokens": %s}}, "message": {"__event__": "ag2.events.types.ModelMessage", "content": "%s"}, "tool_calls": {"calls": []}}}\n' "$2" "${3:-null}" "${4:-null}" "${5:-null}" "$1"
}

# ---- show ----

@test "log show: turns, usage and cached share; --last, --since, --full, --plain" {
	{
		U one 1.5
		A 'first answer' 2.5 1000 20 800
		U two 90000
		printf '%s\n' '{"type": "ag2.events.types.ModelResponse", "data": {"created_at": 90001, "message": null, "tool_calls": {"calls": [{"id": "c1", "name": "look", "arguments": "{\"a\": 1}"}]}}}'
		jq -nc --arg t "$(printf 'line one\nline two %s' "$(printf '%090d' 0)")" '{type: "ag2.events.tool_events.ToolResultsEvent", data: {results: [{parent_id: "c1", name: "look", result: {data: {parts: [{__event__: "ag2.events.input_events.TextInput", content: $t}]}}}]}}'
		A 'second answer' 90002 100 5 300
		printf '%s\n' '{"type": "ag2.events.types.UsageEvent", "data": {"created_at": 90003, "kind": "compaction", "usage": {"data": {"prompt_tokens": 7, "completion_tokens": 3}}}}'
		U three 180000
	} | ag2-store log append s
	ag2-store log show s >got
	cat >want <<-END
		Stream s

		User  1970-01-01 00:00:01  turn 1
		one

		Assistant  1970-01-01 00:00:02  1000 tokens in (80 % cached), 20 out
		first answer

		User  1970-01-02 01:00:00  turn 2
		two

		Assistant  1970-01-02 01:00:01
		  -> look({"a": 1})
		  <- [108 B] line one line two $(printf '%046d' 0)...

		Assistant  1970-01-02 01:00:02  400 tokens in (75 % cached), 5 out
		second answer
		  * compaction: 7 tokens in, 3 out

		User  1970-01-03 02:00:00  turn 3
		three
	END
	same want got
	ag2-store log show --last 1 s >got
	{ head -n 2 want; tail -n 2 want; } >some
	same some got
	ag2-store log show --last=2 s >got
	{ head -n 2 want; sed -n '/turn 2/,$p' want; } >some
	same some got
	ag2-store log show --last=9 s >got
	same want got
	for t in 1970-01-02 @90000; do
		ag2-store log show --since=$t s >got
		{ head -n 2 want; sed -n '/turn 2/,$p' want; } >some
		same some got
	done
	run -0 ag2-store log show --full s
	has "  <- [108 B] line one"
	has "     line two $(printf '%090d' 0)"
	run -64 ag2-store log show --since=whenever s
	ag2-store log show --plain --last 1 s >got
	echo 'User: three' >some
	same some got
	ag2-store log cat s | ag2-store log show --plain - >got
	ag2-store log show --plain s >some
	same some got
	[ "$(head -n 2 got)" = "$(printf 'User: one\nAssistant: first answer')" ]
}

@test "log show --plain: telemetry says nothing, everything else a line or more" {
	ag2-store log append s <"$GOLDEN/log_sample.jsonl"
	ag2-store log show --plain s >got
	grep -q '^User: ' got
	grep -q '^Assistant: ' got
}

@test "log show -: a stream on standard input, its prompts, its bad lines" {
	run -0 bash -c "{ printf '%s\n' '{\"type\": \"Prompt\", \"data\": {\"content\": \"Be kind.\"}}'; cat; } | ag2-store log show -" < <(U hello 1.5)
	output_is "$(printf 'Prompt\nBe kind.\n\nUser  1970-01-01 00:00:01  turn 1\nhello')"
	run -65 --separate-stderr bash -c 'echo no json | ag2-store log show -'
	has "stdin:1: byte 1" "$stderr"
}

@test "log show marks segments" {
	U old 1 | ag2-store write /log/s.dropped-1.jsonl
	{ U mid 2; U mid2 3; } | head -c -1 | ag2-store write /log/s.dropped-2.jsonl
	{ printf '%s\n' '{"type": "ag2.compact.CompactionSummary", "data": {"created_at": 5.0, "summary": "We spoke.", "event_count": 3}}'; U new 4; } | ag2-store log append s
	ag2-store log show s >got
	cat >want <<-'END'
		Stream s

		── segment 1, dropped by compaction ──

		User  1970-01-01 00:00:01  turn 1
		old

		── segment 2, dropped by compaction ──

		User  1970-01-01 00:00:02  turn 2
		mid

		User  1970-01-01 00:00:03  turn 3
		mid2

		── current log ──

		Summary of 3 events  1970-01-01 00:00:05
		We spoke.

		User  1970-01-01 00:00:04  turn 4
		new
	END
	same want got
}

@test "log show wraps to the terminal, wide characters and marks counted as they stand" {
	need_terminal
	wide=$(printf '\345\214\227%.0s' $(seq 100))
	{ U "$wide" 1; U "$(printf 'word %.0s' $(seq 60))end" 2; U "$(printf 'e\314\201%.0s' $(seq 58)) x" 3; } | ag2-store log append s
	for w in 60 80 200; do
		for LC_ALL in C C.UTF-8; do
			export LC_ALL
			TERM=xterm on_terminal $w 'ag2-store log show s' >got
			n=$(grep -a "$(printf '\345\214\227')" got | head -n 1 | tr -d '\n' | wc -c)
			[ $((n / 3 * 2)) -eq $((w > 200 ? 200 : w)) ] || fail "$w: $n bytes"
			[ "$(grep -a '^word' got | awk '{ if (length($0) > n) n = length($0) } END { print n }')" -le $w ]
			! grep -aq 'wor$' got
		done
	done
	grep -aq "$(printf 'e\314\201 x')" got
	run -0 env NO_COLOR=1 TERM=xterm script -qec "ag2-store log show s" /dev/null
	hasnt "$(printf '\033[')"
	run -0 env TERM=xterm script -qec "ag2-store log show s" /dev/null
	has "$(printf '\033[')"
}

# ---- ls -l ----

@test "log ls -l: turns, tokens, size, last activity; upkeep, scrubbed on a terminal" {
	need_terminal
	{ U 'twelve chars' 1780000000; A 'eight ch' 1780000060; U x 1780000120; } | ag2-store log append s
	U y 1 | ag2-store log append t
	echo '{"type": "ag2.events.lifecycle.CompactionFailed", "data": {"created_at": 1780000200.5, "error_type": "X", "error": "no key \u001b[31m"}}' |
		ag2-store write /.ag2/status/s/CompactionFailed
	run -0 ag2-store log ls -l
	[[ ${lines[0]} =~ ^\ +2\ +5\ +[0-9.]+K?\ \ 2026-05-28\ 20:28\ \ s\ \ .*no\ key ]] || fail "$output"
	[[ ${lines[1]} =~ ^\ +1\ +0\ +[0-9.]+K?\ \ 1970-01-01\ 00:00\ \ t$ ]] || fail "$output"
	TERM=xterm run -0 on_terminal 80 "ag2-store log ls -l"
	has 'no key \x1b[31m'
	has "last activity"
	run -0 ag2-store log ls --json
	[ "$(jq -c '[.stream, .turns, .events, .tokens, .last]' <<<"${lines[0]}")" = '["s",2,3,5,1780000120]' ] || fail "$output"
	[ "$(jq -c '[.stream, .turns, .upkeep]' <<<"${lines[1]}")" = '["t",1,null]' ]
}

# ---- tail -f ----

start_following() {
	ag2-store log tail "$@" >got 2>err &
	follower=$!
}

lines_are() {
	[ "$(wc -l <got)" -ge "$1" ]
}

@test "log tail -f: appended lines come, each once, also across compaction" {
	for i in 1 2 3 4 5; do U "m$i" "$i"; done | ag2-store log append s
	for i in 1 2 3 4 5; do U "m$i" "$i"; done >all
	start_following -f -n 2 s
	wait_for 20 lines_are 2
	U m6 6 | tee -a all | ag2-store log append s
	wait_for 20 lines_are 3
	# compaction: all but the last line goes into a segment
	head -n 5 all | ag2-store write /log/s.dropped-1.jsonl
	{ U summary 7 | tee summary; tail -n 1 all; } | ag2-store write /log/s.jsonl
	U m8 8 | tee -a all | ag2-store log append s
	wait_for 20 lines_are 4
	# and one that drops also what was never printed: written before the follower looks
	kill -STOP $follower
	{ U m9 9; U m10 10; } | tee -a all | ag2-store log append s
	ag2-store cat /log/s.jsonl | ag2-store write /log/s.dropped-2.jsonl
	U m11 11 | tee -a all | ag2-store write /log/s.jsonl
	kill -CONT $follower
	wait_for 20 lines_are 7
	tail -n +4 all >want
	same want got
	[ ! -s err ]
	kill $follower
}

@test "log tail -f: a log without its last newline, a line that is not ended yet, a log rewritten whole" {
	U m1 1 | head -c -1 | ag2-store write /log/s.jsonl
	start_following -f s
	wait_for 20 lines_are 1
	{ U m1 1; U m2 2; } | head -c -1 | ag2-store write /log/s.jsonl
	wait_for 20 lines_are 2
	printf '\n{"type": "X", ' | ag2-store append /log/s.jsonl
	U other 5 | ag2-store write /log/other.jsonl
	printf '"data": {}}\n' | ag2-store append /log/s.jsonl
	wait_for 20 lines_are 3
	{ U m1 1; U m2 2; echo '{"type": "X", "data": {}}'; } >want
	same want got
	[ ! -s err ] || fail "$(cat err)"
	# removed, and begun again
	ag2-store rm /log/s.jsonl
	U fresh 9 | tee -a want | ag2-store log append s
	wait_for 20 lines_are 4
	same want got
}

@test "log tail -f: lines that are all alike come each once, whatever compactions and undos move" {
	for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do U same 1; done | ag2-store log append s
	start_following -f -n 3 s
	wait_for 20 lines_are 3
	n=3
	for round in 1 2 3 4 5 6 7 8 9 10 11 12; do
		# in half of the rounds all of it comes between two looks, in the others beside them
		[ $((round % 2)) -eq 0 ] || kill -STOP $follower
		for i in $(seq $((1 + round % 4))); do U same 1; done | ag2-store log append s
		n=$((n + 1 + round % 4))
		case $((round % 3)) in
		0) ag2-compact --stream s -i tail-window:2 ;;
		1)
			ag2-compact --stream s -i exec:'echo "{\"type\": \"S\", \"data\": {\"n\": '$round'}}"; tail -n 3'
			U same 1 | ag2-store log append s
			n=$((n + 1))
			ag2-compact --stream s --undo
			;;
		2)
			ag2-compact --stream s --undo || [ $? -eq 1 ]
			U same 1 | ag2-store log append s
			n=$((n + 1))
			ag2-compact --stream s -i -m exec:'echo short' summarize:4
			;;
		esac
		kill -CONT $follower
		[ $((round % 4)) -ne 0 ] || wait_for 20 lines_are $n
	done
	U end 2 | ag2-store log append s
	wait_for 20 eval 'grep -q end got'
	[ "$(grep -c '"same"' got)" -eq $n ] || fail "$(grep -c '"same"' got) instead of $n"
	[ "$(tail -n 1 got)" = "$(U end 2)" ]
	[ ! -s err ] || fail "$(cat err)"
}

@test "log tail -f: compactions that are undone at once do not end it, and each line comes once" {
	U same 1 | ag2-store log append s
	start_following -f s
	wait_for 20 lines_are 1
	for round in $(seq 50); do
		{ U same 1; U same 1; U same 1; U same 1; } | ag2-store log append s
		ag2-compact --stream s -i tail-window:1
		ag2-compact --stream s --undo
	done
	U end 2 | ag2-store log append s
	wait_for 20 eval 'grep -q end got'
	[ "$(grep -c '"same"' got)" -eq 201 ] || fail "$(grep -c '"same"' got) instead of 201"
	[ ! -s err ] || fail "$(cat err)"
}

@test "log tail -f: what was cut off unseen from among lines that are alike comes, each line once" {
	for i in 1 2 3 4 5 6 7 8 9 10; do U same 1; done | ag2-store log append s
	start_following -f -n 1 s
	wait_for 20 lines_are 1
	kill -STOP $follower
	for i in 1 2 3 4 5 6 7; do U same 1; done | ag2-store log append s
	ag2-compact --stream s -i tail-window:4
	for i in 1 2 3; do U same 1; done | ag2-store log append s
	ag2-compact --stream s -i tail-window:2
	U end 2 | ag2-store log append s
	kill -CONT $follower
	wait_for 20 eval 'grep -q end got'
	{ for i in 1 2 3 4 5 6 7 8 9 10 11; do U same 1; done; U end 2; } >want
	same want got
	kill $follower
}

@test "log tail -f: a line taken out or changed by hand repeats none, and what comes then is new" {
	for i in 1 2 3 4 5 6 7 8; do U "m$((i % 4))" 1; done >all
	ag2-store log append s <all
	start_following -f -n 2 s
	wait_for 20 lines_are 2
	tail -n 2 all >want
	# the last one, of which there is an equal one before
	head -n 7 all | ag2-store write /log/s.jsonl
	U n1 1 | tee -a want | ag2-store log append s
	wait_for 20 lines_are 3
	# the one before the last, and the last two in one
	{ head -n 6 all; U changed 1; U n1 1; } | ag2-store write /log/s.jsonl
	U n2 1 | tee -a want | ag2-store log append s
	wait_for 20 lines_are 4
	{ head -n 6 all; U changed 1; } | ag2-store write /log/s.jsonl
	U n3 1 | tee -a want | ag2-store log append s
	wait_for 20 lines_are 5
	# one that is far before
	{ head -n 2 all; sed -n '4,6p' all; U changed 1; U n3 1; } | ag2-store write /log/s.jsonl
	U n4 1 | tee -a want | ag2-store log append s
	wait_for 20 lines_are 6
	same want got
	[ ! -s err ] || fail "$(cat err)"
	kill $follower
}

@test "log tail -f -n 0 prints only what is new; it ends when its reader goes" {
	U old 1 | ag2-store log append s
	mkfifo pipe
	ag2-store log tail -f -n 0 s >pipe &
	follower=$!
	exec 7<pipe
	# when it has begun is not seen: the first line that comes tells
	i=0 line=
	while [ -z "$line" ] && [ $((i += 1)) -le 100 ]; do
		U "m$i" 1 | ag2-store log append s
		IFS= read -r -u 7 -t 0.2 line || true
	done
	hasnt old "$line"
	has '"content": "m' "$line"
	U last 2 | ag2-store log append s
	while [ "$line" != "$(U last 2)" ]; do
		IFS= read -r -u 7 -t 20 line
		hasnt old "$line"
	done
	exec 7<&-
	wait_for 20 eval '! kill -0 $follower'
	follower=
	run -66 ag2-store log tail -f none
}

# ---- rm, prune ----

everything() {
	local id=$1
	U x 1 | ag2-store log append "$id"
	U y 1 | ag2-store write "/log/$id.dropped-1.jsonl"
	echo z | ag2-store write "/log/$id.torn-1"
	echo e | ag2-store write "/memory/conversations/20260528T102030_$id.md"
	echo c | ag2-store write "/.ag2/aggregate/key/$id"
	echo c | ag2-store write "/.ag2/undo/$id/1"
	echo c | ag2-store write "/.ag2/status/$id/CompactionFailed"
	echo c | ag2-store write "/.ag2/history/memory/conversations/$id.md/1.2"
	echo c | ag2-store write "/.ag2/history/log/$id.jsonl/1.2"
	echo c | ag2-store write "/.ag2/history/log/$id.dropped-1.jsonl/1.2"
}

@test "log rm removes all there is of a stream, and nothing of another" {
	everything b
	everything a_b
	everything a
	ag2-store write /memory/working.md <<<keep
	ag2-store ls -aR | grep -v lock >before
	run -0 ag2-store log rm b a
	output_is ""
	ag2-store ls -aR | grep -v lock >after
	grep -v -e '/[a-z./]*/b[./]' -e '/b$' -e '/a[./]' -e '/a$' -e '_b.md' -e '_a.md' before >want || true
	grep -e a_b before >>want
	sort -u want >w
	sort -u after >g
	same w g
	[ "$(grep -c a_b after)" -ge 8 ]
	run -66 ag2-store log rm b
	has "no stream 'b'"
	run -66 ag2-store log rm b a_b
	run -1 ag2-store exists /log/a_b.jsonl
}

@test "log rm leaves nothing that names the stream, whatever upkeep kept of it" {
	export AG2_MODEL='exec:cat >/dev/null; echo In short.'
	for id in gone-1 kept-1; do
		for i in 1 2 3 4 5; do U "question $i" $i; done | ag2-store log append $id
		ag2-compact --stream $id -i summarize:2
		ag2-aggregate --stream $id conversation-summary
		ag2-aggregate --stream $id 'exec:cat >/dev/null'
		run ag2-aggregate --stream $id 'exec:exit 1 # again'
		U more 9 | ag2-store log append $id
		ag2-aggregate --stream $id conversation-summary
		ag2-ask -s "$AG2_STORE" --stream $id -m exec:true --compare last hello 2>/dev/null || true
	done
	for i in 1 2; do ag2-aggregate --all 'exec:cat >/dev/null'; done
	ag2-store ls -aR | grep -c gone-1 >before
	[ "$(cat before)" -ge 12 ]
	ag2-store log rm gone-1
	for path in $(ag2-store ls -aR1 / | grep -v -e '/$' -e '^/.ag2/locks\{0,1\}$'); do
		hasnt gone-1 "$path"
		! ag2-store cat "$path" | grep -F gone-1 || fail "$path names it"
	done
	[ "$(ag2-store ls -aR | grep -c kept-1)" -eq "$(cat before)" ]
	ag2-aggregate --stream kept-1 --undo conversation-summary
}

@test "a message is taken out of a log with edit; what it said goes with the old version, or with log rm" {
	for id in s s.jsonl; do
		{ U 'my secret' 1; U 'no harm' 2; } | ag2-store log append $id
		EDITOR='sed -i /secret/d' ag2-store edit /log/$id.jsonl
		run -0 ag2-store log show --plain $id
		output_is "User: no harm"
	done
	run -0 ag2-store history /log/s.jsonl
	ag2-store log rm s
	run -1 ag2-store history /log/s.jsonl
	run -0 ag2-store history /log/s.jsonl.jsonl
	ag2-store rm -r /.ag2/history/log/s.jsonl.jsonl
	ag2-store export >store.tar
	! grep -a secret store.tar || fail "it is still in the store"
}

@test "log rm: not while a turn or a compaction is under way, and what an aggregation made meanwhile is not kept" {
	everything s
	run -75 ag2-store lock /log/s.jsonl -- ag2-store log rm s
	has "in use"
	ag2-store exists /log/s.jsonl
	run -0 ag2-store lock /log/s.jsonl -- ag2-store log prune --older-than=@9999999999
	ag2-store exists /log/s.jsonl
	run -0 ag2-compact --stream s -i 'exec:ag2-store log rm s; echo $? >rm; cat'
	[ "$(cat rm)" -eq 75 ]
	run -66 ag2-aggregate --stream s -m "exec:ag2-store log rm s; echo '{\"type\": \"UsageEvent\", \"data\": {\"usage\": {\"data\": {\"total_tokens\": 5}}}}'; echo '{\"type\": \"ModelResponse\", \"data\": {\"message\": {\"content\": \"x\"}}}'" conversation-summary
	run -0 ag2-store log ls -l
	output_is ""
	run bash -c 'ag2-store ls -aR1 / | grep -v -e "/$" -e "^/.ag2/locks*$"'
	output_is ""
}

@test "log prune killed before any one of its system calls: a stream is there whole, or gone" {
	"$TOOLS/killat" 1 true || [ $? -ne 77 ] || skip "no ptrace here"
	for AG2_STORE in disk:$TMP/walk sqlite:$TMP/walk.db; do
		export AG2_STORE
		left() { ag2-store ls -aR | grep -v -e '/$' -e lock | grep -c whole || true; }
		whole=0 gone=0 step=${SOAK:-11}	# SOAK is 1: every call
		for ((k = 1; ; k += step)); do
			[ "$(left)" -gt 0 ] || everything whole
			n=$(left)
			rc=0
			"$TOOLS/killat" "$k" ag2-store log prune --older-than @9999999999 || rc=$?
			[ "$rc" -le 1 ] || fail "call $k: killat gave $rc"
			[ "$(left)" -eq 0 ] || [ "$(left)" -eq "$n" ] || fail "$AG2_STORE: killed before call $k: $(left) of $n are left"
			if [ "$(left)" -eq 0 ]; then gone=$((gone + 1)); else whole=$((whole + 1)); fi
			[ "$rc" -eq 0 ] || break
		done
		[ "$(left)" -eq 0 ] && [ "$whole" -gt 2 ] && [ "$gone" -gt 0 ] || fail "$AG2_STORE: whole $whole, gone $gone"
	done
}

@test "log prune: only what is older; -n only says" {
	everything old
	everything new
	now=$(ag2-store stat --json /log/new.jsonl | jq .modified)
	export AG2_NOW
	AG2_NOW=$(awk -v t="$now" 'BEGIN { printf "%.0f", t + 10 * 86400 }')
	run -0 ag2-store log prune --older-than 11d
	[ "$(ag2-store log ls | wc -l)" -eq 2 ]
	run -0 ag2-store log prune -n --older-than 9d
	output_is "$(printf 'new\nold')"
	[ "$(ag2-store log ls | wc -l)" -eq 2 ]
	run -0 ag2-store log prune --older-than 9d
	output_is ""
	run -0 ag2-store log ls
	output_is ""
	[ -z "$(ag2-store ls -aR | grep -e old -e new)" ]
	run -64 ag2-store log prune
	run -64 ag2-store log prune --older-than soon
}
