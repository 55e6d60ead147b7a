#!/usr/bin/env bats
# The windows beyond AG2: the task stays, whole rounds stay or go, budgets count what is sent.
load helper
load assemble

x() {
	head -c "$1" /dev/zero | tr '\0' "${2:-x}"
}

@test "results of parallel calls are on the same side of the cut" {
	{ U q; C c1 c2; R c1=; R c2=; A done; U next; } >in
	for n in 1 2 3 4 5 6; do
		ag2-assemble sliding-window:$n <in | shape >got
		case $(cat got) in
		*'C(c1,c2)'*'R(c1='*'R(c2='* | 'A(done) U(next)' | 'U(next)') ;;
		*) fail "window of $n: $(cat got)" ;;
		esac
	done
}

@test "a budget that is crossed between two results of one call keeps both or none" {
	{ U q; C c1 c2; R c1="$(x 5000)"; R c2="$(x 200)"; A done; U next; } >in
	for budget in 20 60 100 400 1200 1400; do
		ag2-assemble token-budget:$budget <in | shape >got
		case $(cat got) in
		*'C(c1,c2)'*'R(c1='*'R(c2='*) ;;
		*c1* | *c2*) fail "budget of $budget: $(cut -c 1-200 got)" ;;
		esac
		has 'U(next)' "$(cat got)"
	done
}

@test "two runs of prompt, request, call, result, answer can be sent at every size" {
	{ U 1; C a; R a=x; A 2; U 3; C b; R b=y; A 4; } >in
	while read -r n want; do
		shapes "P(sys) $want" --prompt sys sliding-window:"$n" <in
	done <<-'END'
		0 U(3) A(4)
		1 U(3) A(4)
		2 U(3) A(4)
		3 U(3) C(b) R(b=y) A(4)
		4 U(3) C(b) R(b=y) A(4)
		5 A(2) U(3) C(b) R(b=y) A(4)
		6 A(2) U(3) C(b) R(b=y) A(4)
		7 C(a) R(a=x) A(2) U(3) C(b) R(b=y) A(4)
		8 U(1) C(a) R(a=x) A(2) U(3) C(b) R(b=y) A(4)
	END
}

@test "a window without a request keeps the last one before it at its head" {
	{ U go; for i in 1 2 3 4 5 6; do C c$i; R c$i=$i; done; } |
		shapes "U(go) C(c5) R(c5=5) C(c6) R(c6=6)" sliding-window:4
}

@test "a summary at the head of the stream stays there" {
	{ S before; U a; A b; U c; A d; } | shapes "S(before) U(c) A(d)" sliding-window:2
	{ S before; U a; A b; U c; A d; } | shapes "S(before) U(c) A(d)" conversation sliding-window:1
	{ S before; U "$(x 80)"; A b; U "$(x 40)"; A "$(x 40)"; } | shapes "S(before) A(b) U($(x 40)) A($(x 40))" token-budget:21
	{ U a; S middle; A b; U c; A d; } | shapes "U(c) A(d)" sliding-window:2
}

@test "usage and other telemetry does not count, and rides along only inside the window" {
	{ U a; usage; A b; usage; U c; usage; A d; usage; } | shapes "U(c) usage A(d) usage" sliding-window:2
	{ U a; usage; A b; usage; } | shapes "U(a) usage A(b) usage" sliding-window:2
}

@test "a window never leaves a conversation empty" {
	{ U a; C c1; R c1=x; } | shapes "U(a) C(c1) R(c1=x)" sliding-window:1
	{ U a; C c1; R c1=x; } | shapes "U(a) C(c1) R(c1=x)" sliding-window:0
	{ U a; R zz=x; } | shapes "U(a)" sliding-window:1
	{ A a; A x; A ""; } | shapes "A(x)" sliding-window:1
	{ A x; echo '{"type": "OpenAIReasoningEvent", "data": {}}'; } | shapes "A(x)" sliding-window:1
}

@test "a long tool loop under a budget keeps its task and uses the budget" {
	{ U go; for i in $(seq 200); do C c$i; R c$i="$(x 400)"; done; } >in
	ag2-assemble token-budget:12000 <in >out
	shape <out >got
	case $(cat got) in
	'U(go) C('*) ;;
	*) fail "$(cut -c 1-200 got)" ;;
	esac
	# 100 tokens a result, one a call.
	[ "$(grep -c ToolResultsEvent out)" -ge 108 ]
	[ "$(grep -c ToolResultsEvent out)" -le 120 ]
	[ "$(grep -c tool_calls out)" -eq "$(grep -c ToolResultsEvent out)" ]
}

@test "the budget counts the prompts injected before it" {
	mkdir store
	x 400 m | ag2-store -s disk:store write /memory/working.md
	{ U "$(x 40 a)"; A "$(x 40 b)"; U "$(x 40 c)"; } >in
	# 30 tokens of events, 105 of memory.
	shapes "U($(x 40 a)) A($(x 40 b)) U($(x 40 c))" token-budget:30 <in
	ag2-assemble -s disk:store working-memory token-budget:126 <in | grep -v Prompt | shape >got
	[ "$(cat got)" = "A($(x 40 b)) U($(x 40 c))" ] || fail "$(cat got)"
	ag2-assemble -s disk:store token-budget:126 working-memory <in | grep -v Prompt | shape >got
	[ "$(cat got)" = "U($(x 40 a)) A($(x 40 b)) U($(x 40 c))" ] || fail "$(cat got)"
}

@test "a budget counts the error results for calls that were not answered" {
	for i in $(seq 60); do U "q$i"; C "c$i"; done >in
	U last >>in
	# An error result has 72 characters, a request and its call 8.
	shapes "U(last)" token-budget:80,chars_per_token=1 <in
	shapes "C(c60) R(c60=ERROR) U(last)" token-budget:83,chars_per_token=1 <in
	shapes "U(q60) C(c60) R(c60=ERROR) U(last)" token-budget:84,chars_per_token=1 <in
}

@test "a budget counts results that came alone and placeholders" {
	{ U q; C a; r a="$(x 100)"; U next; } >in
	shapes "U(next)" token-budget:110,chars_per_token=1 <in
	{ U q; A ""; U ""; A "$(x 40)"; U q; } >in
	shapes "A($(x 40)) U(q)" token-budget:49,chars_per_token=1 <in
	shapes "U((no text)) A($(x 40)) U(q)" token-budget:50,chars_per_token=1 <in
	{ U q; C a; R a=; A "$(x 40)"; U q; } >in
	shapes "A($(x 40)) U(q)" token-budget:56,chars_per_token=1 <in
	shapes "C(a) R(a=(no output)) A($(x 40)) U(q)" token-budget:57,chars_per_token=1 <in
}

@test "memory that leaves no room for the question is an error that names it, not a request without the question" {
	mkdir store
	x 200000 m | ag2-store -s disk:store write /memory/working.md
	U q >in
	run --separate-stderr ag2-assemble -s disk:store working-memory token-budget:1000 <in
	status_is 65
	output_is ''
	has 'the largest is the prompt of working_memory, 50004 tokens' "$stderr"
}

@test "an open tool turn that does not fit is an error that names its largest event" {
	{ U a; C c1; R c1="$(x 8000)"; } >in
	run --separate-stderr ag2-assemble token-budget:100 <in
	status_is 65
	output_is ''
	has 'the largest is the ToolResultsEvent in line 3, 2000 tokens' "$stderr"
	{ U a; C c1; R c1="$(x 50000)"; usage; usage; } >in
	run --separate-stderr ag2-assemble token-budget:100 <in
	status_is 65
	has 'ToolResultsEvent in line 3' "$stderr"
	# An empty answer is not sent: it closes nothing.
	{ U a; C c1; R c1="$(x 8000)"; A ""; } >in
	run --separate-stderr ag2-assemble token-budget:100 <in
	status_is 65
	has 'ToolResultsEvent in line 3' "$stderr"
}

@test "a question larger than the budget is an error that names it" {
	{ A b; U "$(x 1000)"; } >in
	run --separate-stderr ag2-assemble token-budget:100 <in
	status_is 65
	has 'the largest is the ModelRequest in line 2, 250 tokens (chars_per_token=4)' "$stderr"
}

@test "the event that tips the budget over is not kept" {
	{ U "$(x 80000)"; A s; U q; } | shapes "A(s) U(q)" token-budget:4096
}

@test "a larger request before the window does not push the question out" {
	{ U "$(x 4000)"; A "$(x 40)"; U q; A "$(x 40)"; U q2; } | shapes "A($(x 40)) U(q) A($(x 40)) U(q2)" token-budget:1010
}

@test "code points are what a budget counts, or a token each with chars_per_token=auto" {
	han=$(printf '\xe5\x8c\x97%.0s' $(seq 4000))
	{ U "$han"; A b; U c; } >in
	shapes "U($han) A(b) U(c)" token-budget:1000 <in
	shapes "A(b) U(c)" token-budget:999 <in
	shapes "U($han) A(b) U(c)" token-budget:4000,chars_per_token=auto <in
	shapes "A(b) U(c)" token-budget:3999,chars_per_token=auto <in
	shapes "A(b) U(c)" token-budget:4001,chars_per_token=1 <in
}

@test "an emoji of several code points is at least a token for each, and is not cut apart" {
	family=$(printf '\xf0\x9f\x91\xa8\xe2\x80\x8d\xf0\x9f\x91\xa9\xe2\x80\x8d\xf0\x9f\x91\xa7')
	{ U "$(printf "$family%.0s" $(seq 100))"; A b; U c; } >in
	shapes "A(b) U(c)" token-budget:499,chars_per_token=auto <in
	ag2-assemble token-budget:500,chars_per_token=auto <in >out
	same out in
}

@test "text that happens to be base64 counts as text" {
	line=$(R c1=TEXT)
	{ U a; C c1; printf '%s' "${line%%TEXT*}"; x 400000; printf '%s\n' "${line#*TEXT}"; } >in
	ag2-assemble token-budget:100001 <in >out
	same out in
}

@test "a HaltEvent counts in no window, and goes when a response has followed it and it lies before" {
	{ halt early; U a; A b; halt late; U c; } | shapes "A(b) H(late) U(c)" sliding-window:2
	{ halt early; U a; A b; halt late; U c; } | shapes "H(late) U(c)" sliding-window:1
	{ U a; A b; halt late; U c; U d; U e; } | shapes "H(late) U(e)" sliding-window:1
	{ U a; A b; halt late; U c; } | shapes "U(a) A(b) H(late) U(c)" conversation
	{ U a; A b; halt late; U c; } | shapes "U(a) A(b) U(c)" --as-ag2 conversation
}

@test "with AG2's rules everything counts, and the task does not stay" {
	{ U a; usage; A b; usage; } | shapes "A(b) usage" --as-ag2 sliding-window:2
	{ S before; U a; A b; } | shapes "A(b)" --as-ag2 sliding-window:1
}

@test "with AG2's rules a limit below 0 is passed by no events at all" {
	[ "$(ag2-assemble --as-ag2 sliding-window:-1,transparent=true </dev/null | shape)" = 'P([sliding_window] Showing last 0 of 0 events.)' ]
	[ "$(U a | ag2-assemble --as-ag2 sliding-window:-1,transparent=true | shape)" = 'P([sliding_window] Showing last 1 of 1 events.) U(a)' ]
}

@test "a window says what it shows" {
	{ U a; A b; usage; U c; A d; } |
		shapes "P([sliding_window] Showing last 2 of 4 events.) U(c) A(d)" sliding-window:2,transparent=true
	{ U a; A b; } | shapes "U(a) A(b)" sliding-window:2,transparent=true
	{ U "$(x 40)"; A b; U c; } |
		shapes "P([token_budget] Showing 2 of 3 events (token budget).) A(b) U(c)" token-budget:5,transparent=true
}

@test "a window over ten thousand turns that a pipe brings takes the memory of the window" {
	jq -cn 'range(10000) | {type: "ModelRequest", data: {parts: [{content: "question \(.)"}]}},
		{type: "ModelResponse", data: {message: {content: ("answer " * 200)}}}' >in
	case $BIN in
	*asan*) limit=unlimited ;;
	*) limit=32000 ;;
	esac
	(
		ulimit -v $limit
		cat in | ag2-assemble sliding-window:4 >out
	)
	tail -n 4 in >want
	same out want
}

@test "a budget over one long turn takes the memory of the window" {
	jq -cn '{type: "ModelRequest", data: {parts: [{content: "q"}]}},
		(range(20000) | {type: "ModelResponse", data: {tool_calls: {calls: [{id: "c\(.)", name: "f", arguments: "{}"}]}}},
			{type: "ToolResultsEvent", data: {results: [{parent_id: "c\(.)", name: "f", result: {data: {parts: [{content: ("answer " * 100)}]}}}]}})' >in
	case $BIN in
	*asan*) limit=unlimited ;;
	*) limit=32000 ;;
	esac
	(
		ulimit -v $limit
		cat in | ag2-assemble token-budget:2000 >out
	)
	{ head -n 1 in; tail -n 22 in; } >want
	same out want
}
