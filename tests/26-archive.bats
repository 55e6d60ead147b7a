# export and import: a store as a tar archive, from any back end to any other.
bats_require_minimum_version 1.5.0
load helper
load redis

teardown() {
	redis_stop
}

one() {
	ag2-store -s disk:one "$@"
}

# A store with names of all kinds, empty and larger files, and what ag2 keeps for itself.
fill() {
	local long
	long=$(printf 'n%.0s' $(seq 250))
	printf 'prefers tea' | one write /memory/working.md
	one write /empty </dev/null
	printf x | one write "/$long/$long/$long"
	printf 1 | one write "/$(printf 'new\nline\ttab')"
	printf 2 | one write "/$(printf 'caf\303\251/\346\227\245\346\234\254')"
	printf 33 | one write "/$(printf "\\377%0120d" 0)"
	printf 3 | one write "/$(printf 'not\377utf8\200')"
	printf 4 | one write '/a%b_c*d[e] f\g'
	printf 5 | one write "/$(printf '%100s' '' | tr ' ' h)"
	printf 6 | one write "/$(printf '%101s' '' | tr ' ' i)"
	printf 7 | one write '/a.txt'
	printf 8 | one write '/a/b'
	printf cursor | one write /.ag2/aggregate/k/s
	printf held | one write /.ag2/other
	head -c 700000 /dev/urandom | one write /artifacts/blob
	printf '%512s' x | one write /artifacts/block
}

# contents STORE: every path and its content's checksum.
contents() {
	ag2-store -s "$1" ls -aR0 / | while IFS= read -r -d '' p; do
		case $p in
		*/ | */.ag2/lock* | /.ag2/other) continue ;;
		esac
		printf '%s %s\n' "$(ag2-store -s "$1" cat "$p" | md5sum)" "${p//$'\n'/?}"
	done
}

@test "disk, tar, sqlite, tar, disk, tar: the same archive and the same contents" {
	fill
	one export >1.tar
	ag2-store -s sqlite:two.db import <1.tar
	ag2-store -s sqlite:two.db export >2.tar
	same 1.tar 2.tar
	ag2-store -s disk:three import <2.tar
	ag2-store -s disk:three export >3.tar
	same 1.tar 3.tar
	contents disk:one >want
	[ "$(wc -l <want)" -ge 14 ]
	for s in sqlite:two.db disk:three; do
		contents $s >got
		same want got
	done
	run -1 ag2-store -s disk:three exists /.ag2/other
	[ $(($(stat -c %s 1.tar) % 10240)) -eq 0 ]
}

@test "disk, tar, sqlite, tar, redis, tar: the same archive" {
	command -v redis-server >/dev/null || skip "no redis-server"
	redis_start
	fill
	one export >1.tar
	ag2-store -s sqlite:two.db import <1.tar
	ag2-store -s sqlite:two.db export | ag2-store -s "$url" import
	ag2-store -s "$url" export >2.tar
	same 1.tar 2.tar
	rc flushall
	ag2-store -s "$url" import <2.tar
	ag2-store -s "$url" export | ag2-store -s disk:four import
	ag2-store -s disk:four export >3.tar
	same 1.tar 3.tar
}

@test "GNU tar lists and extracts it, and what it extracts is a store" {
	fill
	one export >1.tar
	tar -tf 1.tar --null >list 2>err
	grep -v "keyword .hdrcharset." err >other || true
	[ ! -s other ] || fail "$(cat err)"
	tail -n 1 list | grep -q '^.ag2/export-complete$'
	mkdir out
	tar -xf 1.tar -C out 2>err
	hasnt rror "$(cat err)"
	contents disk:one >want
	contents disk:out | grep -av export-complete >got
	same want got
	ag2-store -s disk:out export >2.tar
	same 1.tar 2.tar
	LC_ALL=C tar -xf 1.tar -C out --overwrite
	[ "$(cat "out/$(printf 'caf\303\251/\346\227\245\346\234\254')")" = 2 ]
}

@test "a part of a store, and one file" {
	fill
	one export /memory/ | tar -t >got
	printf 'memory/working.md\n.ag2/export-complete\n' >want
	same want got
	one export a.txt | tar -t >got
	printf 'a.txt\n.ag2/export-complete\n' >want
	same want got
	one export /memory | ag2-store -s disk:part import
	[ "$(ag2-store -s disk:part cat /memory/working.md)" = "prefers tea" ]
	run -1 --separate-stderr one export /no/such
	output_is ""
	has "'/no/such' is not in the store" "$stderr"
	run -66 ag2-store -s disk:nowhere export
}

@test "an empty store is an archive too" {
	mkdir empty
	ag2-store -s disk:empty export >1.tar
	run -0 ag2-store -s sqlite:x.db import <1.tar
	output_is ""
}

@test "no archive to a terminal, none from one" {
	need_terminal
	fill
	run -64 script -qec "ag2-store -s disk:one export" /dev/null
	has "a file or a pipe"
	run -64 script -qec "ag2-store -s disk:one import" /dev/null
	has "a file or a pipe"
}

@test "an archive without its last entry is 65, and what was in it is there" {
	fill
	one export >1.tar
	total=$(stat -c %s 1.tar)
	for cut in 0 100 512 1024 5000 $((total / 2)) $((total - 10240)); do
		head -c "$cut" 1.tar >cut.tar
		rm -rf cut
		run -65 --separate-stderr ag2-store -s disk:cut import <cut.tar
		output_is ""
		has "goes on from there" "$stderr"
	done
	tar --delete -f 1.tar .ag2/export-complete
	rm -rf cut
	run -65 ag2-store -s disk:cut import <1.tar
	has "cut short"
	[ "$(ag2-store -s disk:cut cat /memory/working.md)" = "prefers tea" ]
}

@test "an archive that lost, gained or changed an entry is 65" {
	fill
	one export >1.tar
	cp 1.tar less.tar
	tar --delete -f less.tar a.txt
	run -65 ag2-store -s disk:a import <less.tar
	has "other files than its last entry says"
	cp 1.tar more.tar
	echo more >more
	tar -rf more.tar more
	run -65 ag2-store -s disk:b import <more.tar
	has "goes on behind"
	{ head -c 260 1.tar; printf XXXX; tail -c +265 1.tar; } >bad.tar
	run -65 ag2-store -s disk:c import <bad.tar
	echo "this is no archive, but it is long enough to be looked at as if it were one $(seq 200)" >text
	run -65 ag2-store -s disk:d import <text
	has "this is no tar archive"
	run -1 ag2-store -s disk:b exists /more
}

@test "links, devices, pipes and .. are refused" {
	mkdir t
	echo x >t/file
	ln -s file t/link
	tar -cf link.tar t
	run -65 ag2-store -s disk:a import <link.tar
	has "symbolic link"
	rm t/link
	ln t/file t/hard
	tar -cf hard.tar t
	run -65 ag2-store -s disk:b import <hard.tar
	has "hard link"
	rm t/hard
	mkfifo t/pipe
	tar -cf pipe.tar t
	run -65 ag2-store -s disk:c import <pipe.tar
	has "named pipe"
	tar -cf dots.tar -P t/../t/file
	run -65 ag2-store -s disk:d import <dots.tar
	has "'.' and '..' are not allowed"
	[ ! -e d ] || [ -z "$(ag2-store -s disk:d ls)" ]
	tar --format=pax -cf dev.tar /dev/null 2>/dev/null
	run -65 ag2-store -s disk:e import <dev.tar
	has "device"
	truncate -s 1M t/holes
	echo x >>t/holes
	for format in gnu pax; do
		tar --format=$format -S -cf sparse.tar t/holes
		[ "$(stat -c %s sparse.tar)" -lt 100000 ]
		run -65 ag2-store -s disk:f import <sparse.tar
		has "sparse file"
	done
}

@test "names that are no path of a store are refused; those that lead nowhere else are taken" {
	mkdir t
	echo x >t/x
	while read -r status name want; do
		tar -P -cf name.tar --transform="s,.*,$name," t/x
		rm -rf got
		run ag2-store -s disk:got import <name.tar
		status_is "$status"
		[ -z "$want" ] || [ "$(ag2-store -s disk:got cat "$want")" = x ]
		[ -n "$want" ] || [ ! -e got ] || [ -z "$(ag2-store -s disk:got ls -aR | grep -v /.ag2)" ]
		hasnt "Assertion"
	done <<-END
		65 /etc/passwd /etc/passwd
		65 ./a/./b
		65 a//b /a/b
		65 ../a
		65 a/../../b
		65 ..
		65 .ag2/../a
		65 $(printf 'n%.0s' $(seq 256))
		65 .ag2/lock
	END
	# what comes twice is there as it came last
	echo y >t/y
	tar -cf twice.tar --transform='s,.*,f,' t/x t/y
	run -65 ag2-store -s disk:two import <twice.tar
	has "complete, is missing"
	[ "$(ag2-store -s disk:two cat /f)" = y ]
}

@test "what other tars made is read, though it has no end of ours" {
	mkdir -p t/dir
	long=$(printf 'l%.0s' $(seq 200))
	echo x >"t/dir/$long"
	printf y >"t/$(printf 'caf\303\251')"
	for format in gnu pax ustar oldgnu; do
		(cd t && tar --format=$format -cf ../$format.tar . 2>/dev/null) || [ $format = ustar ]
		rm -rf got
		run -65 ag2-store -s disk:got import <$format.tar
		has "its last entry, which says that it is complete, is missing"
		[ "$(ag2-store -s disk:got cat "/$(printf 'caf\303\251')")" = y ]
		[ $format = ustar ] || [ "$(ag2-store -s disk:got cat "/dir/$long")" = x ]
	done
}

@test "import: the same again changes nothing, other content needs --overwrite" {
	fill
	one export >1.tar
	ag2-store -s sqlite:two.db import <1.tar
	ag2-store -s sqlite:two.db ls -lR | awk '{ print $1, $2, $4 }' >before
	ag2-store -s sqlite:two.db import <1.tar
	ag2-store -s sqlite:two.db import --overwrite <1.tar
	ag2-store -s sqlite:two.db ls -lR | awk '{ print $1, $2, $4 }' >after
	same before after
	echo mine | ag2-store -s sqlite:two.db write /memory/working.md
	run -73 ag2-store -s sqlite:two.db import <1.tar
	has "'/memory/working.md' is there with other content (--overwrite replaces it)"
	[ "$(ag2-store -s sqlite:two.db cat /memory/working.md)" = mine ]
	ag2-store -s sqlite:two.db import --overwrite <1.tar
	[ "$(ag2-store -s sqlite:two.db cat /memory/working.md)" = "prefers tea" ]
}

@test "import: a directory in the way of a file is named, and what came before is there" {
	fill
	one export >1.tar
	echo x | ag2-store -s disk:two write /memory/working.md/below
	run -73 ag2-store -s disk:two import <1.tar
	has "/memory/working.md"
	[ "$(ag2-store -s disk:two cat /a/b)" = 8 ]
}

@test "an import that is killed leaves whole files, and goes on" {
	mkdir -p one/d
	for i in $(seq 500); do echo "$i" >one/d/$i; done
	head -c 3000000 /dev/zero >one/d/big
	one export >1.tar
	mkfifo pipe
	for signal in KILL TERM INT; do
		rm -rf two.db*
		ag2-store -s sqlite:two.db import <pipe 2>err &
		pid=$!
		exec 7>pipe
		head -c $((1024 * 400)) 1.tar >&7
		wait_for 20 eval '[ "$(ag2-store -s sqlite:two.db ls /d 2>/dev/null | wc -l)" -ge 100 ]'
		# a shell's background job does not heed INT
		[ $signal = INT ] && signal=HUP
		kill -$signal $pid
		exec 7>&-
		wait $pid || true
		[ $signal = KILL ] || grep -q 'the same import again goes on from there' err || fail "$(cat err)"
		for f in $(ag2-store -s sqlite:two.db ls /d); do
			[ "$(ag2-store -s sqlite:two.db cat /d/$f)" = "$f" ]
		done
		ag2-store -s sqlite:two.db import <1.tar
		ag2-store -s sqlite:two.db export >2.tar
		same 1.tar 2.tar
	done
}

@test "a file of more than a piece: killed in its middle, the same import completes it" {
	mkdir one
	head -c 140000000 /dev/urandom >one/large
	echo x >one/z
	one export >1.tar
	mkfifo pipe
	ag2-store -s disk:two import <pipe 2>err &
	pid=$!
	exec 7>pipe
	head -c 100000000 1.tar >&7
	wait_for 20 test -s two/large
	kill -KILL $pid
	exec 7>&-
	wait $pid || true
	[ "$(stat -c %s two/large)" -eq 67108864 ]
	ag2-store -s disk:two import <1.tar
	same one/large two/large
	[ ! -e two/.ag2/import ]
	ag2-store -s disk:two import <1.tar
	printf x | ag2-store -s disk:two append /large
	run -73 ag2-store -s disk:two import <1.tar
	# not ours to complete
	truncate -s 67108864 two/large
	run -73 ag2-store -s disk:two import <1.tar
}

@test "export of a SQLite store is one moment: writers go on meanwhile" {
	for i in $(seq 40); do head -c 100000 /dev/zero | ag2-store -s sqlite:s.db write "/f$i"; done
	mkfifo pipe
	ag2-store -s sqlite:s.db export >pipe &
	pid=$!
	exec 7<pipe
	head -c 1024 <&7 >1.tar
	echo new | ag2-store -s sqlite:s.db write /f40
	echo new | ag2-store -s sqlite:s.db write /added
	ag2-store -s sqlite:s.db rm /f39
	cat <&7 >>1.tar
	wait $pid
	ag2-store -s disk:then import <1.tar
	[ "$(ag2-store -s disk:then ls | wc -l)" -eq 40 ]
	for i in 39 40; do [ "$(ag2-store -s disk:then cat "/f$i" | wc -c)" -eq 100000 ]; done
}

@test "a directory that may not be read is there; what needs its content fails, behind what was found before" {
	echo tea | one write /a/f
	echo tea | one write /b/hidden
	echo tea | one write /c/f
	chmod 0 one/b
	locked() { without_root ag2-store -s disk:one "$@"; }
	run -0 locked ls -1
	output_is "$(printf 'a/\nb/\nc/')"
	run -0 locked exists /b
	run -77 --separate-stderr locked grep tea
	output_is "/a/f:tea"
	has "cannot list '/b': Permission denied" "$stderr"
	run -77 locked tree
	has "a/"
	locked export >part.tar || status=$?
	[ "$status" -eq 77 ]
	run -65 ag2-store -s disk:two import <part.tar
	run -73 locked write /b /dev/null
	run -1 locked fsck
	has "/b: may not be listed"
	chmod 700 one/b
	run -0 one cat /b/hidden
	output_is tea
}

@test "a full disk and a closed pipe" {
	fill
	run -74 bash -c 'ag2-store -s disk:one export >/dev/full'
	run bash -c 'ag2-store -s disk:one export | head -c 10 >/dev/null; exit ${PIPESTATUS[0]}'
	status_is 141
}

@test "progress is told on a terminal only, and taken away" {
	need_terminal
	fill
	one export 2>err >1.tar
	[ ! -s err ]
	head -c 300000000 /dev/zero >one/large
	TERM=xterm script -qec "ag2-store -s disk:one export | { sleep 0.5; cat; } >1.tar" log </dev/null >/dev/null
	grep -q ' of .* files, .* of .*M' log || fail "$(cat -v log)"
	grep -aqP '\r\x1b\[K' log
	TERM=dumb script -qec "ag2-store -s disk:one export >1.tar" log </dev/null >/dev/null
	[ "$(grep -c files, log)" -eq 0 ]
}
