# make install, uninstall, and the scripts around the build.

load helper

make_ag2() {
	make -s -C "$ROOT" BUILD="${BIN%/bin}" DESTDIR="$TMP/root" PREFIX=/usr "$@"
}

@test "install puts each program and page in its place, and the programs run there" {
	run -0 make_ag2 install
	for program in "$BIN"/ag2-*; do
		name=${program##*/}
		run -0 "$TMP/root/usr/bin/$name" --version
		has "$name"
		[ -r "$TMP/root/usr/share/man/man1/$name.1" ] || fail "no page for $name"
	done
	[ -x "$TMP/root/usr/bin/ag2-store" ]
}

@test "uninstall takes away what install put, and nothing else" {
	run -0 make_ag2 install
	: >root/usr/bin/other
	run -0 make_ag2 uninstall
	[ "$(find root ! -type d)" = root/usr/bin/other ]
}

@test "only ag2-ask loads libcurl" {
	for program in "$BIN"/ag2-*; do
		run -0 ldd "$program"
		case $program in
		*/ag2-ask) has libcurl ;;
		*) hasnt libcurl ;;
		esac
	done
}

@test "deps says nothing when all is there" {
	command -v dpkg-query >/dev/null || skip "no Debian"
	mkdir shadow
	for refused in apt-get sudo; do
		printf '#!/bin/sh\necho "%s was called" >&2\nexit 1\n' $refused >shadow/$refused
		chmod +x shadow/$refused
	done
	# Everything is installed, whatever is asked for.
	printf '#!/bin/sh\nprintf installed\n' >shadow/dpkg-query
	chmod +x shadow/dpkg-query
	PATH=$TMP/shadow:$PATH run -0 sh "$ROOT/scripts/deps"
	output_is ''
}

@test "deps asks for what is missing, an alternative counting, and without root says how" {
	mkdir shadow
	cat >shadow/dpkg-query <<-'END'
		#!/bin/sh
		for package; do :; done
		case $package in
		clang | libcurl4-gnutls-dev | libc6-dev | make | pkgconf | ca-certificates | lib[hjsy]*) printf installed ;;
		*) exit 1 ;;
		esac
	END
	printf '#!/bin/sh\necho 1000\n' >shadow/id
	printf '#!/bin/sh\necho "$*" >>%s/asked\n' "$TMP" >shadow/sudo
	chmod +x shadow/*
	PATH=$TMP/shadow:$PATH run -0 sh "$ROOT/scripts/deps" --build
	output_is ''
	PATH=$TMP/shadow:$PATH run -0 sh "$ROOT/scripts/deps"
	has 'sudo apt-get install bats curl fish jq mandoc openssl procps redis-server redis-tools shellcheck sqlite3 strace zsh'
	grep -q 'install --no-install-recommends bats curl fish jq mandoc' asked

	# The tools deps needs, without sudo.
	mkdir bare
	for tool in sh tr id dpkg-query; do
		ln -s "$(PATH=$TMP/shadow:$PATH command -v $tool)" bare/$tool
	done
	PATH=$TMP/bare run -77 /bin/sh "$ROOT/scripts/deps"
	has 'run as root: apt-get install bats'
}
