# Stores that AG2 itself made: a directory and a database with the same content.
bats_require_minimum_version 1.5.0
load helper

setup() {
	clean_environment
	cp -r "$GOLDEN/disk" "$TMP/disk"
	cp "$GOLDEN/ag2.db" "$TMP/ag2.db"
	chmod -R u+w "$TMP/disk" "$TMP/ag2.db"
	stores="disk:$TMP/disk sqlite:$TMP/ag2.db"
	stream=11111111-2222-4333-8444-555555555555
}

@test "every file is listed and has its content" {
	jq -r 'keys_unsorted[]' "$GOLDEN/stores_filled.json" | LC_ALL=C sort >want
	for AG2_STORE in $stores; do
		export AG2_STORE
		ag2-store ls -R | grep -v '/$' | LC_ALL=C sort >got
		same want got
		while IFS= read -r path; do
			jq -j --arg p "$path" '.[$p]' "$GOLDEN/stores_filled.json" >file
			ag2-store cat "$path" >content
			same file content
			[ "$(ag2-store stat --json "$path" | jq .size)" -eq "$(wc -c <file)" ]
		done <want
	done
}

@test "reading leaves the bytes of the database alone" {
	cp ag2.db before.db
	export AG2_STORE=sqlite:$TMP/ag2.db
	ag2-store ls -lR >/dev/null
	ag2-store tree >/dev/null
	ag2-store log cat $stream >/dev/null
	cmp before.db ag2.db
}

@test "versions of the database are AG2's and go on rising" {
	export AG2_STORE=sqlite:$TMP/ag2.db
	[ "$(ag2-store stat --json /artifacts/empty.txt | jq -r .version)" = 16 ]
	[ "$(ag2-store stat --json /memory/working.md | jq -r .version)" = 6 ]
	ag2-store append /memory/working.md <<<more >/dev/null
	[ "$(ag2-store stat --json /memory/working.md | jq -r .version)" -gt 16 ]
	[ "$(ag2-store stat --json /artifacts/empty.txt | jq -r .version)" = 16 ]
}

@test "what is appended comes behind what AG2 wrote" {
	for AG2_STORE in $stores; do
		export AG2_STORE
		run -0 ag2-store append /artifacts/wal.log <<<three
		output_is 9
		run -0 ag2-store cat /artifacts/wal.log
		output_is "$(printf 'one\ntwö\nthree')"
	done
}

@test "a stream is read with what was dropped from it, and goes on" {
	for AG2_STORE in $stores; do
		export AG2_STORE
		run -0 ag2-store log ls
		output_is $stream
		ag2-store log cat $stream >all
		for part in dropped-1.jsonl dropped-2.jsonl jsonl; do
			cat "$GOLDEN/disk/log/$stream.$part"
			[ -z "$(tail -c 1 "$GOLDEN/disk/log/$stream.$part")" ] || echo
		done >want
		same want all
		ag2-store log user @last 'and then?'
		[ "$(ag2-store log cat $stream | wc -l)" -eq $(($(wc -l <want) + 1)) ]
		ag2-store log cat $stream | head -n -1 >all
		same want all
	done
}

@test "init finds them initialised" {
	for AG2_STORE in $stores; do
		export AG2_STORE
		run -0 ag2-store init --name other
		output_is ""
		[ "$(ag2-store cat /.initialized)" = scribe ]
	done
}

@test "the knowledge tool lists with the text that AG2 wrote" {
	for AG2_STORE in $stores; do
		export AG2_STORE
		run -0 ag2-store tool <<<'{"action": "list", "path": "/"}'
		[ "$output" = "$(jq -r '.["/SKILL.md"]' "$GOLDEN/stores_filled.json"; printf -- '---\n.initialized\nSKILL.md\nartifacts/\nlog/\nmemory/')" ] || fail "$output"
	done
}
