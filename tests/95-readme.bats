# What the README shows is what happens.

bats_require_minimum_version 1.5.0
load helper

# The tour's sh blocks as one script. Before each block's end it prints a mark, so that the outputs can be told apart.
tour() {
	awk '
	/^## / { tour = $0 == "## A tour" }
	!tour { next }
	/^```sh$/ { code = 1; next }
	/^```/ { if (code) printf "echo \"===\"\n"; code = 0; next }
	code
	' "$ROOT/README.md"
}

# What the README says each block prints: "===" behind each, "?" for one that is not shown.
shown() {
	awk '
	function flush() { if (block) print shown != "" ? shown "\n===" : "?\n===" }
	/^## / { if (tour) flush(); tour = $0 == "## A tour"; block = 0 }
	!tour { next }
	/^```sh$/ { flush(); block = 1; shown = ""; code = 1; next }
	/^```text$/ { text = 1; next }
	/^```/ { code = text = 0; next }
	text { shown = shown (shown == "" ? "" : "\n") $0 }
	END { if (tour) flush() }
	' "$ROOT/README.md"
}

# Paragraph N of the outputs in FILE.
block() {
	awk -v n="$2" 'BEGIN { at = 1 } $0 == "===" { at++; next } at == n' "$1"
}

@test "the tour runs as pasted and prints what it says" {
	mkdir -p checkout/build
	ln -s "${BIN%/bin}" checkout/build/release
	tour >tour.sh
	shown >shown
	[ "$(grep -c '^===$' shown)" -ge 8 ]
	(cd checkout && bash -e ../tour.sh >"$TMP/got" 2>&1) || fail "the tour failed:" "$(cat got)"
	[ "$(grep -c '^===$' got)" -eq "$(grep -c '^===$' shown)" ]
	for n in $(seq "$(grep -c '^===$' shown)"); do
		block shown "$n" >want
		[ "$(cat want)" != '?' ] || continue
		block got "$n" >is
		same want is
	done
}

@test "the tour and the demo's agent file are read without an error" {
	cp "$ROOT/scripts/examples/journal.yaml" .
	chmod go-w journal.yaml
	run -0 ag2-ask -c journal.yaml -n 'Good evening'
	has '"Good evening"'
	has 'daily journal companion'
}

@test "every program and page that the README names is there" {
	for name in $(grep -o 'ag2-[a-z][a-z]*' "$ROOT/README.md" | sort -u); do
		[ -x "$BIN/$name" ] || fail "no program $name"
		[ -e "$ROOT/man/$name.1" ] || fail "no page $name.1"
	done
	for path in $(grep -oE '(^|[ `(])(cmd|lib|man|scripts|tests)/[A-Za-z0-9_./*-]*' "$ROOT/README.md" | tr -d ' `(' | sed 's/[.]$//' | sort -u); do
		case $path in *NAME* | *'*'*) continue ;; esac
		[ -e "$ROOT/$path" ] || fail "the README names $path, which is not there"
	done
}

# The fenced blocks of that language in the section whose heading is given.
fenced() {
	awk -v language="$1" -v heading="## $2" '
	/^## / { here = $0 == heading }
	here && $0 == "```" language { code = 1; next }
	/^```/ { code = 0 }
	code' "$ROOT/README.md"
}

@test "what it shows before the tour runs: a turn as a pipeline, and from one file" {
	export AG2_STORE=disk:$TMP/s AG2_REPLAY=$TMP/cassette
	echo '{"reply": {"text": "An answer, which is short."}}' >cassette
	awk '/^## / { exit } /^    / { print substr($0, 5) }' "$ROOT/README.md" | grep -v '^sh scripts/' >script
	[ "$(grep -c 'ag2-' script)" -ge 7 ]
	fenced yaml "The agent file" >journal.yaml
	[ -s journal.yaml ]
	chmod go-w journal.yaml
	for program in redact weather; do printf '#!/bin/sh\nexec cat\n' >$program; done
	printf '#!/bin/sh\necho "{\\"name\\": \\"runbook\\", \\"parameters\\": {\\"type\\": \\"object\\"}}"\n' >runbook-tool
	chmod +x redact weather runbook-tool
	ag2-store -s disk:journal-state log user s hello
	run -0 ag2-ask -c journal.yaml --check
	output_is ""
	run -0 bash -e script
	has "An answer, which is short."
}

@test "no block of it is left untried" {
	awk '
	/^## / { heading = $0 }
	/^```[a-z]/ && !(heading == "## A tour" && /sh$|text$/) && !(heading == "## The agent file" && /yaml$/)' "$ROOT/README.md" >others
	[ ! -s others ] || fail "$(cat others)"
}
