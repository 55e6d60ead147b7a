# The commands of ag2-store on files. The same tests run on other back ends through links to this file, or with AG2_TEST_STORE
# set: see backend.bash.
bats_require_minimum_version 1.5.0
load helper
load redis
load backend

put() {
	printf %s "$2" | ag2-store write "$1"
}

# ---- init ----

@test "init writes the name and four SKILL.md, and does nothing the second time" {
	run -0 ag2-store init --name journal
	has "initialised"
	has "$AG2_STORE"
	run -0 ag2-store cat /.initialized
	output_is journal
	for f in / /log/ /artifacts/ /memory/; do
		ag2-store exists "${f}SKILL.md"
	done
	[ "$(ag2-store cat /SKILL.md | head -n 1)" = "# journal Knowledge Store" ]
	ag2-store cat /SKILL.md | grep -q 'knowledge` tool'
	before=$(ag2-store ls -lR | awk '{print $1, $2, $4}')
	run -0 ag2-store init --name other
	output_is ""
	[ "$(ag2-store ls -lR | awk '{print $1, $2, $4}')" = "$before" ]
}

@test "init --no-tool does not speak of the tool, without --name the name is agent" {
	ag2-store init --no-tool
	run -0 ag2-store cat /SKILL.md
	has "# agent Knowledge Store"
	hasnt "tool"
	has "/artifacts/"
}

@test "init keeps a SKILL.md that is there" {
	put /memory/SKILL.md mine
	ag2-store init
	run -0 ag2-store cat /memory/SKILL.md
	output_is mine
}

@test "two inits at once leave one initialised store" {
	local pids=()
	for i in 1 2 3 4; do ag2-store init --name "n$i" >"out$i" & pids+=($!); done
	for p in "${pids[@]}"; do wait "$p"; done
	[ "$(cat out? | wc -l)" -eq 1 ]
	run -0 ag2-store cat /.initialized
	[[ $output == n? ]]
	[ "$(ag2-store cat /SKILL.md | head -n 1)" = "# $output Knowledge Store" ]
}

@test "init warns of a root that is called as one of its directories" {
	[ "$backend" = disk ] || skip "a file has no such root"
	for name in memory log artifacts; do
		run -0 --separate-stderr ag2-store -s "disk:$TMP/x/$name" init
		has "called '$name'" "$stderr"
		has "$name/$name" "$stderr"
	done
	run -0 --separate-stderr ag2-store -s "disk:$TMP/x/memories" init
	[ -z "$stderr" ]
}

# ---- write, cat, append ----

@test "what is written is what is read, byte by byte" {
	head -c 300000 /dev/urandom >bytes
	printf 'a\0b\r\n\xff\xfe' >>bytes
	ag2-store write /d/bytes bytes
	ag2-store cat /d/bytes >got
	same bytes got
	ag2-store write /d/bytes <bytes
	ag2-store cat d//bytes/ >got
	same bytes got
}

@test "an empty file is a file" {
	ag2-store write /empty </dev/null
	ag2-store exists /empty
	run -0 ag2-store cat /empty
	output_is ""
	run -0 ag2-store ls
	output_is empty
}

@test "cat of several files prints those that are there and exits 1 when one is not" {
	put /a A
	put /b B
	run -1 --separate-stderr ag2-store cat /a /nope /b
	output_is AB
	has "/nope" "$stderr"
	run -1 --separate-stderr ag2-store cat /nope
	output_is ""
}

@test "cat of a directory is refused" {
	put /d/a A
	run -1 --separate-stderr ag2-store cat /d
	output_is ""
	[ -n "$stderr" ]
}

@test "cat --range counts bytes, from the end when negative, and clamps" {
	put /f 0123456789
	check() {
		run -0 ag2-store cat --range="$1" /f
		output_is "$2"
	}
	check 3 3456789
	check 3: 3456789
	check 3:5 34
	check :2 01
	check 0:0 ""
	check 5:2 ""
	check -3 789
	check -3:9 78
	check -100:2 01
	check 0:-1 ""
	check 8:100 89
	check 100 ""
}

@test "a range inside a character gives the bytes asked for and a warning" {
	put /f 'hé你'
	run -0 --separate-stderr ag2-store cat --range=1:2 /f
	[ "$(printf %s "$output" | od -An -tx1)" = " c3" ]
	has "byte 2 is inside a character" "$stderr"
	hasnt "byte 1" "$stderr"
	run -0 --separate-stderr ag2-store cat --range=5 /f
	has "byte 5 is inside a character" "$stderr"
	run -0 --separate-stderr ag2-store cat --range=1:3 /f
	output_is é
	[ -z "$stderr" ]
}

@test "a range that is none is a usage error" {
	put /f x
	for r in x 1:x : 1:2:3 1.5 ''; do
		[ "$r" = : ] && continue
		run -64 ag2-store cat --range="$r" /f
		has "range"
	done
	run -0 ag2-store cat --range=: /f
	output_is x
}

@test "append prints the offset where its bytes begin" {
	run -0 ag2-store append /f <<<one
	output_is 0
	run -0 ag2-store append /f <<<two
	output_is 4
	printf x >file
	run -0 ag2-store append /f file
	output_is 8
	run -0 ag2-store append /f </dev/null
	output_is 9
	[ "$(ag2-store cat /f)" = "$(printf 'one\ntwo\nx')" ]
}

@test "many appenders lose nothing and every offset is right" {
	local pids=()
	for p in 1 2 3 4; do
		for i in $(seq 25); do
			printf '%s-%s\n' "$p" "$i" >"line$p"
			printf '%s %s\n' "$(ag2-store append /f "line$p")" "$p-$i"
		done >"offsets$p" & pids+=($!)
	done
	for p in "${pids[@]}"; do wait "$p"; done
	ag2-store cat /f >all
	[ "$(wc -l <all)" -eq 100 ]
	cat offsets? | while read -r offset line; do
		[ "$(tail -c +$((offset + 1)) all | head -n 1)" = "$line" ] || fail "$line is not at $offset"
	done
}

@test "write --if-version writes only over that version" {
	put /f one
	v=$(ag2-store stat --json /f | jq -r .version)
	printf two | ag2-store write --if-version "$v" /f
	run -1 --separate-stderr ag2-store write --if-version "$v" /f <<<three
	[ "$stderr" = "ag2-store: '/f' is not what it was: read it again" ] || fail "$stderr"
	run -0 ag2-store cat /f
	output_is two
	for v in "0 /f" "7 /g"; do
		# shellcheck disable=SC2086
		run -1 ag2-store write --if-version $v <<<three
		has "'${v#* }' is not what it was"
	done
	printf new | ag2-store write --if-version 0 /g
	run -0 ag2-store cat /g
	output_is new
}

@test "write of an input file that is not there exits 66 and makes no store" {
	run -66 ag2-store write /f nope
	has "nope"
	[ ! -e "${AG2_STORE#*:}" ]
}

@test "a file in the way of a directory, or the reverse, exits 73" {
	put /a x
	run -73 ag2-store write /a/b <<<x
	put /d/e x
	run -73 ag2-store write /d <<<x
	run -73 ag2-store append /d <<<x
}

@test "paths with . or .., or names that are too long, are refused" {
	put /a x
	for p in /../x /a/./b .. "/$(printf '%0256d' 0)"; do
		run -65 ag2-store write "$p" <<<x
		run -65 ag2-store cat "$p"
		run -65 ag2-store exists "$p"
	done
}

@test "siblings of the root are not reached" {
	mkdir -p "$TMP/store-evil"
	echo secret >"$TMP/store-evil/s"
	put /a x
	run -65 ag2-store cat /../store-evil/s
	hasnt secret
}

@test "no symlink leads out of the root, which may be one itself" {
	[ "$backend" = disk ] || skip "a database has no symlinks"
	mkdir -p real elsewhere
	echo secret >elsewhere/passwd
	ln -s "$TMP/real" link
	export AG2_STORE=disk:$TMP/link
	put /a 1
	[ "$(cat real/a)" = 1 ]
	ln -s "$TMP/elsewhere" real/out
	ln -s "$TMP/elsewhere/passwd" real/file
	ln -s ../elsewhere real/up
	for p in /out/passwd /file /up/passwd; do
		run ag2-store cat "$p"
		[ "$status" -ne 0 ]
		hasnt secret
	done
	run ag2-store ls -R
	hasnt passwd
	for p in /out/x /up/x /file; do
		run ag2-store write "$p" <<<evil
		[ "$status" -ne 0 ] || [ "$(cat elsewhere/passwd)" = secret ]
		run ag2-store append "$p" <<<evil
	done
	run ag2-store rm -r /out
	run ag2-store rm -r /up
	[ "$(ls elsewhere)" = passwd ]
	[ "$(cat elsewhere/passwd)" = secret ]
	[ "$(ag2-store cat /a)" = 1 ]
}

@test "names are bytes: no case folding, no normalising, no patterns" {
	put "/caf$(printf '\303\251').md" composed
	put "/cafe$(printf '\314\201').md" decomposed
	put /Foo/c 1
	put /FOO/b 2
	put /foo/a 3
	put '/pc%/a_b' 4
	put /pcX/other 5
	[ "$(ag2-store cat "/caf$(printf '\303\251').md")" = composed ]
	[ "$(ag2-store cat "/cafe$(printf '\314\201').md")" = decomposed ]
	ag2-store rm -r /foo '/pc%'
	run -0 ag2-store ls
	output_is "$(printf 'FOO/\nFoo/\ncafe\314\201.md\ncaf\303\251.md\npcX/')"
	run -1 ag2-store exists /foo
}

@test "rm of a directory leaves names that begin alike" {
	put /mem/a 1
	put /memory/b 2
	put /mem.txt 3
	ag2-store rm -r /mem
	run -0 ag2-store ls -R
	output_is "$(printf '/mem.txt\n/memory/\n/memory/b')"
}

# ---- rm ----

@test "rm takes files away, and directories only with -r" {
	put /d/a 1
	put /d/b 2
	ag2-store rm /d/a
	run -1 ag2-store rm /d
	has "-r"
	ag2-store exists /d/b
	ag2-store rm -r /d
	run -1 ag2-store exists /d
}

@test "rm of what is not there exits 1, with -f 0; the others go" {
	put /a 1
	put /b 2
	run -1 --separate-stderr ag2-store rm /a /nope /b
	has /nope "$stderr"
	run -0 ag2-store ls
	output_is ""
	run -0 ag2-store rm -f /nope
	output_is ""
}

@test "what is not in the store is told in the same words by every command" {
	put /a 1
	for command in cat stat ls tree rm "grep x" export; do
		run -1 --separate-stderr ag2-store $command /nope
		[ "$stderr" = "ag2-store: '/nope' is not in the store" ] || fail "$command: $stderr"
	done
}

@test "rm of the whole store is refused" {
	put /a 1
	for p in / // ''; do
		run -64 ag2-store rm -rf "$p"
	done
	ag2-store exists /a
}

# ---- exists, stat ----

@test "exists says 0 for files and directories, 1 for others, and prints nothing" {
	put /d/a 1
	for p in / /d /d/ d/a; do
		run -0 ag2-store exists "$p"
		output_is ""
	done
	for p in /D /d/b /d/a/x /da; do
		run -1 ag2-store exists "$p"
		output_is ""
	done
}

@test "stat tells type, size and a version that only rises" {
	put /d/f 12345
	run -0 ag2-store stat /d//f
	has "path:     /d/f"
	has "size:     5"
	v1=$(ag2-store stat --json /d/f | jq -r .version)
	ag2-store append /d/f <<<x >/dev/null
	v2=$(ag2-store stat --json /d/f | jq -r .version)
	ag2-store rm /d/f
	put /d/f y
	v3=$(ag2-store stat --json /d/f | jq -r .version)
	[ "$v1" -lt "$v2" ] && [ "$v2" -lt "$v3" ]
	run -0 ag2-store stat --json /d
	output_is '{"path":"/d","type":"directory"}'
	run -1 ag2-store stat /nope
}

# ---- ls, tree ----

@test "ls lists what is immediately below, in byte order, directories with a slash" {
	for f in b/x B a/y/z a.txt '.hidden' é; do put "/$f" x; done
	run -0 ag2-store ls
	output_is "$(printf '.hidden\nB\na.txt\na/\nb/\né')"
	run -0 ag2-store ls a
	output_is y/
	run -0 ag2-store ls -1 /a/y/
	output_is z
	run -0 ag2-store ls /a/y/z
	output_is /a/y/z
}

@test "ls of what is not there exits 1" {
	put /a 1
	run -1 --separate-stderr ag2-store ls /nope
	output_is ""
	has /nope "$stderr"
}

@test "ls -0 and -R give paths that programs can take apart" {
	put "/$(printf 'new\nline')" 1
	put "/d/$(printf 'tab\t')" 2
	ag2-store ls -R0 | tr '\0\n' '\n?' >got
	printf '/d/\n/d/tab\t\n/new?line\n' >want
	same want got
}

@test "ls -l shows version, size and age; --json the same as objects" {
	[ "$backend" != sqlite-ag2 ] || skip "AG2's table has no times"
	put /f 12345
	put /d/g 1
	run -0 ag2-store ls -l
	[[ ${lines[1]} =~ ^[1-9][0-9]*\ +5\ +[0-9]+s\ +f$ ]] || fail "${lines[1]}"
	[[ ${lines[0]} =~ ^\ *-\ +-\ +-\ +d/$ ]] || fail "${lines[0]}"
	ag2-store ls -R --json >got
	[ "$(jq -r .path got | tr '\n' ' ')" = "/d /d/g /f " ]
	[ "$(jq -s '.[2].size' got)" = 5 ]
}

@test "the age in ls -l follows AG2_NOW" {
	[ "$backend" != sqlite-ag2 ] || skip "AG2's table has no times"
	put /f 1
	t=$(ag2-store stat --json /f | jq '.modified | floor')
	AG2_NOW=$((t + 7300)) run -0 ag2-store ls -l
	has "   2h  f"
	AG2_NOW=$((t + 200000)) run -0 ag2-store ls -l
	has "   2d  f"
}

@test "what ag2 keeps for itself is shown only with -a" {
	put /.ag2/x 1
	put /a 2
	run -0 ag2-store ls
	output_is a
	run -0 ag2-store ls -a
	has .ag2/
	run -0 ag2-store tree
	hasnt .ag2
}

@test "tree -l, -a and --json" {
	[ "$backend" != sqlite-ag2 ] || skip "AG2's table has no times"
	put /a/b 12345
	put /.ag2/x y
	run -0 ag2-store tree -l
	[[ ${lines[2]} =~ ^'    └── [v'[0-9]+' 5 '[0-9]+s']  b'$ ]] || fail "$output"
	hasnt .ag2
	run -0 ag2-store tree -a
	has .ag2
	ag2-store tree --json >got
	ag2-store ls -R --json >want
	same want got
	[ -s got ]
}

@test "stat: size for people too, and the age" {
	[ "$backend" != sqlite-ag2 ] || skip "AG2's table has no times"
	head -c 3000 /dev/zero | ag2-store write /f
	AG2_NOW=$(ag2-store stat --json /f | jq '.modified + 7300') run -0 ag2-store stat /f
	has "size:     3000 (2.9K)"
	has "age:      2h"
}

@test "tree draws what is below" {
	for f in a/b/c a/d e; do put "/$f" x; done
	ag2-store tree >got
	cat >want <<-'END'
		/
		├── a/
		│   ├── b/
		│   │   └── c
		│   └── d
		└── e

		2 directories, 3 files
	END
	same want got
	run -0 ag2-store tree /a/b
	output_is "$(printf '/a/b\n└── c\n\n0 directories, 1 file')"
	run -1 ag2-store tree /nope
}

# ---- stores that are not there, usage ----

@test "reading never makes a store: 66" {
	for c in "ls" "tree" "cat /a" "exists /a" "stat /a" "rm /a" "log ls" "log cat s" "log show s" "log answer" "log tail s"; do
		run ag2-store $c
		status_is 66
		[ ! -e "${AG2_STORE#*:}" ] || fail "$c made a store"
	done
}

@test "the store is -s, else AG2_STORE, else in the state directory" {
	put /in-env 1
	ag2-store -s "disk:$TMP/other" write /in-option <<<1
	run -0 ag2-store ls
	output_is in-env
	run -0 ag2-store ls -s "disk:$TMP/other"
	output_is in-option
	unset AG2_STORE
	put /in-state 1
	[ -f "$XDG_STATE_HOME/ag2/store.db" ]
	[ "$(stat -c %a "$XDG_STATE_HOME/ag2")" = 700 ]
	unset XDG_STATE_HOME
	put /in-home 1
	[ -f "$HOME/.local/state/ag2/store.db" ]
	HOME= run -78 ag2-store ls
	has "AG2_STORE"
}

@test "the store of an agent file is used with -c, below -s and above AG2_STORE" {
	mkdir sub
	cat >sub/agent.yaml <<-'END'
		name: scribe
		model: openai:gpt-5
		knowledge:
		  store: ./from-file.db
	END
	chmod 600 sub/agent.yaml
	put /in-env 1
	ag2-store -c sub/agent.yaml init >/dev/null
	[ -f sub/from-file.db ]
	run -0 ag2-store cat -c sub/agent.yaml /.initialized
	output_is scribe
	cd /
	run -0 ag2-store -c "$TMP/sub/agent.yaml" run -- sh -c 'ag2-store cat /.initialized'
	output_is scribe
	run -0 ag2-store -c "$TMP/sub/agent.yaml" -s "$AG2_STORE" ls
	output_is in-env
	cd "$TMP"
	printf 'name: x\nmodel: openai:gpt-5\n' >sub/agent.yaml
	run -0 ag2-store -c sub/agent.yaml ls
	output_is in-env
	run -66 ag2-store -c sub/nope.yaml ls
	printf 'nme: x\n' >sub/agent.yaml
	run -78 ag2-store -c sub/agent.yaml ls
	has "name"
	chmod 666 sub/agent.yaml
	run -77 ag2-store -c sub/agent.yaml ls
}

@test "usage errors exit 64 and say what to look at" {
	for c in "" "nope" "cat" "write" "write /a b c" "ls a b" "exists" "exists a b" "stat" "rm" "append" "lock" "lock /a" \
		"lock /a --" "run" "ls --nope" "ls -z" "write --if-version" "write --if-version=x /a" "write --if-version=-1 /a" \
		"log" "log nope" "log cat" "log cat a b" "log append" "log user s" "log alert s t" "log tail -n x s" "tool x" "init x"; do
		run ag2-store $c </dev/null
		status_is 64 || fail "$c"
		has "--help'"
	done
}

@test "an unknown command or option names the nearest" {
	run -64 ag2-store appendd
	has "'append'"
	run -64 ag2-store log answr
	has "'answer'"
	run -64 ag2-store ls --recursiv
	has "--recursive"
}

@test "every command has --help on standard output" {
	put /a 1
	for c in init ls tree cat write append rm exists stat lock run tool log "log new" "log ls" "log cat" "log show" \
		"log answer" "log append" "log user" "log alert" "log tail"; do
		run -0 --separate-stderr ag2-store $c --help
		has "usage: ag2-store $c"
		[ -z "$stderr" ]
		first=$output
		run -0 ag2-store help $c
		output_is "$first"
	done
	run -0 ag2-store --help
	has "log answer"
	run -0 ag2-store --version
	[[ $output =~ ^ag2-store\ [0-9] ]]
}

@test "AG2_NOW that is no time exits 78" {
	AG2_NOW=x run -78 ag2-store ls
	has AG2_NOW
}

# ---- standard output and input ----

@test "a closed pipe ends cat and ls quietly" {
	head -c 3000000 /dev/zero | ag2-store write /big
	for i in $(seq 300); do printf x | ag2-store write "/d/$(printf '%0200d' "$i")" || return 1; done
	set -o pipefail
	run bash -c 'set -o pipefail; ag2-store cat /big | head -c 1 >/dev/null'
	status_is 141
	output_is ""
	run bash -c 'ag2-store ls /d 2>err | head -n 1 >/dev/null; cat err'
	output_is ""
}

@test "a full disk is 74, and so is a closed standard output" {
	put /a hello
	ag2-store log user s hi
	for c in "ls" "cat /a" "tree" "stat /a" "log cat s" "log show s" "log tail s" "log ls" "log new" \
		"--help" "ls --help" "tool --schema" "append /a" "cat --range=1 /a" "ls -l" "ls --json" "ls -0"; do
		run bash -c "ag2-store $c </dev/null >/dev/full"
		status_is 74 || fail "$c"
		has "standard output"
		run bash -c "ag2-store $c </dev/null >&-"
		status_is 74 || fail "$c >&-"
	done
	run -0 ag2-store cat /a
	output_is hello
}

@test "closed descriptors do not become the store" {
	run bash -c 'echo hi | ag2-store write /a >&- 2>&-'
	status_is 0
	run bash -c 'ag2-store write /a <&-'
	[ "$status" -ne 0 ]
	run -0 ag2-store cat /a
	output_is hi
}

@test "a 70 MB value goes in and comes out" {
	head -c 70000000 /dev/zero | tr '\0' x >big
	ag2-store write /big big
	ag2-store cat /big | cmp - big
	run -0 ag2-store cat --range=-3 /big
	output_is xxx
}

# ---- the terminal ----

@test "on a terminal control characters, bidi marks and invalid bytes are shown, in a pipe they are not touched" {
	need_terminal
	printf 'a\033[31mb\r\xff\xe2\x80\xaec\td\n' >bytes
	ag2-store write /f bytes
	ag2-store cat /f >got
	same bytes got
	on_terminal 80 "ag2-store cat /f" >got
	printf 'a\\x1b[31mb\\x0d\\xff\\xe2\\x80\\xaec\td\n' >want
	same want got
	put "/$(printf 'x\033]0;t\007')" 1
	run -0 on_terminal 80 "ag2-store ls; ag2-store tree; ag2-store ls -l"
	hasnt "$(printf '\033]')"
	has '\x1b]0;t\x07'
}

@test "a name with newlines and tabs stays on its line on a terminal, content keeps them" {
	need_terminal
	name=$(printf '/d/a\n\tspoof')
	put "$name" needle
	put /d/b x
	for command in "ls /d" "ls -l /d" "ls -1 /d" "ls -R" "tree" "stat '$name'" "grep needle"; do
		on_terminal 200 "ag2-store $command" >got
		hasnt "$(printf '\n\tspoof')" "$(cat got)"
		has 'a\x0a\x09spoof' "$(cat got)"
	done
	[ "$(on_terminal 20 "ag2-store ls /d" | wc -l)" -eq 2 ]
	for command in "ls -0 /d" "ls -R0" "grep -l0 needle"; do
		on_terminal 200 "ag2-store $command" | tr '\0' '|' >got
		has 'a\x0a\x09spoof|' "$(cat got)"
		has "$(printf 'a\n\tspoof|')" "$(ag2-store $command | tr '\0' '|')"
	done
	has "$(printf 'a\n\tspoof')" "$(ag2-store ls /d)"
	printf 'a\n\tb\n' >bytes
	ag2-store write /f bytes
	on_terminal 80 "ag2-store cat /f" >got
	same bytes got
}

@test "characters at the edges of what cat reads at once stay whole on a terminal" {
	need_terminal
	{ printf x; for i in $(seq 1000); do printf '你%.0s' $(seq 100); done; } >text
	ag2-store write /f text
	on_terminal 80 "ag2-store cat /f" | tr -d '\n' >got
	tr -d '\n' <text >want
	cmp want got
}

@test "error lines are scrubbed, also in a pipe" {
	put /a 1
	run -1 --separate-stderr ag2-store cat "$(printf '/\033[31mx')"
	hasnt "$(printf '\033')" "$stderr"
	has '\x1b[31mx' "$stderr"
}

@test "ls on a terminal fills columns of its width" {
	need_terminal
	for i in $(seq 10 29); do put "/name-$i" x; done
	[ "$(on_terminal 80 "ag2-store ls" | wc -l)" -eq 3 ]
	[ "$(on_terminal 20 "ag2-store ls" | wc -l)" -eq 10 ]
	[ "$(on_terminal 5 "ag2-store ls" | wc -l)" -eq 20 ]
	[ "$(on_terminal 80 "ag2-store ls -1" | wc -l)" -eq 20 ]
	[ "$(ag2-store ls | wc -l)" -eq 20 ]
}

@test "NO_COLOR and a dumb terminal have no colour" {
	need_terminal
	put /d/a x
	TERM=xterm run -0 on_terminal 80 "ag2-store ls"
	has "$(printf '\033[')"
	TERM=xterm NO_COLOR=1 run -0 on_terminal 80 "ag2-store ls"
	output_is d/
	TERM=dumb run -0 on_terminal 80 "ag2-store ls"
	output_is d/
}

# ---- lock, run ----

@test "lock runs the command with the lock held and gives its status" {
	run -7 ag2-store lock /a -- sh -c 'exit 7'
	run -75 ag2-store lock /a -- ag2-store lock -w 0 /a -- true
	run -0 ag2-store lock /a -- ag2-store lock -w 0 /b -- true
	run -0 ag2-store lock -w 5 /a -- true
	run -0 ag2-store lock /a sh -c 'exit 0'
	run -127 ag2-store lock /a -- ./no-such-program
	run -130 bash -c 'ag2-store lock /a -- sh -c "kill -INT \$\$"'
	run -143 ag2-store lock /a -- sh -c 'kill -TERM $$'
}

@test "lock: the command has AG2_STORE, and waiting ends when the lock is let go" {
	run -0 ag2-store lock /a -- sh -c 'echo "$AG2_STORE"'
	output_is "$AG2_STORE"
	mkfifo go
	ag2-store lock /a -- sh -c 'echo held >held; cat go >/dev/null' & first=$!
	wait_for 30 test -s held
	run -75 ag2-store lock -w 0.05 /a -- true
	ag2-store lock -w 60 /a -- touch second & second=$!
	echo >go
	wait "$first"
	wait "$second"
	[ -e second ]
}

@test "lock: a signal to it goes on to the command, and the lock is free" {
	ag2-store lock /a -- sh -c 'trap "echo got >got; exit 9" TERM; echo >ready; while :; do sleep 0.05; done' &
	pid=$!
	wait_for 30 test -e ready
	kill -TERM $pid
	wait $pid || status=$?
	[ "$status" -eq 9 ]
	[ -e got ]
	run -0 ag2-store lock -w 0 /a -- true
}

@test "lock: a holder that is killed takes its command along" {
	ag2-store lock /l -- sh -c 'echo $$ >pid; exec sleep 100' & holder=$!
	wait_for 30 test -s pid
	kill -KILL "$holder"
	wait "$holder" || true
	wait_for 30 sh -c '! kill -0 "$(cat pid)" 2>/dev/null'
}

@test "lock: the death of the holder frees it" {
	ag2-store lock /a -- sh -c 'echo $$ >child; exec sleep 60' &
	pid=$!
	wait_for 30 test -s child
	kill -KILL $pid "$(cat child)"
	wait $pid || true
	run -0 ag2-store lock -w 60 /a -- true
}

@test "run sets AG2_STORE and gives the command's status" {
	cd /
	run -5 ag2-store -s "disk:$TMP/x" run -- sh -c 'echo "$AG2_STORE"; exit 5'
	output_is "disk:$TMP/x"
	cd "$TMP"
	run -0 ag2-store -s ./rel run sh -c 'cd /; ag2-store write /a </dev/null; echo "$AG2_STORE"; ag2-store ls'
	output_is "$(printf 'disk:%s/rel\na' "$TMP")"
	[ -e "$TMP/rel" ]
	run -127 ag2-store run -- ./no-such-program
}

@test "a memory: run has a private store that is gone afterwards" {
	run -3 ag2-store -s memory: run -- sh -c 'ag2-store init >/dev/null; ag2-store exists /SKILL.md || exit 9
		d=${AG2_STORE#disk:}; stat -c %a "$d"; echo "$d"; exit 3'
	[ "${lines[0]}" = 700 ]
	[ ! -e "${lines[1]}" ]
	for signal in TERM INT HUP; do
		env --default-signal=INT ag2-store -s memory: run -- sh -c 'echo x | ag2-store write /a; echo "${AG2_STORE#disk:}" >dir.tmp; mv dir.tmp dir; exec sleep 60' &
		pid=$!
		wait_for 30 test -s dir
		[ -d "$(cat dir)" ]
		kill -$signal $pid
		wait $pid || true
		[ ! -e "$(cat dir)" ] || fail "$signal left $(cat dir)"
		rm dir
	done
}

@test "children get SIGPIPE back" {
	run bash -c 'set -o pipefail; ag2-store run -- yes 2>&1 | head -n 1'
	status_is 141
	output_is y
	run bash -c 'set -o pipefail; ag2-store lock /a -- yes 2>&1 | head -n 1'
	status_is 141
	output_is y
}

# ---- tool ----

tool() {
	printf %s "$1" | ag2-store tool
}

@test "tool answers read, write, list and delete" {
	ag2-store init --name t >/dev/null
	run -0 tool '{"action": "write", "path": "/artifacts/n.md", "content": "note"}'
	output_is "Written to /artifacts/n.md"
	run -0 tool '{"action": "read", "path": "artifacts/n.md"}'
	output_is note
	run -0 tool '{"action": "read", "path": "/nope"}'
	output_is "Not found: /nope"
	run -0 tool '{"action": "list"}'
	[ "$output" = "$(ag2-store cat /SKILL.md; printf '\n---\n'; ag2-store ls)" ] || fail "$output"
	run -0 tool '{"action": "list", "path": "/none"}'
	output_is "Empty: /none"
	run -0 tool '{"action": "delete", "path": "/artifacts/n.md"}'
	output_is "Deleted: /artifacts/n.md"
	run -1 ag2-store exists /artifacts/n.md
}

@test "tool does not write or delete in the log, in what is ours, or the store itself" {
	ag2-store init >/dev/null
	before=$(ag2-store ls -aR)
	for p in / // /log /log/x.jsonl /.ag2 /.ag2/x; do
		for a in write delete; do
			run -0 tool "{\"action\": \"$a\", \"path\": \"$p\", \"content\": \"x\"}"
			has "Refused"
		done
	done
	[ "$(ag2-store ls -aR)" = "$before" ]
	run -0 tool '{"action": "list", "path": "/.ag2"}'
	output_is "Empty: /.ag2"
}

@test "tool tells the model its mistakes" {
	run -0 tool '{"action": "move"}'
	has move
	has "read, write, list and delete"
	run -0 tool '{"action": "write", "path": "/a"}'
	has content
	run -0 tool '{"action": "write", "path": "/../a", "content": "x"}'
	has Error
	run -0 tool '{"action": 1}'
	has action
	put /f x
	run -0 tool '{"action": "write", "path": "/f/g", "content": "x"}'
	has Error
	[ "$(ag2-store ls -R)" = /f ]
}

@test "tool: input that is no call is 65" {
	for i in '' '[]' 'null' '{' '{"action": "list"} junk' 'x'; do
		run tool "$i"
		status_is 65 || fail "$i"
	done
}

@test "tool: a call with 70 MB of content is done, one that is too deep is not" {
	{ printf '{"action": "write", "path": "/big", "content": "'; head -c 70000000 /dev/zero | tr '\0' x; printf '"}'; } >call
	run -0 ag2-store tool <call
	output_is "Written to /big"
	[ "$(ag2-store stat --json /big | jq .size)" -eq 70000000 ]
	run -0 tool '{"action": "read", "path": "/big"}'
	has "Too large"
	run tool "{\"action\": $(printf '[%.0s' $(seq 1000))$(printf ']%.0s' $(seq 1000))}"
	status_is 65
}

@test "tool --schema declares one tool with its parameters" {
	ag2-store tool --schema >got
	[ "$(jq -r '.name' got)" = knowledge ]
	[ "$(jq -c '.parameters | [.required, (.properties | keys)]' got)" = '[["action"],["action","content","path"]]' ]
	[ "$(jq -c '[.parameters.properties.path.default, .parameters.properties.content.default]' got)" = '["/",""]' ]
	[ ! -e "${AG2_STORE#*:}" ]
}

@test "ls: the order is that of the bytes it prints, a directory's slash among them" {
	for path in /a/x /a.txt /a0 /ab/y '/a!/z' /a-b; do
		put "$path" x
	done
	run -0 ag2-store ls /
	output_is "$(printf '%s\n' a!/ a-b a.txt a/ a0 ab/)"
}

@test "cat of a directory says that it is one" {
	echo x | ag2-store write /a/b
	run -1 ag2-store cat /a
	output_is "ag2-store: '/a' is a directory"
}

@test "where no store is named and there is none yet, that is said" {
	unset AG2_STORE
	run -66 ag2-store ls
	output_is "ag2-store: there is no store yet at $XDG_STATE_HOME/ag2/store.db; -s URL or AG2_STORE names another one"
	[ ! -e "$XDG_STATE_HOME" ]
}
