# Short ways to write streams, and to read them: `load assemble` behind `load helper`.
#
# U text, A text, C id..., R id=text..., S text, AL severity source text: one event line each. `shape` reads lines and
# prints them on one line in the same short form; results that are errors show as R(id=ERROR), notes as U(text|part).

json() {
	jq -cn --arg t "$1" '$t'
}

U() {
	echo "{\"type\": \"ModelRequest\", \"data\": {\"parts\": [{\"__event__\": \"TextInput\", \"content\": $(json "$1")}]}}"
}

A() {
	echo "{\"type\": \"ModelResponse\", \"data\": {\"message\": {\"content\": $(json "$1")}}}"
}

C() {
	local id calls=
	for id; do
		calls="$calls${calls:+, }{\"id\": \"$id\", \"name\": \"f\", \"arguments\": \"{}\"}"
	done
	echo "{\"type\": \"ModelResponse\", \"data\": {\"message\": null, \"tool_calls\": {\"calls\": [$calls]}}}"
}

result() {
	echo "\"parent_id\": \"${1%%=*}\", \"name\": \"f\", \"result\": {\"data\": {\"parts\": [{\"__event__\": \"TextInput\", \"content\": $(json "${1#*=}")}]}}"
}

R() {
	local one list=
	for one; do
		list="$list${list:+, }{\"__event__\": \"ToolResultEvent\", $(result "$one")}"
	done
	echo "{\"type\": \"ToolResultsEvent\", \"data\": {\"results\": [$list]}}"
}

# A result that came alone, and an announcement of a call.
r() {
	echo "{\"type\": \"ToolResultEvent\", \"data\": {$(result "$1")}}"
}
c() {
	echo "{\"type\": \"ToolCallEvent\", \"data\": {\"id\": \"$1\", \"name\": \"f\", \"arguments\": \"{}\"}}"
}

S() {
	echo "{\"type\": \"CompactionSummary\", \"data\": {\"summary\": $(json "$1"), \"event_count\": 2}}"
}

AL() {
	echo "{\"type\": \"ObserverAlert\", \"data\": {\"source\": \"$2\", \"severity\": {\"__enum__\": \"Severity\", \"value\": \"$1\"}, \"message\": \"$3\", \"data\": {}}}"
}

usage() {
	echo '{"type": "UsageEvent", "data": {"kind": "model_call"}}'
}

halt() {
	echo "{\"type\": \"HaltEvent\", \"data\": {\"reason\": \"$1\", \"source\": \"x\", \"alerts\": []}}"
}

shape() {
	jq -r '
		def part: .content // "media";
		def res: "\(.parent_id)=" + (if .error then "ERROR" else [.result.data.parts[] | part] | join("|") end);
		(.type | split(".") | last) as $t | .data |
		if $t == "Prompt" then "P(\(.content))"
		elif $t == "ModelRequest" then "U(" + ([.parts[] | part] | join("|")) + ")"
		elif $t == "ModelResponse" and (.tool_calls.calls // []) != [] then "C(" + ([.tool_calls.calls[].id] | join(",")) + ")"
		elif $t == "ModelResponse" then "A(\(.message.content))"
		elif $t == "ToolResultsEvent" then "R(" + ([.results[] | res] | join(",")) + ")"
		elif $t == "ToolResultEvent" then "r(" + res + ")"
		elif $t == "ToolCallEvent" then "c(\(.id))"
		elif $t == "CompactionSummary" then "S(\(.summary))"
		elif $t == "ObserverAlert" then "AL(\(.message))"
		elif $t == "HaltEvent" then "H(\(.reason))"
		elif $t == "UsageEvent" then "usage"
		else $t end' | paste -s -d ' ' -
}

# shapes WANT [ARG...]: standard input through a pipe, so that nothing can be read again.
shapes() {
	local want=$1 got
	shift
	got=$(cat | ag2-assemble "$@" 2>err | shape) || true
	[ "$got" = "$want" ] || fail "got:  $got" "want: $want" "$(cat err)"
}

# The same from a file, which is all at hand.
shapes_file() {
	local want=$1 got
	shift
	cat >input
	got=$(ag2-assemble "$@" <input 2>err | shape) || true
	[ "$got" = "$want" ] || fail "got:  $got" "want: $want" "$(cat err)"
}
