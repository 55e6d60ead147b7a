#!/usr/bin/env bats
# ag2-store fsck: what it finds, what --repair does about it, and that it says nothing of a store that is well.

load helper
load redis
load backend

kinds=$everywhere

setup() {
	clean_environment
	ok='{"type":"ag2.events.input_events.ModelRequest","data":{"content":"hello"}}'
}

teardown() {
	redis_stop
}

# finds LINE...: these, and nothing else, are what fsck prints; nothing is changed by that.
finds() {
	ag2-store export / >before.tar 2>/dev/null || true
	run -1 ag2-store fsck
	output_is "$(printf '%s\n' "$@")"
	ag2-store export / >after.tar 2>/dev/null || true
	same before.tar after.tar
}

is_well() {
	run -0 ag2-store fsck
	output_is ""
	run -0 ag2-store fsck --repair
	output_is ""
}

repairs() {
	run -0 ag2-store fsck --repair
	output_is "$(printf '%s\n' "$@")"
	is_well
}

# ---- on every store ----

bad_lines() {
	printf '%s\n{"type": "to\n%s\nnull\n\n[]\n%s' "$ok" "$ok" "$ok" | ag2-store append /log/middle.jsonl >offset
	printf '%s\n{"type": "torn' "$ok" | ag2-store append /log/tail.jsonl >offset
	printf '%s\n{"a": 01}\n' "$ok" | sed s/hello/older/ | ag2-store append /log/tail.dropped-1.jsonl >offset
	printf '{"no": "end"' | ag2-store append /log/not-a-log.txt >offset
	finds "/log/middle.jsonl: line 2 (13 bytes at 75) is no event" \
		"/log/middle.jsonl: lines 4 to 6 (9 bytes at 163) are no events" \
		"/log/tail.dropped-1.jsonl: line 2 (10 bytes at 75) is no event" \
		"/log/tail.jsonl: line 2 (14 bytes at 75) is no event"
	repairs "/log/middle.jsonl: line 2 (13 bytes at 75) is no event: moved to /log/middle.torn-1" \
		"/log/middle.jsonl: lines 4 to 6 (9 bytes at 163) are no events: moved to /log/middle.torn-1" \
		"/log/tail.dropped-1.jsonl: line 2 (10 bytes at 75) is no event: moved to /log/tail.torn-1" \
		"/log/tail.jsonl: line 2 (14 bytes at 75) is no event: moved to /log/tail.torn-2"
	printf '{"type": "to\nnull\n\n[]\n' >want
	ag2-store cat /log/middle.torn-1 >got
	same want got
	printf '{"type": "torn' >want
	ag2-store cat /log/tail.torn-2 >got
	same want got
	printf '%s\n%s\n%s' "$ok" "$ok" "$ok" >want
	ag2-store cat /log/middle.jsonl >got
	same want got
	ag2-store cat /log/tail.jsonl >got
	printf '%s\n' "$ok" >want
	same want got
}

@test "lines that are no events are found, and moved to a file that is told, byte for byte" {
	everywhere bad_lines
}

@test "a log in which every byte was lost, a BOM, a log without its last newline" {
	export AG2_STORE=disk:$TMP/s
	mkdir -p s/log
	head -c 5000 /dev/zero >s/log/zeros.jsonl
	printf '\357\273\277%s\n%s' "$ok" "$ok" >s/log/bom.jsonl
	: >s/log/empty.jsonl
	finds "/log/zeros.jsonl: line 1 (5000 bytes at 0) is no event"
	repairs "/log/zeros.jsonl: line 1 (5000 bytes at 0) is no event: moved to /log/zeros.torn-1"
	[ "$(stat -c %s s/log/zeros.torn-1)" -eq 5000 ]
}

segments() {
	printf '%s\n' "$ok" | ag2-store append /log/a.jsonl >offset
	printf '%s\n' "$ok" | ag2-store append /log/gap.jsonl >offset
	echo '{"type":"x","data":{}}' | ag2-store append /log/gap.dropped-3.jsonl >offset
	echo '{"type":"x","data":{}}' | ag2-store append /log/a.dropped-1.jsonl >offset
	# What AG2 leaves when it dies between the two files that it writes.
	printf '%s\n' "$ok" | ag2-store append /log/a.dropped-2.jsonl >offset
	finds "/log/a.dropped-2.jsonl: a compaction did not finish: its lines still begin the log, and AG2 reads them twice" \
		"/log/gap.jsonl: of its 3 dropped segments 2 are missing"
	run -1 ag2-store fsck --repair
	output_is "/log/a.dropped-2.jsonl: a compaction did not finish: its lines still begin the log, and AG2 reads them twice: removed: the log has them
/log/gap.jsonl: of its 3 dropped segments 2 are missing"
	run -1 ag2-store exists /log/a.dropped-2.jsonl
	run -0 ag2-store log cat a
	output_is '{"type":"x","data":{}}'$'\n'"$ok"
	finds "/log/gap.jsonl: of its 3 dropped segments 2 are missing"
}

@test "segments: one of an unfinished compaction goes, ones that are missing are told" {
	everywhere segments
}

# AG2 writes a log whole from its own memory: what others appended meanwhile, and an aggregation has covered, is lost.
shorter() {
	local i
	for i in 1 2 3; do ag2-store log user s "question $i"; done
	ag2-store log cat s >whole
	ag2-aggregate --stream s -m exec:'cat >/dev/null; echo memory' working-memory
	is_well
	ag2-store log user s "another question"
	is_well
	head -n 2 whole | ag2-store write /log/s.jsonl
	finds "/log/s.jsonl: is shorter than its cursor, or another log: 'working-memory' has covered 3 events, and the last of them is not there any more; it was overwritten or cut"
	run -1 ag2-store fsck --repair
	run -0 ag2-aggregate --stream s -m exec:'cat >/dev/null; echo memory' --reset --mark working-memory
	is_well
	ag2-store rm /log/s.jsonl
	finds "/.ag2/aggregate/working-memory/s: is the cursor of a stream that is not there"
	repairs "/.ag2/aggregate/working-memory/s: is the cursor of a stream that is not there: removed"
}

@test "a log that is shorter than its cursor is told, and the cursor of no stream goes" {
	everywhere shorter
}

golden() {
	local u
	cp -R "$GOLDEN/disk" golden
	cp "$GOLDEN/ag2.db" golden.db
	redis_start
	redis_load "$GOLDEN/redis_dump.json"
	for u in "disk:$TMP/golden" "sqlite:$TMP/golden.db" "$url"; do
		export AG2_STORE=$u
		is_well
		echo x | ag2-store append /memory/new >offset
		ag2-store log user "$(ag2-store log ls | head -n 1)" hello
		is_well
		ag2-store rm /memory/new
		is_well
	done
}

@test "stores that AG2 wrote are well, before and after we write to them" {
	golden
}

@test "--json: an object a line; no store is 66; on a terminal names are scrubbed" {
	export AG2_STORE=disk:$TMP/s
	run -66 ag2-store fsck
	run -66 ag2-store fsck --repair
	[ ! -e s ]
	mkdir -p s/log s/memory
	echo x >s/log/a.jsonl
	ln -s /etc/passwd $'s/memory/b\e[1m'
	run -1 ag2-store fsck --json
	[ "$(jq -r .kind <<<"$output" | sort | xargs)" = "hidden line" ]
	[ "$(jq -c 'select(.kind == "line")' <<<"$output")" = '{"path":"/log/a.jsonl","kind":"line","what":"line 1 (2 bytes at 0) is no event","repaired":null}' ]
	run -1 ag2-store fsck --repair --json
	[ "$(jq -r 'select(.kind == "line").repaired' <<<"$output")" = "moved to /log/a.torn-1" ]
	run -64 ag2-store fsck /log
	need_terminal
	run script -qec "ag2-store fsck" /dev/null </dev/null
	has '/memory/b\x1b[1m: is a symbolic link'
}

# ---- well under load ----

# Writers of every kind that go on while fsck looks; $1: a command that does what AG2 does, again and again.
busy() {
	local pids=() p
	for i in 1 2; do
		(while [ ! -e stop ]; do
			ag2-store log user "s$i" "from $i" || exit
			ag2-store write "/memory/w$i" <<<text || exit
			ag2-store rm "/memory/w$i" || exit
			echo x | ag2-store append /memory/both >/dev/null || exit
			echo y | ag2-store write "/d/e$i/f" && ag2-store rm -r "/d/e$i" || exit
		done) 3>&- &
		pids+=($!)
	done
	(while [ ! -e stop ]; do "$@" || exit; done) 3>&- &
	pids+=($!)
	for i in 1 2 3 4 5 6; do
		run -0 ag2-store fsck
		output_is ""
	done
	run -0 ag2-store fsck --repair
	output_is ""
	touch stop
	for p in "${pids[@]}"; do wait "$p"; done
	rm stop
	is_well
}

plain_append() {
	printf '%s\n' "$ok" >>store/log/own.jsonl
	printf '%s\n' "$ok" "$ok" >store/log/whole.jsonl
}

sql_write() {
	sqlite3 -cmd '.timeout 20000' store.db "BEGIN IMMEDIATE; INSERT OR REPLACE INTO entries (path, content, version) VALUES ('/log/own.jsonl', x'7b7d0a', 7); COMMIT;
		SELECT count(*) FROM entries; DELETE FROM entries WHERE path = '/log/own.jsonl';" >/dev/null
}

cli_write() {
	ag2_write /log/own.jsonl "$ok"
	ag2_append /log/own.jsonl "
$ok"
	ag2_delete /log/own.jsonl
}

@test "nothing is found in a disk store while others, and AG2, write to it" {
	export AG2_STORE=disk:$TMP/store
	mkdir -p store/log
	busy plain_append
}

@test "nothing is found in an SQLite store while others, and AG2, write to it" {
	export AG2_STORE=sqlite:$TMP/store.db
	echo x | ag2-store write /x
	busy sql_write
}

@test "nothing is found in a Redis store while others, and AG2, write to it" {
	redis_start
	export AG2_STORE=$url
	echo x | ag2-store write /x
	busy cli_write
}

# ---- disk ----

# calls CMD...: how many system calls it makes, put into last: killat says that it ended before a later one.
calls() {
	local below=1 above=8192 k
	while [ "$((above - below))" -gt 1 ]; do
		k=$(((above + below) / 2))
		run "$TOOLS/killat" "$k" "$@" <<<"text"
		[ "$status" -ne 77 ] || skip "no ptrace here"
		if [ "$status" -eq 0 ]; then below=$k; else above=$k; fi
	done
	last=$below
}

seq_is_odd() {
	[ "$(($(od -An -tu1 -j8 -N1 store/.ag2/lock) % 2))" -eq 1 ]
}

@test "disk: what writers leave that die at any moment is found without a change, and repaired" {
	export AG2_STORE=disk:$TMP/store
	local k kinds=
	ag2-store write /a <<<old
	calls ag2-store write /a
	ag2-store write /a <<<old
	for ((k = last - 40; k <= last; k++)); do
		"$TOOLS/killat" "$k" ag2-store write /a <<<"new $k" || [ $? -eq 1 ]
		(cd store && find . -type f -exec cat {} + | cksum) >before
		run ag2-store fsck
		(cd store && find . -type f -exec cat {} + | cksum) >after
		same before after
		if [ -n "$output" ]; then
			status_is 1
			kinds+=" $(cut -d: -f2- <<<"$output")"
			run -0 ag2-store fsck --repair
			is_well
		fi
		run -0 ag2-store cat /a
		[ "$output" = old ] || [ "$output" = "new $k" ]
		[ "$output" = old ] || ag2-store write /a <<<old
	done
	has "bytes of a change that never was made" "$kinds"
	has "writing it was begun by a process that died and not finished" "$kinds"
}

@test "disk: an unfinished change is finished by --repair, and its files are named" {
	export AG2_STORE=disk:$TMP/store
	local k
	ag2-store write /keep <<<x
	calls ag2-store append /log/a.txt
	ag2-store rm -rf /log
	# The last call before the journal says that it is done, or a little before.
	for ((k = last; k > last - 40; k--)); do
		"$TOOLS/killat" "$k" ag2-store append /log/a.txt <<<"new" >/dev/null || [ $? -eq 1 ]
		! seq_is_odd || break
		ag2-store rm -rf /log
	done
	finds_unfinished
	run -0 ag2-store fsck --repair
	output_is "/log/a.txt: an append to it was begun by a process that died and not finished: finished"
	is_well
	[ "$(cat store/log/a.txt)" = new ]
}

finds_unfinished() {
	run -1 ag2-store fsck
	output_is "/log/a.txt: an append to it was begun by a process that died and not finished"
	seq_is_odd
}

@test "disk: a journal that is none is kept aside, links that lead out and pipes are told" {
	export AG2_STORE=disk:$TMP/store
	ag2-store write /a <<<x
	echo "not a journal" >store/.ag2/lock
	run -65 ag2-store write /a <<<y
	run -1 ag2-store fsck
	has "/.ag2/lock: is not the journal"
	run -0 ag2-store fsck --repair
	has "moved to /.ag2/lock.damaged-1"
	[ "$(cat store/.ag2/lock.damaged-1)" = "not a journal" ]
	ag2-store write /a <<<y
	is_well
	ln -s /etc/passwd store/out
	ln -s a store/in
	mkfifo store/pipe
	run -1 ag2-store fsck
	[ "$(sort <<<"$output")" = "/out: is a symbolic link that leads out of the store or nowhere, and so is not shown
/pipe: is neither file nor directory, and so is not shown" ]
}

@test "disk: what lies in the place of the store's own files is told, refused with 65, and moved aside" {
	export AG2_STORE=disk:$TMP/store
	local own kind
	for own in .ag2/lock .ag2 .ag2/tmp .ag2/locks; do
		for kind in link file dir fifo; do
			rm -rf store
			ag2-store write /a <<<x
			rm -rf "store/$own"
			case $kind in
			link) ln -s /etc/passwd "store/$own" ;;
			file) echo kept >"store/$own" ;;
			dir) mkdir -p "store/$own/sub" ;;
			fifo) mkfifo "store/$own" ;;
			esac
			case $own:$kind in
			.ag2/lock:file | .ag2/locks:file | .ag2:dir | .ag2/tmp:dir) continue ;;	# are of the right kind
			.ag2/locks:*) run -65 timeout 20 ag2-store lock /a true ;;
			*) run -65 timeout 20 ag2-store write /a <<<y ;;
			esac
			has "fsck --repair moves aside what is there"
			run -1 timeout 20 ag2-store fsck
			has "/$own: is "
			[ "${#lines[@]}" -eq 1 ]
			run -0 timeout 20 ag2-store fsck --repair
			has "moved to /$own.damaged-1"
			is_well
			[ -e "store/$own.damaged-1" ] || [ -L "store/$own.damaged-1" ]
			ag2-store append /a <<<y
			ag2-store write /b <<<y
			ag2-store lock /a true
			is_well
		done
	done
}

# clock HEX...: eight bytes, the least first, of the greatest version that was given out.
clock() {
	printf "$(printf '\\x%s' "$@")" | dd of=store/.ag2/lock bs=1 seek=16 conv=notrunc status=none
}

version() {
	ag2-store stat --json "$1" | jq -r .version
}

@test "disk: times ahead, before 1970 and beyond all versions, and a clock that is ahead" {
	export AG2_STORE=disk:$TMP/store
	local v before
	ag2-store write /a <<<a
	ag2-store write /b <<<b
	touch -d 1960-01-01 store/a
	[ "$(version /a)" -eq 1 ]
	ag2-store append /a <<<a
	is_well
	# A file dated ahead goes on from there alone.
	touch -d 2240-01-01 store/a
	v=$(version /a)
	ag2-store append /a <<<a
	[ "$(version /a)" -gt "$v" ]
	ag2-store write /b <<<b
	[ "$(version /b)" -lt "$v" ]
	finds "/a: its time, which is its version, is ahead, at 2240-01-01T00:00:00Z: touch(1) sets it"
	# ... until it is removed: nothing at its path may have a lower version then.
	v=$(version /a)
	ag2-store rm /a
	ag2-store write /a <<<a
	[ "$(version /a)" -gt "$v" ]
	touch store/a
	finds "/: the clock of versions is ahead of the time, at 2240-01-01T00:00:00Z: all that changes is dated so"
	run -0 ag2-store fsck --repair
	is_well
	v=$(version /b)
	ag2-store write /b <<<b
	[ "$(version /b)" -gt "$v" ]
	is_well
	# Where the file system takes such a time.
	touch -d 2300-01-01 store/a
	case $(stat -c %y store/a) in
	2300*)
		ag2-store ls -l / >/dev/null
		run -65 ag2-store append /a <<<a
		has "fsck --repair sets it to now"
		run -65 ag2-store write /a <<<a
		run -0 ag2-store fsck --repair
		is_well
		ag2-store append /a <<<a
		;;
	esac
	before=$(version /b)
	for v in 7f ff; do
		clock ff ff ff ff ff ff ff $v
		run -65 ag2-store write /b <<<c
		run -1 ag2-store fsck
		has "which no version can be"
		run -0 ag2-store fsck --repair
		ag2-store write /b <<<c
		[ "$(version /b)" -gt "$before" ]
		is_well
	done
	for v in "ff ff ff ff ff ff ff 7e" "00 00 00 00 00 00 00 30"; do
		# shellcheck disable=SC2086
		clock $v
		run -1 ag2-store fsck
		has "/: the clock of versions is ahead of the time, at 2"
		run -0 ag2-store fsck --repair
		is_well
		ag2-store write /b <<<d
		is_well
	done
}

# ---- sqlite ----

@test "sqlite: rows, segments and versions that do not fit each other" {
	export AG2_STORE=sqlite:$TMP/s.db
	head -c 200000 /dev/urandom >big
	ag2-store write /big big
	ag2-store write /c <<<c
	ag2-store write /d <<<d
	is_well
	sqlite3 s.db "DELETE FROM segments WHERE id = (SELECT id << 40 | base + 65536 FROM files WHERE path = '/big');
		UPDATE files SET size = 99 WHERE path = '/c';
		INSERT INTO segments VALUES (900 << 40, x'616263'), ((900 << 40) + 3, x'64');
		UPDATE counter SET version = 1"
	run -1 ag2-store fsck
	output_is "/: versions would fall: the counter is at 1, a file has 3
/big: its segments have 134464 bytes, its size is 200000
/c: its segments have 2 bytes, its size is 99
/: 4 bytes of content belong to no file"
	run -65 ag2-store cat /big
	run -0 ag2-store fsck --repair
	has "/: 4 bytes of content belong to no file: moved to /.ag2/lost/900"
	has "/big: its segments have 134464 bytes, its size is 200000: it has the 134464 bytes that are there"
	is_well
	{ head -c 65536 big; tail -c +131073 big; } >want
	ag2-store cat /big >got
	same want got
	run -0 ag2-store cat /.ag2/lost/900
	output_is abcd
	run -0 ag2-store cat /c /d
	output_is "c
d"
	[ "$(sqlite3 s.db "SELECT length(content) FROM entries WHERE path = '/big'")" -eq 134464 ]
	v=$(ag2-store stat --json /c | jq -r .version)
	ag2-store append /c <<<more
	[ "$(ag2-store stat --json /c | jq -r .version)" -gt "$v" ]
}

@test "sqlite: segments of no file, with any number, are in nobody's way, and what they have is kept" {
	export AG2_STORE=sqlite:$TMP/s.db
	local id
	ag2-store write /a <<<a
	for id in 9223372036854775807 -9223372036854775808 -5 0 "(2 << 40)" "((2 << 40) | (1 << 39))"; do
		sqlite3 s.db "INSERT INTO segments VALUES ($id, x'6162')"
		run -1 ag2-store fsck
		output_is "/: 2 bytes of content belong to no file"
		ag2-store append /new <<<new
		run -0 ag2-store cat /new
		output_is new
		id=$((id >> 40))
		repairs "/: 2 bytes of content belong to no file: moved to /.ag2/lost/$id"
		run -0 ag2-store cat "/.ag2/lost/$id"
		output_is ab
		ag2-store rm -f "/.ag2/lost/$id"
		ag2-store rm /new
	done
	# A row whose number none can have, and a size that none can be.
	sqlite3 s.db "UPDATE segments SET id = id - (1 << 40) * (id >> 40) + (-5 << 40); UPDATE files SET id = -5, size = -1"
	repairs "/a: its segments have 2 bytes, its size is -1: it has the 2 bytes that are there"
	run -0 ag2-store cat /a
	output_is a
	sqlite3 s.db "UPDATE files SET id = -9223372036854775807"
	repairs "/a: its segments have 0 bytes, its size is 2: it has the 0 bytes that are there" "/: 2 bytes of content belong to no file: moved to /.ag2/lost/1"
}

@test "sqlite: a version that none can be is told, no change counts on from it, and it is repaired" {
	export AG2_STORE=sqlite:$TMP/s.db
	local url v
	ag2-store write /a <<<a
	ag2-store write /b <<<b
	sqlite3 s.db "UPDATE counter SET version = 9223372036854775807"
	run -65 ag2-store append /a <<<more
	has "counter of versions"
	repairs "/: the counter of versions is at 9223372036854775807, which no version can be: nothing can be written: set"
	ag2-store append /a <<<more
	[ "$(ag2-store stat --json /a | jq -r .version)" -eq 3 ]
	for url in sqlite:s.db sqlite:plain.db 'sqlite:plain.db?layout=ag2'; do
		for v in 9223372036854775807 1e19; do
			if [ "$url" != sqlite:s.db ]; then
				rm -f plain.db*
				ag2_table plain.db "INSERT INTO entries VALUES ('/a', 'a', 1), ('/b', 'b', 3)"
			fi
			case $url in
			sqlite:s.db) sqlite3 s.db "UPDATE files SET version = $v WHERE path = '/a'" ;;
			*) sqlite3 plain.db "UPDATE entries SET version = $v WHERE path = '/a'" ;;
			esac
			export AG2_STORE=$url
			run -65 ag2-store append /a <<<more
			has "'/a' is damaged: its version"
			run -1 ag2-store fsck
			has "/a: its version is "
			run -0 ag2-store fsck --repair
			is_well
			v=$(ag2-store stat --json /a | jq -r .version)
			[ "$v" -gt 3 ] && [ "$v" -lt 100 ]
			ag2-store append /b <<<more
			[ "$(ag2-store stat --json /b | jq -r .version)" -gt "$v" ]
		done
	done
}

# ag2_table FILE SQL: a database with AG2's table, and what the statements put in it.
ag2_table() {
	sqlite3 "$1" "CREATE TABLE entries (path TEXT PRIMARY KEY, content BLOB NOT NULL, version INTEGER NOT NULL DEFAULT 0); $2"
}

@test "sqlite: paths that no command can name are passed over by all that goes through a tree, kept, and told" {
	local url
	for url in sqlite:s.db 'sqlite:s.db?layout=ag2'; do
		export AG2_STORE=$url
		rm -f s.db*
		ag2_table s.db "INSERT INTO entries VALUES ('/a/../b', 'x', 1), ('/a/./c', 'x', 1), ('/n/' || printf('%.300c', 'n'), 'x', 1),
			('/nul' || char(0) || 'x', 'x', 1), ('/nul' || char(0) || 'd/e', 'x', 1), (x'2f62', 'x', 1), ('no slash', 'x', 1), ('/end/', 'x', 1),
			('/deep' || replace(printf('%.1400c', 'd'), 'd', '/dd'), 'x', 1), ('/good', 'good', 2)"
		run -0 ag2-store ls
		output_is "a/
deep/
end/
good
n/"
		run -0 ag2-store ls -R /a
		output_is ""
		run -0 ag2-store grep . /
		output_is "/good:good"
		ag2-store tree / >/dev/null
		ag2-store export / | tar -tf - >names
		grep -qx good names
		ag2-store append /good <<<" more"
		run -0 ag2-store cat /good
		output_is "good more"
		run -1 ag2-store fsck
		[ "$(grep -c 'is a path that no command of ours can name$' <<<"$output")" -eq 9 ]
		has '/nul\0x: is a path'
		[ "$(sqlite3 s.db "SELECT count(*) FROM entries WHERE content = CAST('x' AS BLOB) OR content = 'x'")" -eq 9 ]
		run -0 ag2-store rm -r /a
	done
	sqlite3 s.db "INSERT INTO entries VALUES (NULL, 'x', 1)"
	run -65 ag2-store -s sqlite:s.db append /good <<<x
	has "has no path"
}

@test "sqlite: a view or trigger that is gone or another's is made anew; what is nobody's is told" {
	export AG2_STORE=sqlite:$TMP/s.db
	local sql
	ag2-store write /a <<<a
	for sql in "DROP TRIGGER entries_insert" "DROP VIEW entries" "DROP VIEW entries; CREATE VIEW entries(path, content, version) AS SELECT path, 'x', 1 FROM files" \
		"DROP TRIGGER entries_delete; CREATE TRIGGER entries_delete INSTEAD OF DELETE ON entries BEGIN SELECT 1; END"; do
		sqlite3 s.db "$sql"
		run -65 ag2-store ls
		run -1 ag2-store fsck
		run -0 ag2-store fsck --repair
		has "the view and its triggers were made anew"
		is_well
		[ "$(sqlite3 s.db "SELECT content FROM entries WHERE path = '/a'")" = a ]
	done
	sqlite3 s.db "INSERT OR REPLACE INTO entries VALUES ('/b', 'b', 1)"
	run -0 ag2-store cat /b
	output_is b
	sqlite3 s.db "CREATE TRIGGER odd AFTER INSERT ON files BEGIN SELECT 1; END"
	run -1 ag2-store fsck --repair
	has "'odd' is not what ag2 made"
	sqlite3 o.db "CREATE TABLE x(y)"
	echo text >t.db
	run -65 ag2-store -s o.db fsck
	run -65 ag2-store -s t.db fsck --repair
	[ "$(cat t.db)" = text ]
}

@test "sqlite: what AG2 can make and nobody can name or copy; a page that is damaged" {
	export AG2_STORE=sqlite:$TMP/s.db
	ag2-store write /a <<<a
	sqlite3 s.db "INSERT OR REPLACE INTO entries VALUES ('/a/b', 'b', 1); INSERT OR REPLACE INTO entries VALUES ('/x/../y', 'b', 1)"
	run -1 ag2-store fsck
	output_is "/a: is a file and a directory: it is read, but cannot be copied to a disk
/x/../y: is a path that no command of ours can name"
	for i in $(seq 300); do echo "INSERT OR REPLACE INTO entries VALUES ('/n/$i', '$i', 1);"; done | sqlite3 s.db
	sqlite3 s.db "PRAGMA wal_checkpoint(TRUNCATE)" >/dev/null
	head -c 300 /dev/zero | tr '\0' '\377' | dd of=s.db bs=1 seek=$(($(stat -c %s s.db) - 4096)) conv=notrunc status=none
	run -1 ag2-store fsck
	has "SQLite finds the database damaged"
	run -1 ag2-store fsck --repair
	has "SQLite finds the database damaged"
}

# ---- redis ----

@test "redis: index, values, our names and the counter out of step" {
	redis_start
	export AG2_STORE=$url
	local p=ag2:knowledge i
	for i in 1 2 3 4; do ag2-store write "/m/f$i" <<<"$i"; done
	is_well
	rc DEL $p:/m/f1 >/dev/null
	rc ZREM $p:__index /m/f2 >/dev/null
	rc SET $p:/m/new hello >/dev/null
	rc SET $p:__version_counter 2 >/dev/null
	rc SET $p:__ag2:lock:/x token >/dev/null
	rc LPUSH $p:/m/list a >/dev/null
	rc --raw DUMP $p:__index >before
	run -1 ag2-store fsck
	output_is "/: versions would fall: the counter is at 2, a file has 4
/m/f1: is in AG2's index and has no content
/m/f2: has content and is not in AG2's index: no listing shows it
/m/list: is no string: it cannot be read
/m/new: has content and is not in AG2's index: no listing shows it
/: the key 'ag2:knowledge:__ag2:lock:/x' should have come to an end by itself"
	rc --raw DUMP $p:__index >after
	same before after
	run -1 ag2-store fsck --repair
	has "/m/f2: has content and is not in AG2's index: no listing shows it: put into the index"
	has "/m/f1: is in AG2's index and has no content: taken out of the index"
	run -1 ag2-store fsck
	output_is "/m/list: is no string: it cannot be read"
	rc DEL $p:/m/list >/dev/null
	is_well
	run -0 ag2-store ls /m
	output_is "f2
f3
f4
new"
	[ "$(rc ZSCORE $p:__index /m/new)" -gt 4 ]
	[ "$(rc TTL $p:__ag2:lock:/x)" -gt 0 ]
}

@test "redis: a name that we have lost is listed again; keys of a wrong type and a counter that is no number" {
	redis_start
	export AG2_STORE=$url
	local p=ag2:knowledge
	ag2-store write /a/x <<<1
	ag2-store write /b <<<2
	rc ZREM $p:__ag2:names /a/x >/dev/null
	rc ZADD $p:__ag2:names 0 /nowhere >/dev/null
	run -1 ag2-store fsck
	output_is "/a/x: is in AG2's index and not in ours: no listing shows it"
	run -0 ag2-store fsck --repair
	is_well
	run -0 ag2-store ls
	output_is "a/
b"
	rc HSET $p:__ag2:files /gone '1 1 1' >/dev/null
	run -1 ag2-store fsck
	output_is "/gone: is gone, but something is kept about it"
	run -0 ag2-store fsck --repair
	is_well
	rc SET $p:__version_counter many >/dev/null
	run -65 ag2-store write /b <<<3
	run -0 ag2-store fsck --repair
	output_is "/: the counter of versions is no number: nothing can be written: set"
	ag2-store write /b <<<3
	is_well
	rc RENAME $p:__index $p:aside >/dev/null
	rc SET $p:__index x >/dev/null
	run -1 ag2-store fsck --repair
	has "is a string, not a zset"
}

@test "redis: versions that are none, and a counter from which none can follow, are told; the store works when they are repaired" {
	redis_start
	export AG2_STORE=$url
	local p=ag2:knowledge n
	ag2-store write /a <<<1
	ag2-store write /b <<<2
	rc ZADD $p:__index inf /b >/dev/null
	rc ZADD $p:__index 9007199254740993 /a >/dev/null
	ag2-store append /a <<<3
	is_of_b="/b: has a version that nobody can have given it: no change of it would be noticed"
	run -1 ag2-store fsck
	output_is "$is_of_b"
	run -0 ag2-store fsck --repair
	output_is "$is_of_b: given a new one"
	is_well
	[ "$(rc GET $p:__version_counter)" = 4 ]
	[ "$(ag2-store cat /b)" = 2 ]
	for n in inf 9223372036854775806 9223372036854775807 4503599627370496 1.5 007 -3 ' 5' ''; do
		rc SET $p:__version_counter "$n" >/dev/null
		run -65 ag2-store append /a <<<x
		has fsck
		run -1 ag2-store fsck
		has "nothing can be written"
		run -0 ag2-store fsck --repair
		has "nothing can be written: set"
		is_well
		ag2-store append /a <<<x
		is_well
		ag2_write /new "$n"
		is_well
	done
	[ "$(rc GET $p:__version_counter)" -lt 100 ]
}

@test "redis: other keys and prefixes, with characters of patterns in them, are none of its business" {
	redis_start
	rc SET 'ag2:knowledge2:/x' 1 >/dev/null
	rc SET 'a*b:/x' 1 >/dev/null
	export AG2_STORE="$url?prefix=a%2a"
	ag2-store write /y <<<1
	rc SET 'aX:/not-ours' 1 >/dev/null
	is_well
	rc SET 'a*:/ours' 1 >/dev/null
	run -1 ag2-store fsck
	output_is "/ours: has content and is not in AG2's index: no listing shows it"
}
