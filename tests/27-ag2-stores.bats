# Stores that AG2 itself made, a directory, a database and the keys of a Redis server with the same content: read as they are, changed by
# us, and AG2 goes on with them.
bats_require_minimum_version 1.5.0
load helper
load redis
load backend
load ag2

kinds=$everywhere

setup() {
	clean_environment
	stream=11111111-2222-4333-8444-555555555555
	jq -r 'keys_unsorted[]' "$GOLDEN/stores_filled.json" | LC_ALL=C sort >paths
}

# What AG2 made, as a store of the kind at hand.
made_by_ag2() {
	local file=${AG2_STORE#*:}
	case $kind in
	disk*) cp -r "$GOLDEN/disk" "${file%\?*}" && chmod -R u+w "${file%\?*}" ;;
	sqlite*) cp "$GOLDEN/ag2.db" "${file%\?*}" && chmod u+w "${file%\?*}" ;;
	*) redis_load "$GOLDEN/redis_dump.json" ;;
	esac
}

# content PATH: of what AG2 wrote there.
content() {
	jq -j --arg p "$1" '.[$p]' "$GOLDEN/stores_filled.json"
}

# Everything that is in it, to be compared.
inside() {
	local file=${AG2_STORE#*:}
	case $kind in
	disk*) (cd "${file%\?*}" && find . -printf '%p %y %m %s %T@ %C@\n' | sort) ;;
	sqlite*) cksum <"${file%\?*}" ;;
	*)
		rc ZRANGE "$ag2_key:__index" 0 -1 WITHSCORES
		rc GET "$ag2_key:__version_counter"
		rc DBSIZE
		;;
	esac
}

listed() {
	made_by_ag2
	inside >before
	ag2-store ls -R | grep -v '/$' | LC_ALL=C sort >got
	same paths got || return 1
	while IFS= read -r path; do
		content "$path" >file
		ag2-store cat "$path" >content
		same file content || return 1
		[ "$(ag2-store stat --json "$path" | jq .size)" -eq "$(wc -c <file)" ] || return 1
	done <paths
	ag2-store ls -lR >/dev/null
	ag2-store tree >/dev/null
	ag2-store grep -l e >/dev/null
	ag2-store log cat $stream >/dev/null
	ag2-store log ls -l >/dev/null
	run -0 ag2-store fsck || return 1
	output_is "" || return 1
	inside >after
	same before after
}

@test "every file is listed and has its content, and reading changes nothing" {
	everywhere listed
}

# What AG2's store answers itself, where it has versions.
versions_rise() {
	case $kind in
	disk*) return 0 ;;
	sqlite*) last=16 working=6 ;;
	*) last=17 working=7 ;;
	esac
	made_by_ag2
	[ "$(ag2-store stat --json /artifacts/empty.txt | jq -r .version)" = $last ] || fail "$last" || return 1
	[ "$(ag2-store stat --json /memory/working.md | jq -r .version)" = $working ] || fail "$working" || return 1
	ag2-store append /memory/working.md <<<more >/dev/null
	[ "$(ag2-store stat --json /memory/working.md | jq -r .version)" -gt $last ] || fail "no greater" || return 1
	[ "$(ag2-store stat --json /artifacts/empty.txt | jq -r .version)" = $last ]
}

@test "versions are AG2's and go on rising" {
	everywhere versions_rise
}

appended() {
	made_by_ag2
	run -0 ag2-store append /artifacts/wal.log <<<three || return 1
	output_is 9 || return 1
	run -0 ag2-store append /artifacts/empty.txt <<<'not any more'
	output_is 0 || return 1
	ag2-store append /new/of/ours <<<'from us' >/dev/null
	ag2-store write "/artifacts/a b%c_d/it's" <<<"ours"
	ag2-store rm -r /memory/conversations
	# AG2 reads all of it, what we did and what we left alone.
	ag2 open
	grep -v '^/memory/conversations/' paths | cat - <(printf '/new/of/ours\n/artifacts/a b%%c_d/it'"'"'s\n') | LC_ALL=C sort >want
	ag2 paths >got
	same want got || return 1
	while IFS= read -r path; do
		content "$path" >file
		case $path in
		/artifacts/wal.log) echo three >>file ;;
		/artifacts/empty.txt) echo 'not any more' >file ;;
		/new/*) echo 'from us' >file ;;
		*"'s") continue ;;	# the client cannot say it
		esac
		ag2 get "$path" >got
		same file got || return 1
	done <want
	# And goes on, over the connection that it had.
	ag2 add /artifacts/wal.log four
	ag2 put /memory/working.md rewritten
	ag2 del /new
	ag2-store cat /artifacts/wal.log >got
	printf 'one\ntw\303\266\nthree\nfour\n' >file
	same file got || return 1
	[ "$(ag2-store cat /memory/working.md)" = rewritten ] || fail "$(ag2-store cat /memory/working.md)" || return 1
	run -1 ag2-store exists /new || return 1
	run -0 ag2-store fsck || return 1
	output_is ""
}

@test "what we append, write and delete there AG2 reads, with all the rest, and goes on; so do we" {
	everywhere appended
}

goes_on() {
	made_by_ag2
	run -0 ag2-store log ls
	output_is $stream || return 1
	ag2-store log cat $stream >all
	for part in dropped-1.jsonl dropped-2.jsonl jsonl; do
		cat "$GOLDEN/disk/log/$stream.$part"
		[ -z "$(tail -c 1 "$GOLDEN/disk/log/$stream.$part")" ] || echo
	done >want
	same want all || return 1
	ag2-store log user @last 'and then?'
	[ "$(ag2-store log cat $stream | wc -l)" -eq $(($(wc -l <want) + 1)) ] || fail "a line more" || return 1
	ag2-store log cat $stream | head -n -1 >all
	same want all || return 1
	ag2 open
	ag2 get /log/$stream.jsonl >got
	ag2-store log cat --current $stream >want
	same want got
}

@test "a stream is read with what was dropped from it, and goes on" {
	everywhere goes_on
}

initialised() {
	made_by_ag2
	run -0 ag2-store init --name other || return 1
	output_is "" || return 1
	[ "$(ag2-store cat /.initialized)" = scribe ] || fail "$(ag2-store cat /.initialized)" || return 1
	run -0 ag2-store tool <<<'{"action": "list", "path": "/"}'
	[ "$output" = "$(content /SKILL.md; printf '\n---\n.initialized\nSKILL.md\nartifacts/\nlog/\nmemory/')" ] || fail "$output"
}

@test "init finds them initialised, the knowledge tool lists with the text that AG2 wrote" {
	everywhere initialised
}

# Two dozen changes of three files by turns of AG2 and us; after each both see the same, which is what it should be.
any_order() {
	local i r=12345 path who text
	ag2 open
	rm -rf model
	mkdir -p model/d
	for i in $(seq 24); do
		r=$(((r * 1103515245 + 12345) % 2147483648))
		path=$(echo /a /d/b /d/c | cut -d' ' -f$((r / 65536 % 3 + 1)))
		text="$i $(printf 'x%.0s' $(seq $((r / 16 % 50 + 1))))"
		who=$((r / 1024 % 8))
		case $who in
		0) ag2-store write "$path" <<<"$text" && echo "$text" >model$path ;;
		1 | 2)
			run -0 ag2-store append "$path" <<<"$text"
			output_is "$(cat model$path 2>/dev/null | wc -c)" || fail "$i: the offset" || return 1
			echo "$text" >>model$path
			;;
		3) ag2-store rm -f "$path" && rm -f model$path ;;
		4) ag2 put "$path" "$text" && echo "$text" >model$path ;;
		5 | 6) ag2 add "$path" "$text" && echo "$text" >>model$path ;;
		7) ag2 del "$path" && rm -f model$path ;;
		esac || fail "$i: $who $path" || return 1
		(cd model && find . -type f | cut -c2- | LC_ALL=C sort) >want
		ag2-store ls -R 2>/dev/null | grep -v '/$' | LC_ALL=C sort >got
		same want got || fail "$i: $who $path: what we list" || return 1
		ag2 paths >got || true
		same want got || fail "$i: $who $path: what AG2 lists" || return 1
		[ ! -e model$path ] || { ag2-store cat "$path" >got && same model$path got && ag2 get "$path" >got && same model$path got; } ||
			fail "$i: $who $path" || return 1
	done
	ag2-store fsck
}

@test "whatever the order of AG2's changes and ours, both read the same after each" {
	everywhere any_order
}
