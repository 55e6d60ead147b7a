#!/usr/bin/env bats
# ag2-store history, restore, edit.

load helper

setup() {
	clean_environment
	export AG2_STORE=disk:$TMP/s
}

# editor BODY: a program that is given the file as $1.
editor() {
	printf '#!/bin/sh\n%s\n' "$1" >editor
	chmod +x editor
	export EDITOR="sh $TMP/editor"
}

@test "edit writes what the editor left, and the version before can be restored" {
	echo one | ag2-store write /memory/working.md
	editor 'case $1 in *.md) ;; *) exit 9 ;; esac; cp "$1" seen; echo two >"$1"'
	ag2-store edit /memory/working.md
	[ "$(cat seen)" = one ]
	[ "$(ag2-store cat /memory/working.md)" = two ]
	run -0 ag2-store history /memory//working.md/
	has " 1  2"
	has "  4"
	[ "${#lines[@]}" -eq 1 ]
	ag2-store restore /memory/working.md
	[ "$(ag2-store cat /memory/working.md)" = one ]
	ag2-store restore /memory/working.md
	[ "$(ag2-store cat /memory/working.md)" = two ]
	ag2-store restore /memory/working.md 3
	[ "$(ag2-store cat /memory/working.md)" = one ]
}

@test "an editor that fails or changes nothing changes nothing; no temporary file is left" {
	mkdir tmp
	export TMPDIR=$TMP/tmp
	echo one | ag2-store write /a
	editor 'echo two >"$1"; exit 3'
	run -69 ag2-store edit /a
	[ "$(ag2-store cat /a)" = one ]
	editor ':'
	before=$(ag2-store stat --json /a)
	ag2-store edit /a
	[ "$(ag2-store stat --json /a)" = "$before" ]
	ag2-store edit /new
	run -1 ag2-store exists /new
	run -1 ag2-store history /a
	output_is "ag2-store: there is no old version of '/a'"
	[ -z "$(ls tmp)" ]
}

@test "edit makes a file that is not there" {
	editor 'echo fresh >"$1"'
	ag2-store edit /dir/new
	[ "$(ag2-store cat /dir/new)" = fresh ]
}

@test "a file that was changed meanwhile is not written over, and the edited text is kept" {
	echo one | ag2-store write /a
	editor 'echo theirs | ag2-store write /a; echo mine >"$1"'
	run -75 ag2-store edit /a
	[ "$(ag2-store cat /a)" = theirs ]
	kept=$(sed -n 's/.*what you wrote is in //p' <<<"$output")
	[ "$(cat "$kept")" = mine ]
}

@test "ten versions are kept" {
	for i in 1 2 3 4 5 6 7 8 9 10 11 12 13; do
		editor "echo $i >\"\$1\""
		ag2-store edit /a
	done
	[ "$(ag2-store history /a | wc -l)" -eq 10 ]
	ag2-store restore /a 10
	[ "$(ag2-store cat /a)" = 3 ]
}

@test "no old version is 1, a number that is none is 64" {
	echo one | ag2-store write /a
	run -1 ag2-store restore /a
	has "no old version"
	run -1 ag2-store history /a
	output_is "ag2-store: there is no old version of '/a'"
	run -64 ag2-store restore /a x
	run -64 ag2-store restore /a 0
	run -64 ag2-store history
	run -66 ag2-store -s disk:nowhere history /a
	editor 'echo two >"$1"'
	ag2-store edit /a
	run -1 ag2-store restore /a 2
}

@test "what ag2-aggregate replaced is in the history; the summaries of a stream have one" {
	export AG2_MODEL='exec:cat >/dev/null; echo "$AG2_NOW"'
	for now in 100 200 300; do
		export AG2_NOW=$now
		ag2-store log user s "at $now"
		ag2-aggregate --stream s working-memory
		ag2-aggregate --stream s conversation-summary
	done
	[ "$(ag2-store cat /memory/working.md)" = 300 ]
	ag2-store restore /memory/working.md 2
	[ "$(ag2-store cat /memory/working.md)" = 100 ]
	path=/memory/conversations/$(ag2-store ls -1 /memory/conversations)
	[ "$(ag2-store history "$path" | wc -l)" -eq 2 ]
	ag2-store restore "$path"
	[ "$(ag2-store cat "$path")" = 200 ]
}
