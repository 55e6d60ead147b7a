# What the README shows is what happens.

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
