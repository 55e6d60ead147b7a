# scripts/demo: the two sessions of the journal companion.

load helper

demo() {
	AG2_BUILD=${BIN%/bin} sh "$ROOT/scripts/demo" "$@"
}

@test "the demo plays both sessions, and the second knows what the first was told" {
	demo >first.out 2>first.err || fail "exit $?" "$(tail -n 20 first.out first.err)"
	[ ! -s first.err ] || fail "$(cat first.err)"
	# The working memory written at the end of session 1 is in the prompt of session 2 only.
	store=$(sed -n 's/^It is all still there: export AG2_STORE=//p' first.out)
	run -0 ag2-store -s "$store" cat /memory/working.md
	has 'due on the 30th'
	has 'Asked on Friday'
	run -0 ag2-store -s "$store" history /memory/working.md
	[ "${#lines[@]}" -eq 1 ]
	run -0 ag2-store -s "$store" log cat --current monday
	[ "${#lines[@]}" -lt "$(ag2-store -s "$store" log cat monday | wc -l)" ]
	run -0 ag2-store -s "$store" cat /log/friday.jsonl
	hasnt 'the 30th'
	run -0 ag2-store -s "$store" cat /artifacts/friday.md
	has 'captions'
	run -0 ag2-store -s "$store" ls /log
	has 'monday.jsonl'
	has 'friday.jsonl'
	grep -q 'OPENAI_API_KEY=.* sh scripts/demo openai:' first.out
}

@test "the demo says the same each time, in 80 columns, and needs no network, key or home" {
	unset HOME
	demo >first.out
	demo >second.out
	scrub() {
		sed -e "s|$TMP/ag2-demo\.[A-Za-z0-9]*|DIR|g" -e 's/[0-9:-]*T\?[0-9][0-9]:[0-9][0-9]\(:[0-9][0-9]\)\?/TIME/g' "$1"
	}
	scrub first.out >one
	scrub second.out >two
	same one two
	run awk 'length($0) > 80' one
	output_is ''
}

@test "without its memory the second session asks the recorded model something it was never asked" {
	cp "$ROOT"/scripts/examples/journal.* .
	export AG2_STORE=sqlite:journal.db AG2_MODEL=openai:gpt-5-mini AG2_REPLAY=journal.cassette
	ag2-store log user friday 'Morning. What should I do first today?'
	ag2-store log cat --current friday >events
	prompt='You are a daily journal companion. Be kind and brief.'
	ag2-assemble --prompt "$prompt" working-memory <events >assembled
	run -69 ag2-ask --events <assembled
	has 'no recorded answer fits'
	printf '%s\n%s\n%s' '- Runs again after a knee injury: 3 km on Monday, slow' \
		'- Chapter two: due on the 30th; begins with the figure captions' \
		'- Twenty minutes before mail suit best' | ag2-store write /memory/working.md
	ag2-assemble --prompt "$prompt" working-memory <events >assembled
	run -0 ag2-ask <assembled
	has 'figure captions'
}
