# Agent files, as the programs meet them (every rule of the format is in unit/config.c).

load helper

check() {
	run ag2-ask --check -c "$@"
}

@test "a good agent file passes the check silently" {
	printf 'name: j\nassembly: [working_memory, sliding_window: 5]\n' >a.yaml
	check a.yaml
	status_is 0
	output_is ''
}

@test "an unknown key is 78 and one line that names file, line, key and the nearest known one" {
	printf 'name: j\nknowledge:\n  agregate: working-memory\n' >a.yaml
	check a.yaml
	status_is 78
	output_is "ag2-ask: a.yaml:3: unknown key 'agregate'; did you mean 'aggregate'?"
}

@test "a value of the wrong type is 78 and names its line" {
	printf 'name: j\nprompt: [a]\n' >a.yaml
	check a.yaml
	status_is 78
	output_is "ag2-ask: a.yaml:2: 'prompt' must be text, not a list"
}

@test "an unknown policy in the file is 78, not a usage error, and names its line" {
	printf 'assembly:\n  - sliding_windoww: 5\n' >a.yaml
	check a.yaml
	status_is 78
	has 'a.yaml:2: '
	has 'sliding'
}

@test "an unknown provider in the file is 78 and names its line" {
	printf 'name: x\nmodel: opnai:gpt-5\n' >a.yaml
	run ag2-ask -c a.yaml -s memory: hello
	status_is 78
	has 'a.yaml:2: '
}

@test "a file that its group or others may write is 77" {
	printf 'name: j\n' >a.yaml
	chmod 664 a.yaml
	check a.yaml
	status_is 77
	has 'a.yaml'
	chmod 646 a.yaml
	check a.yaml
	status_is 77
}

@test "an agent file that is not there is 66" {
	check nowhere.yaml
	status_is 66
	has "nowhere.yaml"
}

@test "a tower of aliases, a loop and deep nesting are refused in little memory" {
	{
		echo 'a: &a [x, x, x, x, x, x, x, x, x]'
		for i in b c d e f g h i; do echo "$i: &$i [*a, *a, *a, *a, *a, *a, *a, *a, *a]"; done
	} >tower.yaml
	echo 'tools: &a [*a]' >loop.yaml
	printf '%10000s' '' | tr ' ' '[' >deep.yaml
	limit=200000
	case $BIN in *asan*) limit=unlimited ;; esac
	for file in tower loop deep; do
		run bash -c 'ulimit -v "$2"; timeout 10 ag2-ask --check -c "$1"' - "$file.yaml" "$limit"
		status_is 78
		has "$file.yaml:1: "
	done
}

@test "windows before memory are reported with both names and places, and are status 1" {
	printf 'assembly: [sliding_window: 5, working_memory, token_budget: 100, alert]\n' >a.yaml
	check a.yaml
	status_is 1
	[ "${#lines[@]}" -eq 3 ] || fail "$output"
	has 'sliding_window (policy 1)' "${lines[0]}"
	has 'working_memory (policy 2)' "${lines[0]}"
	has 'token_budget (policy 3)' "${lines[2]}"
	has 'alert (policy 4)' "${lines[2]}"
}

@test "paths in the file are relative to it, whatever the current directory" {
	mkdir agent elsewhere
	printf 'echo from-the-agent\n' >agent/model.sh
	printf 'model: exec:sh model.sh\nknowledge: {store: "disk:st"}\n' >agent/a.yaml
	cd elsewhere
	run -0 ag2-ask -c ../agent/a.yaml hello
	has from-the-agent
	[ -d ../agent/st/log ]
	[ ! -e st ]
}

@test "a store's URL that cannot be meant is 78 and names its line, in every program that opens it" {
	for url in bogus:x 'disk:x?sync=never' 'redis://u:secret@h/0' '""'; do
		printf 'name: j\nmodel: exec:cat\nknowledge:\n  store: %s\nassembly: [working_memory]\n' "$url" >a.yaml
		for program in "ag2-store ls" "ag2-assemble" "ag2-ask q" "ag2-ask -n q" "ag2-compact --stream s -i tail-window:1" "ag2-aggregate --stream s working-memory"; do
			[ -x "$BIN/${program%% *}" ] || continue
			run $program -c a.yaml </dev/null
			[ "$status" -eq 78 ] || fail "$program with $url: $status: $output"
			has 'a.yaml:4: ' "$output"
			hasnt secret "$output"
			[ "$(printf '%s\n' "$output" | wc -l)" -eq 1 ]
		done
	done
	# What -s says is no matter of the file.
	run ag2-store ls -c a.yaml -s bogus:x
	status_is 64
	hasnt a.yaml
}

@test "a layout is ag2 or cache" {
	echo 'layout: cache' >a.yaml
	check a.yaml
	status_is 0
	echo 'layout: warm' >a.yaml
	check a.yaml
	status_is 78
	has "a.yaml:1: 'layout' must be ag2 or cache, not 'warm'"
}
