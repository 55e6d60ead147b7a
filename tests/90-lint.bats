# The pages and scripts themselves.

load helper

@test "the manual pages are without a warning" {
	command -v mandoc >/dev/null || skip "no mandoc"
	run -0 make -s -C "$ROOT" lint-man
	output_is ''
}

@test "the shell scripts are without a warning" {
	command -v shellcheck >/dev/null || skip "no shellcheck"
	run -0 make -s -C "$ROOT" lint-sh
	output_is ''
}

@test "the library prints nothing, ends no program and reads no environment" {
	run nm -A -u "${BIN%/bin}/libag2.a"
	[ "$status" -eq 0 ] || skip "no nm"
	has "malloc"
	# but where memory is out, and in a child that could not become what it should
	grep -vE ':(alloc|run)\.o: *U _exit$' <<<"$output" >symbols
	run grep -wE '_?exit|abort|f?printf|__f?printf_chk|puts|putchar|stdout|stderr|(secure_)?getenv' symbols
	output_is ""
}

@test "every program has a page, and the page has each option and each exit status that --help and the contract name" {
	for program in "$BIN"/ag2-*; do
		name=${program##*/}
		page=$ROOT/man/$name.1
		[ -e "$page" ] || fail "no page for $name"
		mandoc -Tascii "$page" | sed 's/.\x08//g' >page.txt
		"$program" --help | grep -oE -- '--[a-z][a-z-]*' | sort -u >options
		[ -s options ] || fail "$name --help names no options"
		while read -r option; do
			grep -qE -- "$option([^a-z-]|\$)" page.txt || fail "$name.1 does not have $option"
		done <options
		grep -q '^EXIT STATUS' page.txt || fail "$name.1 has no exit status section"
	done
}
