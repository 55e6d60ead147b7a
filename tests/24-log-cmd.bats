# The commands of `ag2-store log`. The same tests run on other back ends through links to this file, or with AG2_TEST_STORE set:
# see backend.bash.
bats_require_minimum_version 1.5.0
load helper
load redis
load backend

# Event lines.
U() {
	printf '{"type": "ag2.events.input_events.ModelRequest", "data": {"created_at": 1.5, "parts": [{"__event__": "ag2.events.input_events.TextInput", "created_at": 0.5, "metadata": {}, "content": "%s"}]}}\n' "$1"
}

A() {
	printf '{"type": "ag2.events.types.ModelResponse", "data": {"created_at": 2.5, "message": {"__event__": "ag2.events.types.ModelMessage", "created_at": 2.0, "content": "%s"}, "tool_calls": {"__event__": "ag2.events.tool_events.ToolCallsEvent", "created_at": 2.0, "calls": []}}}\n' "$1"
}

# C TEXT NAME ARGUMENTS: a response with one call, c1.
C() {
	jq -nc --arg t "$1" --arg n "$2" --arg a "$3" '{type: "ag2.events.types.ModelResponse", data: {created_at: 3.5, message: {content: $t}, tool_calls: {calls: [{id: "c1", name: $n, arguments: $a}]}}}'
}

# R TEXT: the results container for c1.
R() {
	jq -nc --arg t "$1" '{type: "ag2.events.tool_events.ToolResultsEvent", data: {results: [{parent_id: "c1", name: "t", result: {data: {parts: [{__event__: "ag2.events.input_events.TextInput", content: $t}]}}}]}}'
}

raw() {
	ag2-store write "/log/$1.jsonl"
}

# The sanitizers reserve more address space than ulimit -v would leave.
limited() {
	case $BIN in
	*asan*) bash -c "$2" ;;
	*) bash -c "ulimit -v $1; $2" ;;
	esac
}

# ---- ids ----

@test "log new begins an empty stream and prints its id, a UUID" {
	run -0 --separate-stderr ag2-store log new
	[[ $output =~ ^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$ ]]
	id=$output
	run -0 ag2-store log ls
	output_is "$id"
	run -0 ag2-store log cat "$id"
	output_is ""
	[ "$(ag2-store log new)" != "$id" ]
}

@test "@last is the stream last written to, 66 where there is none" {
	ag2-store init >/dev/null
	run -66 ag2-store log cat @last
	has @last
	ag2-store log user one 1
	ag2-store log user two 2
	ag2-store log user one 3
	ag2-store write /memory/working.md <<<later
	[ "$(ag2-store log cat @last)" = "$(ag2-store log cat one)" ]
	ag2-store log user @last 4
	[ "$(ag2-store log cat one | wc -l)" -eq 3 ]
}

@test "@new is a fresh stream, told on standard error" {
	run -0 --separate-stderr ag2-store log user @new hello
	output_is ""
	id=${stderr##* }
	[[ $id =~ ^[0-9a-f-]{36}$ ]]
	ag2-store log cat "$id" | grep -q hello
	U again >line
	run -0 --separate-stderr ag2-store log append @new <line
	[ "${stderr##* }" != "$id" ]
	[ "$(ag2-store log ls | wc -l)" -eq 2 ]
}

@test "an id that may not name a stream is 64, before anything is written" {
	for id in .x a/b 'a b' ../x x.dropped-1 x.torn-1 @nope "$(printf '%0201d' 0)" '' é; do
		for c in cat show answer append tail; do
			U x >line
			run ag2-store log $c "$id" <line
			[ "$status" -eq 64 ] || [ "$status" -eq 66 ] || fail "$c '$id': $status"
		done
		run ag2-store log user "$id" text
		status_is 64
	done
	[ ! -e "${AG2_STORE#*:}" ] || [ -z "$(ag2-store ls -R)" ]
}

@test "a stream that is not there is 66" {
	ag2-store init >/dev/null
	for c in cat show answer tail; do
		run ag2-store log $c nope
		status_is 66
		has nope
	done
}

@test "log ls gives the streams, not their parts; -l figures" {
	ag2-store init >/dev/null
	U x | raw b
	U x | raw a
	U x | ag2-store write /log/a.dropped-1.jsonl
	echo x | ag2-store write /log/a.torn-1
	echo x | ag2-store write /log/.hidden.jsonl
	run -0 ag2-store log ls
	output_is "$(printf 'a\nb')"
	run -0 ag2-store log ls -l
	[[ ${lines[0]} =~ ^\ +1\ +0\ +[0-9]+\ \ 1970-01-01\ 00:00\ \ a$ ]] || fail "${lines[0]}"
}

# ---- append ----

@test "every kind of event comes back byte for byte, transient ones are not kept" {
	jq -r .line "$GOLDEN/serialization.jsonl" >in
	jq -r 'select(.transient | not) | .line' "$GOLDEN/serialization.jsonl" >want
	[ "$(wc -l <want)" -lt "$(wc -l <in)" ]
	ag2-store log append s <in
	ag2-store log cat --current s >got
	same want got
	ag2-store cat /log/s.jsonl >got
	same want got
}

@test "lines keep their spelling: escapes, numbers, blanks, unknown fields, CR, duplicate keys" {
	cat >in <<-'END'
		{"type":"X","data":{"n":1.50,"big":2512292042121000001,"e":1E+2,"s":"\u00e9\/"}}
		  { "zzz" : [ ] , "type" : "no.such.Thing" , "data" : { "x" : NaN } }  
		{"type":"A","type":"B","data":[],"data":{"a":1,"a":2}}
		{"type":"X","data":{"s":"\ud99c ok"}}
		{"type":"X","data":{"a\u0000x":1,"a\u0000y":2,"s":"a\u0000b"}}
	END
	printf '{"type":"X","data":{}}\r\n' >>in
	ag2-store log append s <in
	ag2-store log cat s >got
	same in got
}

@test "append: nothing is written when any line is bad, and the line is named" {
	U first | ag2-store log append s
	ag2-store cat /log/s.jsonl >before
	n=0
	while IFS= read -r bad; do
		n=$((n + 1))
		{ U good; printf '%s\n' "$bad"; U good; } >in
		run -65 ag2-store log append s <in
		has "stdin:2: byte "
		ag2-store cat /log/s.jsonl >after
		same before after
	done <<-'END'
		{"type":"X","data":{}
		{"type":"X","data":{}} junk
		{"type":"X","data":{"a":1,}}
		{'type':'X','data':{}}
		{"type":"X","data":{"a":01}}
		/*c*/{"type":"X","data":{}}
		{"type":"X"}
		{"data":{}}
		{"type":1,"data":{}}
		{"type":"X","data":[]}
		{"type":"X","data":{},"data":null}
		[1]
		"x"
		x
	END
	[ "$n" -eq 14 ]
	printf '{"type":"X","data":{"a":"\xff"}}\n' >in
	run -65 ag2-store log append s <in
	printf '{"type":"X","data":{"a":"\0"}}\n' >in
	run -65 ag2-store log append s <in
	printf '\0\0\0\0\n' >in
	run -65 ag2-store log append s <in
	ag2-store cat /log/s.jsonl >after
	same before after
}

@test "append: empty input writes nothing and makes nothing" {
	run -0 ag2-store log append s </dev/null
	run -0 ag2-store log append s <<<"

	"
	[ ! -e "${AG2_STORE#*:}" ] || [ -z "$(ag2-store ls -R)" ]
}

@test "append: no final newline, a BOM, blank lines" {
	{ printf '\xef\xbb\xbf'; U one; printf '\n  \n'; U two | tr -d '\n'; } >in
	ag2-store log append s <in
	{ U one; U two; } >want
	ag2-store cat /log/s.jsonl >got
	same want got
}

@test "append: Prompt lines are not kept" {
	{ printf '{"type": "Prompt", "data": {"content": "be nice", "source": "x"}}\n'; U one; } >in
	ag2-store log append s <in
	U one >want
	ag2-store cat /log/s.jsonl >got
	same want got
}

@test "append: a line of 70 MB is refused in bounded memory, several MB are one append" {
	{ U good; printf '{"type":"X","data":{"s":"'; head -c 70000000 /dev/zero | tr '\0' x; printf '"}}\n'; } >big
	run -65 limited 400000 'ag2-store log append s <big'
	has "stdin:2"
	run ag2-store log cat s
	status_is 66
	for i in $(seq 300); do printf '{"type":"X","data":{"s":"%s","i":%s}}\n' "$(printf '%020000d' 0)" "$i"; done >several
	ag2-store log append s <several
	ag2-store log cat s >got
	same several got
}

@test "append to a log that ends without newline, as AG2 leaves it" {
	U one | tr -d '\n' | raw s
	U two >in
	ag2-store log append s <in
	{ U one; U two; } >want
	ag2-store cat /log/s.jsonl >got
	same want got
	run -0 --separate-stderr ag2-store log cat s
	[ -z "$stderr" ]
}

@test "a torn tail is set aside before an append, and the new line can be read" {
	n=0
	for tail in '{"type":"us' '{"type":"us\n \n' '{"type":"us\n\n\n' '\0\0\0\0' '{"type":"X","data":{}}x\n' '{"type":"a\n{"type":"b' '{"type":"\xe2\x82'; do
		n=$((n + 1))
		{ U good; printf "$tail"; } | raw "s$n"
		U new >in
		run -0 --separate-stderr ag2-store log append "s$n" <in
		has "torn-1" "$stderr"
		{ U good; U new; } >want
		ag2-store cat "/log/s$n.jsonl" >got
		same want got
		printf "$tail" >want
		ag2-store cat "/log/s$n.torn-1" >got
		same want got
		run -0 --separate-stderr ag2-store log append "s$n" <in
		[ -z "$stderr" ]
	done
	[ "$n" -eq 7 ]
}

@test "a second torn tail gets the next number, and user and alert set it aside too" {
	printf '{"type":"us' | raw s
	run -0 --separate-stderr ag2-store log user s one
	has /log/s.torn-1 "$stderr"
	printf '{"type' | ag2-store append /log/s.jsonl
	run -0 --separate-stderr ag2-store log alert s --severity info --source x y
	has /log/s.torn-2 "$stderr"
	[ "$(ag2-store log cat s | wc -l)" -eq 2 ]
	[ "$(ag2-store cat /log/s.torn-1)" = '{"type":"us' ]
	[ "$(ag2-store cat /log/s.torn-2)" = '{"type' ]
}

@test "blank lines at the end of a good log are no torn tail" {
	{ U one; printf '\n  \n'; } | raw s
	U two >in
	run -0 --separate-stderr ag2-store log append s <in
	[ -z "$stderr" ]
	[ "$(ag2-store log cat s | wc -l)" -eq 2 ]
	run -1 ag2-store exists /log/s.torn-1
}

@test "a long last line is judged whole" {
	{ U one; printf '{"type":"X","data":{"s":"'; head -c 1000000 /dev/zero | tr '\0' x; } >torn
	raw s <torn
	U two >in
	ag2-store log append s <in
	{ U one; U two; } >want
	ag2-store cat /log/s.jsonl >got
	same want got
	{ cat torn; printf '"}}'; } >whole
	raw t <whole
	run -0 --separate-stderr ag2-store log append t <in
	[ -z "$stderr" ]
	{ cat whole; echo; U two; } >want
	ag2-store cat /log/t.jsonl >got
	same want got
}

@test "two append to one log while a third reads: nothing torn, nothing lost, in order" {
	for i in $(seq 40); do { U "a-$i"; A "A-$i"; } >"a$i"; { U "b-$i"; A "B-$i"; } >"b$i"; done
	(for i in $(seq 40); do ag2-store log append s <"a$i" || touch failed; done; touch a-done) & a=$!
	(for i in $(seq 40); do ag2-store log append s <"b$i" || touch failed; done; touch b-done) & b=$!
	wait_for 60 ag2-store exists /log/s.jsonl
	: >cut
	seen=0 reads=0
	while [ ! -e a-done ] || [ ! -e b-done ]; do
		ag2-store log cat s >now 2>>cut || touch failed
		now=$(wc -l <now)
		[ "$now" -ge "$seen" ] || touch shrunk
		[ $((now % 2)) -eq 0 ] || touch half
		seen=$now reads=$((reads + 1))
	done
	wait "$a"
	wait "$b"
	[ ! -e failed ] && [ ! -e shrunk ] && [ ! -e half ]
	[ ! -s cut ] || fail "$(cat cut)"
	[ "$reads" -gt 0 ]
	ag2-store log cat s >all
	[ "$(wc -l <all)" -eq 160 ]
	for p in a b; do
		grep -o "\"$p-[0-9]*\"" all | tr -d '"' >got
		seq -f "$p-%g" 40 >want
		same want got
	done
}

# ---- cat, tail ----

@test "a bad line is left out with one warning that names it, and the good ones come" {
	{ for i in 1 2 3; do U "$i"; done; printf '{"type":"user","text":"abc\n'; printf 'junk\n'; for i in 4 5 6; do U "$i"; done; } | raw s
	run -0 --separate-stderr ag2-store log cat s
	[ "${#lines[@]}" -eq 6 ]
	has "s:4: byte " "$stderr"
	[ "${#stderr_lines[@]}" -eq 1 ]
}

@test "a line begun twice costs only itself" {
	{ U 1; printf '{"type":"assistant","text":"par'; U 2; U 3; } | raw s
	run -0 --separate-stderr ag2-store log cat s
	[ "${#lines[@]}" -eq 2 ]
	has "s:2:" "$stderr"
}

@test "log cat never loses the good lines of a damaged file, whatever else is in it" {
	jq -r '.cases[].name' "$GOLDEN/serialization_load.json" >names
	[ "$(wc -l <names)" -gt 25 ]
	while read -r name; do
		jq -j --arg n "$name" '.cases[] | select(.name == $n) | .text' "$GOLDEN/serialization_load.json" >text
		jq -r --arg n "$name" '.cases[] | select(.name == $n) | (.events // []) | length' "$GOLDEN/serialization_load.json" >count
		raw s <text
		ag2-store log cat s >got 2>err || fail "$name"
		[ "$(wc -l <got)" -ge "$(cat count)" ] || fail "$name: $(wc -l <got) lines instead of $(cat count)"
		# what comes out are lines of the file, unchanged and in order
		{ cat text; echo; } | grep -Fx -f got | diff -q - got >/dev/null || [ ! -s got ] || fail "$name"
	done <names
	printf '%s' "$(U a)" '
{"type": "ag2.events.types.HumanM' | raw s
	run -0 --separate-stderr ag2-store log cat s
	output_is "$(U a)"
}

@test "a BOM at the beginning of a log is skipped" {
	{ printf '\xef\xbb\xbf'; U first; U second; } | raw s
	{ U first; U second; } >want
	ag2-store log cat s >got
	same want got
	U third >in
	run -0 --separate-stderr ag2-store log append s <in
	[ -z "$stderr" ]
}

@test "a line of 70 MB in a log costs only itself, in bounded memory" {
	{ U 1; head -c 70000000 /dev/zero | tr '\0' x; echo; U 2; } | raw s
	run -0 --separate-stderr limited 600000 'ag2-store log cat s'
	output_is "$(U 1; U 2)"
	has "s:2:" "$stderr"
}

@test "log cat reads the dropped segments in number order, then the log; --current only that" {
	for i in 1 2 3 4 5 6 7 8 9 10 11; do U "d$i" | tr -d '\n' | ag2-store write "/log/s.dropped-$i.jsonl"; done
	U now | raw s
	U other | ag2-store write /log/s.dropped-x.jsonl
	U other | ag2-store write /log/ss.dropped-1.jsonl
	{ for i in 1 2 3 4 5 6 7 8 9 10 11; do U "d$i"; done; U now; } >want
	ag2-store log cat s >got
	same want got
	U now >want
	ag2-store log cat --current s >got
	same want got
}

@test "a segment whose lines still begin the log is read once" {
	U old | ag2-store write /log/s.dropped-1.jsonl
	{ U a; U b; } | ag2-store write /log/s.dropped-2.jsonl
	{ U a; U b; U c; } | raw s
	{ U old; U a; U b; U c; } >want
	ag2-store log cat s >got
	same want got
	# without its last newline, as AG2 writes it
	{ U a; U b; } | head -c -1 | ag2-store write /log/s.dropped-2.jsonl
	ag2-store log cat s >got
	same want got
	# the beginning of a line is not a line
	{ U a; U b | head -c 20; } | ag2-store write /log/s.dropped-2.jsonl
	run -0 --separate-stderr ag2-store log cat s
	[ "${#lines[@]}" -eq 5 ]
}

@test "a compaction tried twice leaves each line once" {
	{ U a; U b; } | ag2-store write /log/s.dropped-1.jsonl
	{ U a; U b; U c; } | ag2-store write /log/s.dropped-2.jsonl
	{ U a; U b; U c; U d; } | raw s
	{ U a; U b; U c; U d; } >want
	ag2-store log cat s >got
	same want got
	U d | raw s
	ag2-store log cat s >got
	same want got
}

@test "a segment that begins as the log does but goes on otherwise is another one" {
	{ U a; U b; } | ag2-store write /log/s.dropped-1.jsonl
	{ U a; U c; } | raw s
	run -0 ag2-store log cat s
	[ "${#lines[@]}" -eq 4 ]
}

@test "a stream whose log is gone still has its segments" {
	U old | ag2-store write /log/s.dropped-1.jsonl
	run -0 ag2-store log cat s
	output_is "$(U old)"
	run -66 ag2-store log cat --current s
}

@test "log tail gives the last events, blank lines not counted" {
	for i in $(seq 30); do U "$i"; [ $((i % 7)) -ne 0 ] || printf '\n \n'; done | raw s
	ag2-store log cat s >all
	for n in 0 1 5 10 29 30 31 1000; do
		ag2-store log tail -n "$n" s >got
		tail -n "$n" all >want
		same want got
	done
	ag2-store log tail s >got
	tail -n 10 all >want
	same want got
}

@test "log tail over lines of many sizes is what tail gives" {
	for i in 1 70000 65536 65535 3 200000 1 131072 10; do printf '{"type":"X","data":{"s":"%s"}}\n' "$(head -c "$i" /dev/zero | tr '\0' x)"; done >in
	ag2-store log append s <in
	for n in 1 2 3 4 5 6 7 8 9 10; do
		ag2-store log tail -n "$n" s >got
		tail -n "$n" in >want
		same want got
	done
}

# ---- show, answer ----

@test "log show and log tail are of the last stream where none is named" {
	ag2-store log user one "first"
	ag2-store log user two "second"
	run -0 ag2-store log show
	has "Stream two"
	has second
	run -0 ag2-store log tail
	has second
	hasnt first
	run -64 ag2-store log cat
}

@test "log answer prints the text of the last response" {
	{ U q; A "first"; U q2; A 'second\nline'; } | ag2-store log append s
	run -0 ag2-store log answer s
	output_is "$(printf 'second\nline')"
	run -0 ag2-store log answer
	output_is "$(printf 'second\nline')"
	for i in $(seq 200); do U "$i"; done | ag2-store log append s
	run -0 ag2-store log answer s
	output_is "$(printf 'second\nline')"
}

@test "log answer exits 1 when there is no response, or it has no text" {
	U q | ag2-store log append s
	run -1 --separate-stderr ag2-store log answer s
	output_is ""
	has "no response" "$stderr"
	{ A text; C "" t '{}'; } | ag2-store log append s
	run -1 --separate-stderr ag2-store log answer s
	output_is ""
	has "no text" "$stderr"
}

@test "a log of garbage shows nothing and fails at nothing" {
	head -c 100000 /dev/urandom | raw s
	run -0 --separate-stderr ag2-store log show s
	output_is "Stream s"
	[ "${#stderr_lines[@]}" -eq 1 ]
	run -0 --separate-stderr ag2-store log tail s
	output_is ""
	run -1 ag2-store log answer s
}

@test "log show is a transcript with calls and results folded to a line each" {
	{
		U 'What is the weather?'
		C "Let me look." weather '{"city": "Paris"}'
		R "sunny$(printf '\nand warm')"
		A 'It is sunny.'
		printf '%s\n' '{"type": "ag2.events.alert.ObserverAlert", "data": {"created_at": 4.0, "source": "mon", "severity": {"__enum__": "ag2.events.alert.Severity", "value": "warning"}, "message": "disk full", "data": {}}}'
		printf '%s\n' '{"type": "ag2.compact.CompactionSummary", "data": {"created_at": 5.0, "summary": "We spoke.", "event_count": 7}}'
		printf '%s\n' '{"type": "ag2.events.alert.HaltEvent", "data": {"created_at": 6.0, "reason": "FATAL: x", "source": "mon", "alerts": []}}'
		printf '%s\n' '{"type": "my.Custom", "data": {"content": "own"}}'
	} | ag2-store log append s
	ag2-store log show s >got
	cat >want <<-'END'
		Stream s

		User  1970-01-01 00:00:01  turn 1
		What is the weather?

		Assistant  1970-01-01 00:00:03
		Let me look.
		  -> weather({"city": "Paris"})
		  <- [14 B] sunny and warm

		Assistant  1970-01-01 00:00:02
		It is sunny.

		Alert  1970-01-01 00:00:04
		warning from mon: disk full

		Summary of 7 events  1970-01-01 00:00:05
		We spoke.

		Halted  1970-01-01 00:00:06
		FATAL: x
		  * my.Custom: own
	END
	same want got
}

@test "log show shows a result once, though event and container carry it" {
	{
		C "" t '{}'
		printf '%s\n' '{"type": "ag2.events.tool_events.ToolCallEvent", "data": {"id": "c1", "name": "t", "arguments": "{}"}}'
		printf '%s\n' '{"type": "ag2.events.tool_events.ToolResultEvent", "data": {"parent_id": "c1", "name": "t", "result": {"data": {"parts": [{"__event__": "ag2.events.input_events.TextInput", "content": "RESULT"}]}}}}'
		R RESULT
	} | ag2-store log append s
	run -0 ag2-store log show s
	[ "$(grep -c RESULT <<<"$output")" -eq 1 ]
	[ "$(grep -c -e '-> t' <<<"$output")" -eq 1 ]
}

@test "log show folds long calls at the terminal's width and scrubs them" {
	need_terminal
	C "" t "$(printf '%0300d' 0)" | ag2-store log append s
	for w in 60 80 200; do
		[ "$(on_terminal $w "ag2-store log show s" | awk '{ if (length($0) > n) n = length($0) } END { print n }')" -eq "$w" ]
	done
	U '\u001b[31m\u202ered' | ag2-store log append t
	run -0 on_terminal 80 "ag2-store log show t"
	has '\x1b[31m\xe2\x80\xaered'
}

@test "log show reads one log with every kind of event" {
	ag2-store log append s <"$GOLDEN/log_sample.jsonl"
	run -0 --separate-stderr ag2-store log show s
	has "Hello"
	[ -z "$stderr" ]
}

# ---- user, alert ----

@test "log user writes the line that AG2 writes" {
	AG2_NOW=1780000000.5+1 ag2-store log user s Hello
	head -n 1 "$GOLDEN/log_sample.jsonl" >want
	ag2-store log cat s >got
	same want got
}

@test "log user: - is standard input without its last newline; empty text is refused" {
	printf 'two\nlines\n\n' | ag2-store log user s -
	[ "$(ag2-store log cat s | jq -c '.data.parts[0].content')" = '"two\nlines\n"' ]
	run -65 ag2-store log user s ""
	run -65 ag2-store log user s - </dev/null
	head -c 70000000 /dev/zero | tr '\0' x >big
	run -65 ag2-store log user s - <big
	has "longer than"
	run -65 ag2-store log alert s --severity info --source x - <big
	[ "$(ag2-store log cat s | wc -l)" -eq 1 ]
	ag2-store log user s -- -x
	[ "$(ag2-store log cat s | tail -n 1 | jq -r '.data.parts[0].content')" = -x ]
}

@test "log user: what is no UTF-8, and controls, make a good line" {
	ag2-store log user s "$(printf 'a\xffb\001"\\\t')"
	run -0 --separate-stderr ag2-store log cat s
	[ -z "$stderr" ]
	[ "$(jq -r '.data.parts[0].content' <<<"$output")" = "$(printf 'a\357\277\275b\001"\\\t')" ]
}

@test "log alert writes the line that AG2 writes" {
	AG2_NOW=5 ag2-store log alert s --severity FATAL --source mon "boom"
	[ "$(ag2-store log cat s)" = '{"type": "ag2.events.alert.ObserverAlert", "data": {"created_at": 5.0, "data": {}, "source": "mon", "severity": {"__enum__": "ag2.events.alert.Severity", "value": "fatal"}, "message": "boom"}}' ] || fail "$(ag2-store log cat s)"
	run -64 ag2-store log alert s --severity bad --source mon x
	has "bad"
	run -64 ag2-store log alert s --severity info x
	run -64 ag2-store log alert s --source mon x
	run -65 ag2-store log alert s --severity info --source mon ""
}

@test "log append leaves out a HaltEvent that stands behind the last response already, and no other" {
	H='{"type": "ag2.events.alert.HaltEvent", "data": {"created_at": 6.5, "reason": "FATAL: x", "source": "mon", "alerts": []}}'
	{ U q; echo "$H"; } | ag2-store log append s
	{ echo "$H"; A HALTED; } | ag2-store log append s
	ag2-store log cat s >got
	{ U q; echo "$H"; A HALTED; } >want
	same want got
	{ echo "$H"; echo "${H/6.5/7.5}"; } | ag2-store log append s
	{ echo "$H"; echo "${H/6.5/7.5}"; } >>want
	ag2-store log cat s >got
	same want got
}

@test "the same commands with AG2_NOW give the same bytes" {
	for store in one two; do
		export AG2_STORE=disk:$TMP/$store
		AG2_NOW=1000.25+0.5 ag2-store log user s hello
		AG2_NOW=1001+0.5 ag2-store log alert s --severity info --source me text
	done
	diff -r one/log two/log
}

@test "a comma in the locale's numbers changes nothing" {
	AG2_NOW=1000.25 LC_ALL=de_DE.UTF-8 ag2-store log user s x
	[ "$(ag2-store log cat s | jq .data.created_at)" = 1000.25 ]
	LC_ALL=de_DE.UTF-8 run -0 ag2-store lock -w 0.5 /a -- true
}
