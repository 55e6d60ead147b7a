# log usage: tokens and cost of model calls.

load helper
load scripted

setup() {
	clean_environment
	export AG2_STORE=disk:$TMP/st
	cat >prices.yaml <<-'END'
		currency: EUR
		models:
		  m-*: {input: 1.25, cached: 0.125, output: 10}
		  other: {input: 0.1, output: 0.2}
	END
}

# use TIME KIND MODEL PROVIDER PROMPT COMPLETION [CACHED [WRITTEN [THINKING [TOTAL]]]]: a UsageEvent.
use() {
	jq -nc --argjson t "$1" --arg k "$2" --arg m "$3" --arg p "$4" --argjson i "$5" --argjson o "$6" --argjson c "${7:-null}" \
		--argjson w "${8:-null}" --argjson th "${9:-null}" --argjson all "${10:-null}" '{type: "ag2.events.types.UsageEvent", data:
		{created_at: $t, label: null, kind: $k, model: $m, provider: $p, finish_reason: "stop",
		usage: {"__dataclass__": "ag2.events.types.Usage", data: {prompt_tokens: $i, completion_tokens: $o, total_tokens: $all,
		cache_read_input_tokens: $c, cache_creation_input_tokens: $w, thinking_tokens: $th}}}}'
}

# rows FILTER ARG...: of the lines of --json.
rows() {
	local filter=$1
	shift
	ag2-store log usage --json "$@" | jq -c "$filter"
}

DAY=1780012800	# 2026-05-29

@test "calls are added up by stream, day, kind and model" {
	{
		use $DAY model_call m-1 openai 100 10 50
		use $((DAY + 5)) model_call m-1 openai 200 20 100
		use $((DAY + 5)) model_call m-2 openai 7 1
		use $((DAY + 86400)) model_call m-1 openai 1 1
		use $((DAY + 5)) compaction m-1 openai 30 3
	} | ag2-store log append a
	use $DAY aggregation m-1 openai 40 4 | ag2-store log append b
	rows '[.stream, .day, .kind, .model, .calls, .input, .cached, .output, .cached_share + 0]' >got
	cat >want <<-'END'
		["a","2026-05-29","compaction","m-1",1,30,0,3,0]
		["a","2026-05-29","model_call","m-1",2,300,150,30,0.5]
		["a","2026-05-29","model_call","m-2",1,7,0,1,0]
		["a","2026-05-30","model_call","m-1",1,1,0,1,0]
		["b","2026-05-29","aggregation","m-1",1,40,0,4,0]
	END
	same want got
	[ "$(rows .stream b)" = '"b"' ]
	run -0 ag2-store log usage --prices prices.yaml
	cat >want <<-'END'
		calls  input  output  cached     EUR  day         kind         model

		Stream a
		    1     30       3      0%  0.0001  2026-05-29  compaction   m-1
		    2    300      30     50%  0.0005  2026-05-29  turn         m-1
		    1      7       1      0%  0.0000  2026-05-29  turn         m-2
		    1      1       1      0%  0.0000  2026-05-30  turn         m-1

		Stream b
		    1     40       4      0%  0.0001  2026-05-29  aggregation  m-1

		Total
		    1     40       4      0%  0.0001              aggregation  m-1
		    1     30       3      0%  0.0001              compaction   m-1
		    3    301      31     50%  0.0005              turn         m-1
		    1      7       1      0%  0.0000              turn         m-2
		    6    378      39     40%  0.0007              all
	END
	printf '%s\n' "$output" >got
	same want got
}

@test "input is all that was read: Anthropic counts what a cache held apart, and thinking may stand beside the output" {
	use $DAY model_call a anthropic 10 5 80 10 | ag2-store log append anthropic
	use $DAY model_call a openai 100 5 80 null 4 105 | ag2-store log append openai
	use $DAY model_call a gemini 100 5 80 null 4 109 | ag2-store log append gemini
	rows '[.stream, .input, .cached, .cache_write, .output, .cached_share + 0]' >got
	cat >want <<-'END'
		["anthropic",100,80,10,5,0.8]
		["gemini",100,80,0,9,0.8]
		["openai",100,80,0,5,0.8]
	END
	same want got
}

@test "money is exact, whatever is added up" {
	for i in $(seq 300); do use $DAY model_call other x 1 0; done | ag2-store log append a
	ag2-store log usage --json --prices prices.yaml a | grep -q '"input":300,.*"cost":0.00003,"currency":"EUR"}'
	use $DAY model_call m-x x 3 1 1 1 | ag2-store log append b
	ag2-store log usage --json --prices prices.yaml b | grep -q '"cost":0.000012625,'
	use $DAY model_call other x 9007199254740991 0 | ag2-store log append c
	ag2-store log usage --json --prices prices.yaml c | grep -q '"cost":900719925.4740991,'
}

@test "a model without a price is said once, its cost is not known, and the sum is without it" {
	{
		use $DAY model_call new x 10 1
		use $DAY compaction new x 10 1
		use $DAY model_call m-1 x 1000000 0
	} | ag2-store log append a
	run --separate-stderr ag2-store log usage --prices prices.yaml
	status_is 0
	[ "$stderr" = "ag2-store: prices.yaml: there is no price for the model 'new': the sums are without it" ] || fail "$stderr"
	[ "$(tail -n 1 <<<"$output" | tr -s ' ')" = ' 3 1000020 2 0% 1.2500 all' ] || fail "$output"
	[ "$(rows '[.model, .cost]' --prices prices.yaml 2>/dev/null | sort -u | tr '\n' ' ')" = '["m-1",1.25] ["new",null] ' ]
	rows 'has("cost")' | grep -q false
}

@test "--since and --until choose calls by their time" {
	for t in 0 100 200; do use $((DAY + t)) model_call m-1 x 1 1; done | ag2-store log append a
	[ "$(rows .calls --since @$((DAY + 100)))" = 2 ]
	[ "$(rows .calls --since @$((DAY + 100)) --until @$((DAY + 200)))" = 1 ]
	[ "$(rows .calls --since 2026-05-30)" = "" ]
	run -64 ag2-store log usage --since whenever
	has "whenever"
}

@test "what compaction dropped is counted, once" {
	{
		use $DAY model_call m-1 x 1 1
		for i in 1 2 3; do
			echo '{"type": "ModelRequest", "data": {"parts": []}}'
			echo '{"type": "ModelResponse", "data": {"message": null}}'
		done
		use $DAY model_call m-1 x 10 1
	} | ag2-store log append a
	ag2-compact --stream a -i tail-window:2
	ag2-store exists /log/a.dropped-1.jsonl
	[ "$(rows '[.calls, .input]')" = '[2,11]' ]
}

@test "nothing used is a sum of nothing; a stream that is not there is 66" {
	ag2-store log user s hi
	run -0 ag2-store log usage
	has "Total"
	[ "$(rows .)" = "" ]
	run -66 ag2-store log usage nowhere
}

@test "a price file that is wrong is named with its line" {
	printf 'models:\n  m: {input: 1, outputs: 2}\n' >bad.yaml
	run -78 ag2-store log usage --prices bad.yaml
	output_is "ag2-store: bad.yaml:2: unknown key 'outputs'; did you mean 'output'?"
	run -66 ag2-store log usage --prices nowhere.yaml
}

@test "on a narrow terminal the model's name is cut, in a pipe nothing is" {
	need_terminal
	use $DAY aggregation a-model-with-a-very-long-name-2026-05-29 x 1234567 12345 | ag2-store log append a
	run -0 script -qec "stty cols 60; ag2-store log usage --prices prices.yaml 2>/dev/null" /dev/null
	has "05-29 aggregation a-mod..."
	while read -r line; do
		[ "${#line}" -le 61 ] || fail "${#line} columns: $line"
	done <<<"$output"
	ag2-store log usage | grep -q a-model-with-a-very-long-name-2026-05-29
}

@test "the price file of the page is read" {
	sed -n '/^\.\\" prices/,/^\.Ed/p' "$ROOT/man/ag2-store.1" | sed -n '3,$ { /^\.Ed/!p }' >page.yaml
	grep -q gpt-5 page.yaml
	use $DAY model_call gpt-5 openai 1000000 1000000 500000 | ag2-store log append a
	[ "$(rows '[.cost, .currency]' --prices page.yaml)" = '[10.6875,"USD"]' ]
}

@test "a usage with a count that is none is told with its line, and is in no sum" {
	local bad
	use $DAY model_call m-1 openai 100 10 50 >good
	for bad in -5 9e18 1.5 true '"x"' '[1]' 9007199254740992; do
		for field in prompt_tokens completion_tokens cache_read_input_tokens thinking_tokens; do
			jq -c --argjson bad "$bad" ".data.usage.data.$field = \$bad" good
		done
	done >bad
	[ "$(wc -l <bad)" -eq 28 ]
	{ cat good bad; jq -c '.data.usage.data.prompt_tokens = 1000.0 | .data.usage.data.completion_tokens = 0' good; } | ag2-store log append a
	rows '[.calls, .input, .cached, .output]' 2>err >got
	[ "$(cat got)" = '[2,1100,100,10]' ] || fail "$(cat got)"
	[ "$(cat err)" = 'ag2-store: a:2: a usage whose prompt_tokens is -5, which is no number of tokens: not counted' ] || fail "$(cat err)"
	run -0 --separate-stderr ag2-store log usage --prices prices.yaml a
}
