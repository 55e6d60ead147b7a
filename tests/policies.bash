# The golden cases of policies, for tests of ag2-assemble: `load policies` behind `load helper`.
#
# Writes a directory for each case of a group, and for each `then`, the second assembly of a case: in (what goes in), args,
# now, store files, want.events (lines), want.json (prompts as strings, then what was sent). Alerts that were delivered
# before stand at the head of the stream, with a request and a response behind them.
unpack() {
	jq -r --arg g "$1/" '
		def alerts: map(select(.type | endswith("ObserverAlert")));
		def front: if length > 0 then . + [{type: "ModelRequest", data: {parts: []}}, {type: "ModelResponse", data: {}}] else . end;
		def spec: .policy + (to_entries | map(select(.key != "policy") | "\(.key)=\(.value)") | join(",") | if . == "" then "" else ":" + . end);
		def put($dir; $name; $values): $values[] | "\($dir)/\($name)\t\(.)";
		def unpacked($dir; $front; $events; $expect):
			put($dir; "in"; [.prompts_in[] | {type: "Prompt", data: {content: .}} | tojson] + [$front[], $events[] | tojson]),
			put($dir; "args"; [.chain[] | spec | if . == "alert" and $front == [] then "alert:delivered=none" else . end]),
			put($dir; "now"; [($expect.sent // [])[0].data.created_at // 1]),
			put($dir; "store"; [(.store // {}) | to_entries[] | "\(.key)\t\(.value | @base64)"]),
			put($dir; "want.events"; [$front[] | tojson] + [$expect.retained[] | $events[.] | tojson]),
			put($dir; "want.json"; [$expect.prompts[] | tojson] + [($expect.sent // [])[] | tojson]);
		.cases[] | select(.name | startswith($g)) | (.name | gsub("/"; ".")) as $dir |
			unpacked($dir; (.delivered // []) | front; .events; .expect),
			(select(.expect["then"]) | .expect["then"] as $again |
				unpacked($dir + ".then"; .events | alerts | front; $again.events; $again))
	' "$GOLDEN/policies.json" | awk -F '\t' '{
		file = $1
		dir = file
		sub("/.*", "", dir)
		if (!(dir in made)) {
			system("mkdir -p cases/" dir)
			made[dir] = 1
		}
		if (file != last)
			close("cases/" last)
		last = file
		print substr($0, length(file) + 2) > ("cases/" file)
	}'
}

fill_store() {
	local path content
	rm -rf store
	mkdir store
	[ -e "$1" ] || return 0
	while IFS=$'\t' read -r path content; do
		printf '%s' "$content" | base64 -d | ag2-store -s disk:store write "$path"
	done <"$1"
}
