#!/usr/bin/env bats
# What ag2-assemble gives by default can be sent.
load helper
load assemble

@test "lines that need no repair leave byte for byte as they came" {
	{
		printf '{"data" : {"parts":[{"content":"\\u00e9 \xc3\xa9","x":1.50}], "zz":null},"type":"autogen.beta.events.input_events.ModelRequest"}\r\n'
		C a
		c a
		r a=x
		R a=x
		usage
		printf '{"type": "some.thing.Else", "data": {"n": 12345678901234567890123, "n": 1e5}}\n'
		A done
	} >in
	ag2-assemble <in >out
	same out in
}

@test "histories as AG2's agents leave them need no repair" {
	n=0
	while IFS= read -r case; do
		printf '%s\n' "$case" | jq -c '.turns[].events[]' >in
		run --separate-stderr ag2-assemble <in
		status_is 0
		[ -z "$stderr" ] || fail "$stderr"
		printf '%s\n' "$output" | cmp - in
		n=$((n + 1))
	done < <(jq -c . "$GOLDEN/session.jsonl")
	[ "$n" -ge 3 ]
}

@test "a result whose call is outside the window goes, wherever it sits" {
	{ C c1; U a; R c1=x; A b; U c; } | shapes "U(a) A(b) U(c)" sliding-window:4
	{ C c1; U a; A b; R c1=x; U c; } | shapes "U(a) A(b) U(c)" sliding-window:4
}

@test "a result whose call never was goes, and is told of" {
	{ U a; R zz=x; A b; } | shapes "U(a) A(b)"
	has "line 2: result without its call left out" "$(cat err)"
}

@test "a log that begins with a result of a lost call is no hindrance, for any kind of result" {
	{
		R c9=x
		r c9=x
		echo '{"type": "acme.tools.AcmeServerToolResultEvent", "data": {"parent_id": "c9"}}'
		echo '{"type": "BuiltinToolResultEvent", "data": {"parent_id": "b9", "result": {"data": {"parts": []}}}}'
		U a
		A b
	} >in
	run --separate-stderr ag2-assemble <in
	status_is 0
	[ "$(echo "$output" | shape)" = "U(a) A(b)" ]
	has "result without its call left out, and 3 more" "$stderr"
}

@test "a container loses only the results that have no call" {
	{ U a; C c1; R c1=x zz=y; A b; } | shapes "U(a) C(c1) R(c1=x) A(b)"
}

@test "a second result of a call goes" {
	{ U a; C c1; R c1=x; R c1=y; A b; R c1=z; } | shapes "U(a) C(c1) R(c1=x) A(b)"
}

@test "the same id may be used by later calls" {
	{ U a; C x; R x=1; C x; R x=2; A b; } | shapes "U(a) C(x) R(x=1) C(x) R(x=2) A(b)"
}

@test "a call that was not answered before the next request gets an error result" {
	{ U a; C c1 c2; R c2=y; U b; A d; } | shapes "U(a) C(c1,c2) R(c2=y) R(c1=ERROR) U(b) A(d)"
	has "call without a result given an error result" "$(cat err)"
}

@test "... and before the next response" {
	{ U a; C c1; C c2; R c2=y; A d; } | shapes "U(a) C(c1) R(c1=ERROR) C(c2) R(c2=y) A(d)"
}

@test "a call that is open at the end stays open" {
	{ U a; C c1 c2; R c2=y; } | shapes "U(a) C(c1,c2) R(c2=y)"
}

@test "results that were logged alone answer their call when no container came" {
	{ U a; C c1 c2; c c1; r c1=x; r c2=y; U b; } | shapes "U(a) C(c1,c2) c(c1) r(c1=x) r(c2=y) R(c1=x,c2=y) U(b)"
	{ U a; C c1; r c1=x; } | shapes "U(a) C(c1) r(c1=x) R(c1=x)"
	{ U a; C c1 c2; r c1=x; U b; } | shapes "U(a) C(c1,c2) r(c1=x) R(c1=x,c2=ERROR) U(b)"
}

@test "a late result moves to its call where the input is all at hand" {
	{ U a; C c1; U b; A d; R c1=x; U e; } | shapes_file "U(a) C(c1) R(c1=x) U(b) A(d) U(e)"
	has "late result moved to its call" "$(cat err)"
	# A moved line keeps its bytes.
	grep -qF "$(R c1=x)" <(ag2-assemble <input)
}

@test "... and so it does where nothing can come out before the end" {
	{ U a; C c1; U b; A d; R c1=x; U e; } | shapes "U(a) C(c1) R(c1=x) U(b) A(d) U(e)" alert
	{ U a; C c1; U b; A d; R c1=x; U e; } | shapes "U(a) C(c1) R(c1=x) U(b) A(d) U(e)" sliding-window:10
}

@test "a late result that cannot be moved is sent as a note, behind the round it would break" {
	{ U a; C c1; U b; A d; R c1=x; U e; } |
		shapes "U(a) C(c1) R(c1=ERROR) U(b) A(d) U([late result of f, call c1]|x) U(e)"
	{ U a; C c1; U b; C c2; R c1=x; R c2=y; A d; } |
		shapes "U(a) C(c1) R(c1=ERROR) U(b) C(c2) R(c2=y) U([late result of f, call c1]|x) A(d)"
}

@test "late results of two calls in one container go to their two calls" {
	{ U a; C c1; U b; C c2; U d; R c1=x c2=y; } | shapes_file "U(a) C(c1) R(c1=x) U(b) C(c2) R(c2=y) U(d)"
}

@test "an empty answer is left out, an empty result gets a placeholder" {
	{ U a; A ""; U b; } | shapes "U(a) U(b)"
	{ U a; A " "; U b; } | shapes "U(a) U(b)"
	{ U a; C c1; R c1=; A ok; } | shapes "U(a) C(c1) R(c1=(no output)) A(ok)"
}

@test "an empty request is kept with a placeholder" {
	{ U ""; A b; } | shapes "U((no text)) A(b)"
	{ echo '{"type": "ModelRequest", "data": {"parts": []}}'; } | shapes "U((no text))"
}

@test "an error without a result is sent as its message" {
	{
		U a
		C c1
		echo '{"type": "ToolResultsEvent", "data": {"results": [{"__event__": "ToolErrorEvent", "parent_id": "c1", "name": "f", "error": {"__exception__": "E", "message": "it broke"}, "result": null}]}}'
	} >in
	ag2-assemble <in | jq -e -s '.[2].data.results[0].result.data.parts[0].content == "it broke"'
}

@test "calls without an id, or with one that is taken, are left out of their response" {
	{
		U a
		echo '{"type": "ModelResponse", "data": {"message": {"content": "t"}, "tool_calls": {"calls": [{"id": "", "name": "f"}, {"id": "a", "name": "f"}, {"id": "a", "name": "g"}]}}}'
		R a=1
	} | shapes "U(a) C(a) R(a=1)"
}

@test "a provider's item goes with the response it stands for" {
	anchor='{"type": "OpenAIReasoningEvent", "data": {}}'
	turn='{"type": "XAIAssistantEvent", "data": {}}'
	{ U a; echo "$anchor"; A b; echo "$turn"; A ""; U c; echo "$anchor"; U d; } |
		shapes "U(a) OpenAIReasoningEvent A(b) U(c) U(d)"
}

@test "a builtin call has one result; no body holds a single result that answers nothing in it" {
	U q >in
	echo '{"type": "BuiltinToolCallEvent", "data": {"id": "b1", "name": "search", "arguments": "{}"}}' >>in
	for i in 1 2; do
		r "b1=found $i" | sed 's/ToolResultEvent/ToolErrorEvent/'
	done >>in
	A ok >>in
	shapes "U(q) BuiltinToolCallEvent ToolErrorEvent A(ok)" <in
	has 'line 4: second result' "$(cat err)"
	U again >>in
	for model in openai:m anthropic:m; do
		ag2-ask -n -m $model <in >body 2>err
		[ "$(jq -c '[.messages[].role]' body)" = '["user","assistant","user"]' ] || fail "$model: $(cat body)"
		hasnt found "$(cat body)"
	done
}

@test "a builtin call goes when its reasoning item was cut off" {
	{
		U a
		echo '{"type": "OpenAIReasoningEvent", "data": {}}'
		echo '{"type": "OpenAIServerToolCallEvent", "data": {"id": "b"}}'
		echo '{"type": "OpenAIServerToolResultEvent", "data": {"parent_id": "b"}}'
		A b
	} >in
	shapes "U(a) A(b)" sliding-window:3 <in
	shapes "U(a) OpenAIReasoningEvent OpenAIServerToolCallEvent OpenAIServerToolResultEvent A(b)" sliding-window:4 <in
}

@test "an assembly of an assembly changes nothing" {
	{ S before; U a; C c1 c2; R c2=; U b; A ""; C c3; r c3=z; U d; R c1=late; R zz=q; } >in
	ag2-assemble <in >once
	ag2-assemble <once >twice
	same twice once
	run --separate-stderr ag2-assemble <once
	[ -z "$stderr" ]
}

@test "with --as-ag2 nothing is repaired" {
	{ U a; R zz=x; C c1; U b; A ""; R c1=; } >in
	ag2-assemble --as-ag2 <in >out
	same out in
}

@test "an exec: policy's output is repaired as well" {
	{ U a; C c1; R c1=x; A b; } >in
	shapes "U(a) A(b)" 'exec:grep -v tool_calls' <in
}

@test "ten thousand parallel calls, half of them answered late, are paired" {
	jq -cn '
		{type: "ModelRequest", data: {parts: [{content: "go"}]}},
		{type: "ModelResponse", data: {tool_calls: {calls: [range(10000) | {id: "c\(.)", name: "f", arguments: "{}"}]}}},
		{type: "ToolResultsEvent", data: {results: [range(5000) | {parent_id: "c\(.)", result: {data: {parts: [{content: "x"}]}}}]}},
		{type: "ModelRequest", data: {parts: [{content: "on"}]}},
		(range(5000; 10000) | {type: "ToolResultsEvent", data: {results: [{parent_id: "c\(.)", result: {data: {parts: [{content: "y"}]}}}]}})' >in
	ag2-assemble <in >out 2>err
	[ "$(wc -l <out)" -eq "$(wc -l <in)" ]
	tail -n 1 out | grep -q '"on"'
	[ "$(jq -s '[.[] | .data.results // [] | length] | add' out)" -eq 10000 ]
}

@test "a container that is taken apart keeps the bytes of its results, and those of one round stay together" {
	local odd='{"parent_id":"a" , "n": 1.0E2, "x": "\\u00e9é", "result": {"data": {"parts": [{"__event__": "TextInput", "content": "one"}]}}}'
	{
		U 1
		C a b
		U 2
		C c
		echo "{\"type\": \"ToolResultsEvent\", \"k\":0, \"data\": {\"results\" :[$odd,{$(result b=two)} , {$(result zz=none)},{$(result c=three)}], \"z\": 1}}"
	} >in
	ag2-assemble <in >out 2>err
	[ "$(shape <out)" = 'U(1) C(a,b) R(a=one,b=two) U(2) C(c) R(c=three)' ] || fail "$(shape <out)"
	echo "{\"type\": \"ToolResultsEvent\", \"k\":0, \"data\": {\"results\" :[$odd, {$(result b=two)}], \"z\": 1}}" | diff - <(sed -n 3p out)
	{ U 1; C a b; U 2; R a=1 b=2; } >in
	ag2-assemble <in 2>err >out
	cmp <(sed -n 3p out) <(sed -n 4p in)
}

# A search or a parse of the container for each of its results would take hours.
@test "one container with the late results of twenty thousand responses is taken apart in one go" {
	jq -cn '
		{type: "ModelRequest", data: {parts: [{__event__: "TextInput", content: "go"}]}},
		(range(20000) | {type: "ModelResponse", data: {tool_calls: {calls: [{id: "c\(.)", name: "f", arguments: "{}"}]}}}),
		{type: "ModelRequest", data: {parts: [{__event__: "TextInput", content: "on"}]}},
		{type: "ToolResultsEvent", data: {results: [range(20000) | {parent_id: "c\(.)", result: {data: {parts: [{__event__: "TextInput", content: "x"}]}}}]}},
		{type: "ModelRequest", data: {parts: [{__event__: "TextInput", content: "end"}]}}' >in
	ag2-assemble <in >out 2>err
	[ "$(wc -l <out)" -eq 40003 ]
	[ "$(tail -n +2 out | head -n 40000 | jq -c '.data.tool_calls.calls[0].id // .data.results[0].parent_id' | uniq -c | awk '$1 != 2')" = "" ]
	ag2-ask -n -m openai:x <in >body 2>err || fail "$(cat err)"
	[ "$(jq '.messages | length' body)" -eq 40003 ]
}
