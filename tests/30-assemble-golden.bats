#!/usr/bin/env bats
# ag2-assemble --as-ag2 gives what AG2's policies gave: prompts, retained events byte for byte, and what was sent.
load helper
load policies

run_case() {
	local args
	readarray -t args <"$1/args"
	fill_store "$1/store"
	touch "$1/in" "$1/want.events" "$1/want.json"
	AG2_NOW=$(cat "$1/now") ag2-assemble --as-ag2 -s disk:store "${args[@]}" <"$1/in" >"$1/out" || return 1
	grep -v -e '^{"type": *"Prompt"' -e 'HaltEvent", *"data"' "$1/out" | cmp - "$1/want.events" || return 1
	sed -n '/^{"type": *"Prompt"/p; /HaltEvent", *"data"/p' "$1/out" |
		jq -c 'if .type == "Prompt" then .data.content else . end' | cmp - "$1/want.json"
}

group() {
	local dir failed=0 ran=0
	unpack "$1"
	for dir in cases/*; do
		ran=$((ran + 1))
		run_case "$dir" || { echo "differs: $dir" >&2; failed=1; }
	done
	[ "$ran" -eq "$2" ] || fail "$ran cases instead of $2"
	[ "$failed" -eq 0 ]
}

@test "conversation keeps what AG2 keeps" {
	group conversation 1
}

@test "sliding-window keeps what AG2 keeps, and says how many" {
	group sliding 45
}

@test "token-budget keeps what AG2 keeps" {
	group budget 36
}

@test "working-memory injects what AG2 injects" {
	group working 6
}

@test "episodic-memory injects what AG2 injects" {
	group episodic 16
}

@test "alert injects and halts as AG2 does, once" {
	group alert 12
}

@test "chains of policies give what AG2's give" {
	group chain 8
}
