# What the pages show: every example is run as a reader sees it, and every option is there in both directions.
bats_require_minimum_version 1.5.0
load helper

# rendered PAGE [WIDTH [KIND]]: as it is shown, without the bold and the underlined.
rendered() {
	mandoc -T"${3:-utf8}" -Owidth="${2:-1000}" "$1" | sed 's/.\x08//g'
}

# displays KIND PAGE: those behind a comment of that kind, as they are shown, one after the other, with a line `%%` before each. What
# stands on one line (.Dl) is of kind run.
displays() {
	awk -v kind="$1" '
		/^\.\\" [a-z]+$/ { next_kind = $2 }
		/^\.Bd -literal/ { print; print "%%" next_kind; next_kind = ""; literal = 1; next }
		/^\.Ed/ && literal { print "%%end"; literal = 0 }
		/^\.Dl / { print ".Dl %%run"; print; print ".Dl %%end"; next }
		{ print }' "$ROOT/man/$2" >marked
	rendered marked | awk -v kind="%%$1" '
		{ text = $0; sub(/^ */, "", text) }
		text == "%%end" { on = 0 }
		on { print substr($0, indent + 1) }
		text == kind { on = 1; indent = length($0) - length(text); print "%%" }'
}

@test "every display of every page is of a kind that is tried here" {
	for page in "$ROOT"/man/*.[157]; do
		[ "$(grep -c '^\.Bd -literal' "$page")" -eq "$(grep -cE '^\.\\" (run|cron|make|events|agent|cassette|prices)$' "$page")" ] ||
			fail "${page##*/} has a display that is not tried"
	done
}

@test "the pages fit 80 columns, but for lines of events" {
	for page in "$ROOT"/man/*.[157]; do
		rendered "$page" 80 ascii | grep -v '^ *{"type"' | awk 'length($0) > 80' >long
		[ ! -s long ] || fail "${page##*/}:" "$(cat long)"
	done
}

@test "the helps fit 80 columns" {
	export COLUMNS=80
	for program in "$BIN"/ag2-*; do
		"$program" --help
	done >helps
	for c in $(ag2-store --help | sed -n '/^Commands/,/^$/s/^  \([a-z][a-z]*\)  .*/\1/p'); do ag2-store $c --help; done >>helps
	for c in $(ag2-store --help | sed -n 's/^  log \([a-z][a-z]*\)  .*/\1/p'); do ag2-store log $c --help; done >>helps
	[ "$(grep -c '^usage: ' helps)" -ge 38 ]
	awk 'length($0) > 80' helps >long
	[ ! -s long ] || fail "$(cat long)"
}

# What the examples of the pages speak of. Every model answers, without a network; `git diff` prints something.
world() {
	mkdir bin
	printf '#!/bin/sh\necho "+a line"\n' >bin/git
	chmod +x bin/git
	PATH=$TMP/bin:$PATH
	echo '{"reply": {"text": "An answer, which is short."}}' >cassette
	export AG2_REPLAY=$TMP/cassette AG2_STORE=disk:$TMP/journal-state
	echo 'prefers tea' | ag2-store write /memory/working.md
	for i in 1 2 3; do
		ag2-store log user journal "About the train to Porto, and an invoice ($i)"
		ag2-ask --stream journal -m openai:gpt-5
	done
	printf 'prompt: Be brief.\nmodel: openai:gpt-5\nknowledge: {store: "disk:%s/journal-state", aggregate: working_memory, aggregate_trigger: {on_end: true}}\n' \
		"$TMP" >journal.yaml
	chmod 600 journal.yaml
	cp -p journal.yaml "$HOME"
	export S=journal
}

# run_displays PAGE N: its commands, which are N displays, in order.
run_displays() {
	displays run "$1" | sed 's/^%%$/true/' >script
	[ "$(grep -c '^true$' script)" -ge "$2" ]
	run -0 bash -e script
}

@test "ag2-store(1): its examples run" {
	world
	run_displays ag2-store.1 6
	has "About the train to Porto"
	[ "$(ag2-store -s sqlite:journal.db cat /memory/working.md)" = "prefers coffee" ]
	ag2-store log grep -l 'disk full'
}

@test "ag2-assemble(1): its examples run" {
	world
	displays run ag2-assemble.1 | sed 's/^%%$/true/' >script
	run -0 bash -e script </dev/null
	has "Today is "
	has "## Working Memory"
	has "About the train to Porto"
}

@test "ag2-ask(1): its examples run" {
	world
	run_displays ag2-ask.1 4
	has "An answer, which is short."
	has '"messages"'
	run -0 ag2-store log show journal
	has "+a line"
}

@test "ag2-compact(1): its examples run" {
	world
	for i in $(seq 110); do echo "{\"type\": \"ag2.events.input_events.ModelRequest\", \"data\": {\"created_at\": $i.5, \"parts\": [{\"__event__\": \"ag2.events.input_events.TextInput\", \"created_at\": $i.5, \"metadata\": {}, \"content\": \"a text of some length, number $i\"}]}}"; done |
		ag2-store log append journal
	run_displays ag2-compact.1 5
	ag2-store log show journal | grep -q '^Summary of'
}

@test "ag2-aggregate(1): its examples run, those for cron and for make too" {
	world
	run_displays ag2-aggregate.1 2
	[ "$(ag2-store cat /memory/working.md)" = "An answer, which is short." ]
	ag2-store ls /memory | grep -q '\.count$'
	displays cron ag2-aggregate.1 | sed '/^%%/d' >crontab
	[ "$(wc -l <crontab)" -eq 1 ]
	run -0 sh -c "$(cut -d ' ' -f 6- crontab)"
	output_is ""
	displays make ag2-aggregate.1 | sed '/^%%/d' >Makefile
	ag2-store log cat journal >journal.jsonl
	run -0 make journal.md
	[ "$(cat journal.md)" = "An answer, which is short." ]
}

@test "ag2-ask(1): its cassette answers" {
	displays cassette ag2-ask.1 | sed '/^%%/d' >cassette
	[ "$(wc -l <cassette)" -eq 3 ]
	export AG2_REPLAY=$TMP/cassette AG2_MODEL=openai:gpt-5
	[ "$(ag2-ask 'What next?' </dev/null)" = "Read Calvino." ]
	[ "$(ag2-ask 'How do I get to Porto?' </dev/null)" = "Take the train." ]
	ag2-ask --events 'Anything else' </dev/null | grep -q '"name": "list"'
}

@test "ag2-store(1): its prices are read" {
	displays prices ag2-store.1 | sed '/^%%/d' >prices.yaml
	grep -q claude prices.yaml
	ag2-store -s disk:s log user s hello
	run -0 ag2-store -s disk:s log usage --prices prices.yaml
	has USD
}

# The examples of all helps, each as one line.
help_examples() {
	for program in "$BIN"/ag2-*; do "$program" --help; echo; done
	for c in $(ag2-store --help | sed -n '/^Commands/,/^$/s/^  \([a-z][a-z]*\)  .*/\1/p'); do ag2-store $c --help; echo; done
	for c in $(ag2-store --help | sed -n 's/^  log \([a-z][a-z]*\)  .*/\1/p'); do ag2-store log $c --help; echo; done
}

@test "the examples of the helps run" {
	world
	help_examples | sed -n '/^Examples\{0,1\}:/,/^$/s/^  //p' | sed -e ':again' -e '/|$/{N;b again' -e '}' -e 's/|\n */| /g' | sort -u >lines
	[ "$(wc -l <lines)" -ge 43 ]
	ag2-store log user S "something to sum up"
	ag2-store log user journal "in a cafÉ"
	echo tea | ag2-store write /memory/conversations/20260101T000000_x.md
	echo draft | ag2-store write /artifacts/draft
	echo log | ag2-store write /artifacts/build.log
	ag2-store -s disk:./state init
	ag2-store export >backup.tar
	printf '#!/bin/sh\n' | tee merge-notes pipeline.sh report.pdf >/dev/null
	chmod +x merge-notes
	printf 'all:\n' >Makefile
	printf 'models:\n  gpt-5: {input: 1, output: 2}\n' >prices.yaml
	ag2-aggregate --stream journal -m openai:gpt-5 working-memory
	while IFS= read -r line; do
		run timeout -k 20 "$(case $line in *watch* | *'tail -f'*) echo 1 ;; *) echo 60 ;; esac)" bash -c "set -o pipefail; $line" </dev/null
		case $line in
		*watch* | *'tail -f'*) [ "$status" -eq 124 ] || fail "$line: $status" "$output" ;;
		*) [ "$status" -eq 0 ] || fail "$line: $status" "$output" ;;
		esac
	done <lines
}

@test "ag2(7): the tour and its recipes run in order" {
	displays run ag2.7 | sed 's/^%%$/true/' >tour.sh
	[ "$(grep -c '^true$' tour.sh)" -ge 12 ]
	run -0 bash -e tour.sh
	has "I was shown 2 lines."
	has "turn 1"
	has "READ NEXT" "$(cat tour.sh)"
}

@test "ag2(7): the lines for cron run, silently" {
	ag2-store -s sqlite:store.db log user s hello
	displays cron ag2.7 | sed '/^%%/d' >crontab
	[ "$(wc -l <crontab)" -eq 4 ]
	while IFS= read -r line; do
		case $line in
		AG2_*) export "$line" ;;
		*)
			run -0 sh -c "$(sed 's/^[^ ]* [^ ]* [^ ]* [^ ]* [^ ]* *//' <<<"$line")"
			output_is ""
			;;
		esac
	done <crontab
}

@test "ag2(7): the Makefile makes its file" {
	displays make ag2.7 | sed '/^%%/d' >Makefile
	ag2-store -s disk:s log user s hello
	ag2-store -s disk:s log cat s >session.jsonl
	run -0 make summary.md
	[ "$(cat summary.md)" = "A short summary." ]
}

@test "ag2-events(5): its lines are events" {
	displays events ag2-events.5 | sed '/^%%/d' >lines
	[ "$(wc -l <lines)" -eq 4 ]
	run -0 --separate-stderr ag2-store -s disk:s log append s <lines
	[ -z "$stderr" ]
	run -0 ag2-store -s disk:s log show s
	has "Hello"
	has "Good evening."
}

# classes FLAGS: of the table of event types those whose flags match the expression.
classes() {
	sed -n 's/^\tTYPE("[^"]*", "\([A-Za-z]*\)", \(.*\)),$/\1 \2/p' "$ROOT/lib/event/type.c" | sed -n "s/ $1\$//p" | sort
}

# listed N: the classes in the Nth list of the page.
listed() {
	awk -v n="$1" '/^\.Bd -ragged/ { list++ } /^\.Ed/ { inside = 0 } inside && list == n; /^\.Bd -ragged/ { inside = 1 }' \
		"$ROOT/man/ag2-events.5" | sed 's/^\.Vt //' | tr -d ',;.' | tr -s ' ' '\n' | sort
}

@test "ag2-events(5): its lists are the table of event types" {
	[ "$(classes '.*' | wc -l)" -ge 60 ]
	diff -u <(classes '\(KEPT\|BUILTIN\|RESULT\|ERROR_RESULT\).*') <({ listed 1; listed 2; } | sort)
	diff -u <(classes '\(PLAIN\|PART\).*') <(listed 3)
	diff -u <(classes TRANSIENT) <(listed 4)
	diff -u <(classes EV_USAGE) <(echo UsageEvent)
}

@test "ag2-agent(5) and ag2-ask(1): their agent files are accepted, and the page names every key of the reader" {
	{ displays agent ag2-agent.5; displays agent ag2-ask.1; } | csplit -s -f agent -b %d.yaml - '/^%%$/' '{*}'
	rm agent0.yaml
	[ -s agent3.yaml ]
	printf '#!/bin/sh\n' >weather
	printf '#!/bin/sh\necho "{\\"name\\": \\"runbook\\", \\"parameters\\": {\\"type\\": \\"object\\"}}"\n' >runbook-tool
	chmod +x weather runbook-tool
	for f in agent*.yaml; do
		sed -i '/^%%$/d' $f
		chmod go-w $f
		run ag2-ask -c $f --check
		[ "$status" -le 1 ] || fail "$f: $output"
	done
	rendered "$ROOT/man/ag2-agent.5" >page
	[ "$(sed -n 's/^	\t*{ "\([a-z_]*\)", \(set\|keep\)_.*/\1/p' "$ROOT/lib/config.c" | sort -u | wc -l)" -ge 25 ]
	for key in $(sed -n 's/^	\t*{ "\([a-z_]*\)", \(set\|keep\)_.*/\1/p' "$ROOT/lib/config.c" | sort -u); do
		grep -qw "$key" page || fail "the page does not have $key"
	done
}

# strangers PAGE OTHER...: of the options that the page has, those that are neither in the file `options` nor among OTHER, which are of
# other programs, in examples.
strangers() {
	local page=$1
	shift
	grep -oE -- '(^|[ ,|[({])--[a-z][a-z0-9-]*' "$page" | grep -oE -- '--[a-z0-9-]+' | sort -u >named
	printf '%s\n' "$@" | sort -u options - >known
	comm -13 known named
}

# options_of CMD...: the long options that its --help lists.
options_of() {
	"$@" --help | sed -n '/^Options/,/^$/p' | grep -oE '^  .{0,4}--[a-z0-9-]+' | grep -oE -- '--[a-z0-9-]+'
}

@test "ag2-store(1) has each option of each command, and no other" {
	rendered "$ROOT/man/ag2-store.1" >page
	ag2-store --help | sed -n '/^Commands/,/^$/s/^  \(log [a-z]*\|[a-z][a-z]*\)  .*/\1/p' >commands
	echo '--completion' >options
	while read -r c; do
		options_of ag2-store $c >some
		while read -r o; do
			grep -qE -- "$o([^a-z0-9-]|\$)" page || fail "$c: the page does not have $o"
		done <some
		cat some >>options
	done <commands
	sort -u -o options options
	[ "$(wc -l <options)" -ge 30 ]
	strangers page --events >wrong
	[ ! -s wrong ] || fail "the page has what no command takes:" "$(cat wrong)"
}

@test "the pages of the other programs have each of their options, letters too, and no other" {
	while read -r name others; do	# options of other programs, in its examples
		rendered "$ROOT/man/ag2-$name.1" >page
		options_of "ag2-$name" | sort -u >options
		[ "$(wc -l <options)" -ge 12 ]
		while read -r o; do
			grep -qE -- "$o([^a-z0-9-]|\$)" page || fail "ag2-$name(1) does not have $o"
		done <options
		for letter in $("ag2-$name" --help | sed -n 's/^  \(-[a-zA-Z0-9]\), .*/\1/p'); do
			grep -qE -- "^ *(.*, )?$letter([, ]|\$)" page || fail "ag2-$name(1) does not have $letter"
		done
		strangers page $others >wrong
		[ ! -s wrong ] || fail "ag2-$name(1) has what the program does not take:" "$(cat wrong)"
	done <<-'END'
		aggregate
		ask --current --all-events --keep-all
		assemble --current --events
		compact --current
	END
}
